//! The signals that ask a process to end. The first one is for the server; the next one ends the process at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::{Handle, Signals};

/// The signals that ask a process to end.
const SIGNALS: [i32; 2] = [SIGTERM, SIGINT];

/// Lets the second of the signals that ask a process to end, SIGTERM and SIGINT, do so at once, as it would by default.
/// Once this is dropped every further one does.
#[derive(Debug)]
pub struct SecondSignal(Arc<AtomicBool>);

impl SecondSignal {
    /// Has the second signal end the process. What handles the first one is to be there already.
    ///
    /// # Errors
    /// What the system reports.
    pub fn arm() -> io::Result<Self> {
        let has_come = Arc::new(AtomicBool::new(false));
        for signal in SIGNALS {
            // In this order: the first one finds that none has come before.
            flag::register_conditional_default(signal, Arc::clone(&has_come))?;
            flag::register(signal, Arc::clone(&has_come))?;
        }
        Ok(Self(has_come))
    }
}

impl Drop for SecondSignal {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Catches the first of the signals that ask a process to end.
#[derive(Debug)]
pub struct EndSignals {
    signals: Signals,
    _second: SecondSignal,
}

/// Ends waiting for signals.
pub type EndSignalsHandle = Handle;

impl EndSignals {
    /// Catches SIGTERM and SIGINT from now on.
    ///
    /// # Errors
    /// What the system reports.
    pub fn catch() -> io::Result<Self> {
        Ok(Self {
            signals: Signals::new(SIGNALS)?,
            _second: SecondSignal::arm()?,
        })
    }

    /// Returns the handle that ends a [wait](Self::wait) from another thread.
    pub fn handle(&self) -> EndSignalsHandle {
        self.signals.handle()
    }

    /// Waits for a signal and returns its number; `None` once the handle was closed.
    pub fn wait(&mut self) -> Option<i32> {
        self.signals.forever().next()
    }
}
