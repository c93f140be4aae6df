//! Ctrl-C as an event beside the work.

use std::io;
use std::sync::mpsc;
use std::thread;

use signal_hook::consts::SIGINT;
use signal_hook::iterator::{Handle, Signals};

/// Runs `work` on a thread of its own and returns its result, or `None` as soon as the process is interrupted
/// (SIGINT). The thread is then still at work, perhaps in a call that takes long, and ends with the process.
///
/// # Errors
/// The signal cannot be caught, or the work panics.
pub fn run_until_interrupted<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Option<T>> {
    let mut signals = Signals::new([SIGINT])?;
    let watch = SignalWatchGuard(signals.handle());
    let (done, outcome) = mpsc::channel();
    let interrupted = done.clone();
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            let _ = interrupted.send(None);
        }
    });
    thread::spawn(move || {
        let _watch = watch;
        let _ = done.send(Some(work()));
    });
    // Without a message both senders are gone: the work panicked, which stderr has heard of.
    outcome
        .recv()
        .map_err(|_| io::Error::other("the work panicked"))
}

/// Ends the thread that waits for signals when the work is over, even by a panic.
struct SignalWatchGuard(Handle);

impl Drop for SignalWatchGuard {
    fn drop(&mut self) {
        self.0.close();
    }
}
