//! The models.

use std::task::{Context, Wake, Waker};
use std::time::Duration;

use loom::cell::Cell;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use tenon_sync::{
    Baton, Budget, CancelFlag, DoneFlag, RunState, SleepFlag, WakeFlag, WakeFlags, WakeHandle,
};

/// What one thread at a time has; loom sees it if two do.
#[derive(Debug, Default)]
struct State {
    turns: Cell<u32>,
    /// What the state was told.
    noted: u8,
}

impl State {
    fn turn(&self) {
        self.turns.set(self.turns.get() + 1);
    }
}

const FIRST: u8 = 1;
const SECOND: u8 = 2;

fn signal(baton: &Baton<State>, signal: u8) -> Option<Box<State>> {
    let state = baton.signal(signal, |state| state.noted |= signal);
    if let Some(state) = &state {
        state.turn();
    }
    state
}

/// A thread puts the state back while two others give signals. Every order of its exchange and its look at the signals
/// with their attempts to claim and their marks: afterwards exactly one of the three has the state, and all
/// signals are known to the state or still to be found.
#[test]
fn a_signal_is_never_forgotten() {
    loom::model(|| {
        let baton = Arc::new(Baton::<State>::new());
        let others = [FIRST, SECOND].map(|bit| {
            let baton = Arc::clone(&baton);
            thread::spawn(move || signal(&baton, bit))
        });
        let state = Box::<State>::default();
        state.turn();
        let own = baton.put_back(state);
        let [first, second] = others.map(|other| other.join().unwrap());
        let mut held: Vec<_> = [own, first, second].into_iter().flatten().collect();
        assert_eq!(held.len(), 1, "one thread has the state");
        let state = held.pop().unwrap();
        state.turn();
        assert_eq!(state.noted | baton.take_signals(), FIRST | SECOND);
        assert!(!baton.has_signals());
    });
}

/// A thread lends the state while it runs a handler, and another, told of something new, goes on with it and puts it
/// back. Every order of lending, claiming, putting back and claiming again: at no time do both have the state, and at
/// the end it is with the first or lies there without a signal that was not seen.
#[test]
fn a_state_that_is_lent_is_had_by_one() {
    loom::model(|| {
        let baton = Arc::new(Baton::<State>::new());
        let other = {
            let baton = Arc::clone(&baton);
            thread::spawn(move || {
                let mut own = signal(&baton, FIRST);
                while let Some(mut state) = own {
                    state.turn();
                    state.noted |= baton.take_signals();
                    own = baton.put_back(state);
                }
            })
        };
        let state = Box::<State>::default();
        state.turn();
        baton.lend(state);
        // The handler runs.
        let mut own = baton.claim();
        while let Some(mut state) = own {
            state.turn();
            state.noted |= baton.take_signals();
            own = baton.put_back(state);
        }
        other.join().unwrap();
        let state = baton.claim().unwrap();
        assert_eq!(state.noted, FIRST);
        assert!(!baton.has_signals());
    });
}

#[derive(Default)]
struct Waiting {
    is_done: bool,
    handle: Option<WakeHandle>,
}

/// Waits until it is done, twice, while another thread says so and wakes. It `looks` at the flag first, or sleeps at once.
fn wait_and_wake(looks: bool) {
    loom::model(move || {
        let flag = WakeFlags::default().add();
        let waiting = Arc::new(Mutex::new(Waiting::default()));
        let waker = {
            let waiting = Arc::clone(&waiting);
            thread::spawn(move || {
                let mut waiting = waiting.lock().unwrap();
                waiting.is_done = true;
                let handle = waiting.handle.take();
                drop(waiting);
                if let Some(handle) = handle {
                    handle.wake();
                }
            })
        };
        loop {
            let mut state = waiting.lock().unwrap();
            if state.is_done {
                break;
            }
            state.handle = Some(flag.wake_handle());
            drop(state);
            if looks && flag.seems_woken() {
                assert!(flag.is_woken());
            } else {
                flag.sleep(Duration::MAX);
            }
        }
        waker.join().unwrap();
    });
}

/// Every order of registering and sleeping with telling and waking: the thread that sleeps is woken.
#[test]
fn a_thread_that_sleeps_is_woken() {
    wait_and_wake(false);
}

/// The same for a thread that looks before it sleeps: if it finds the flag set, it need not sleep, and otherwise the
/// wake-up ends the sleep.
#[test]
fn a_thread_that_looks_is_woken() {
    wait_and_wake(true);
}

/// Two threads sleep by flags of one word while another wakes both, and one of another word, together: none sleeps on,
/// whatever the others do with the word meanwhile.
#[test]
fn threads_are_woken_together() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let mut flags = WakeFlags::default();
        let all = [flags.add(), flags.add(), flags.add()];
        let mut handles: Vec<WakeHandle> = all.iter().map(|flag| flag.wake_handle()).collect();
        let [first, second, third] = all;
        let sleep = |flag: WakeFlag| {
            thread::spawn(move || {
                flag.sleep(Duration::MAX);
                assert!(flag.is_woken());
            })
        };
        let (first, second) = (sleep(first), sleep(second));
        WakeHandle::wake_all(&mut handles);
        third.sleep(Duration::MAX);
        assert!(third.is_woken());
        first.join().unwrap();
        second.join().unwrap();
    });
}

/// A thread goes to sleep for want of work while another begins some. Every order of beginning and noting with the looks,
/// the announcement and the sleep: the work is found by a look, or the sleep ends. (A fence stands for the time between the
/// announcement and the last look.)
#[test]
fn work_that_begins_is_seen() {
    loom::model(|| {
        let flag = Arc::new(SleepFlag::default());
        let work = Arc::new(AtomicUsize::new(0));
        let worker = {
            let (flag, work) = (Arc::clone(&flag), Arc::clone(&work));
            thread::spawn(move || {
                work.store(1, Ordering::Release);
                flag.note_work();
            })
        };
        flag.announce();
        let is_open = flag.pause(Duration::ZERO);
        assert!(is_open);
        if work.load(Ordering::Acquire) == 0 {
            assert!(flag.sleep());
            assert_eq!(work.load(Ordering::Acquire), 1);
        }
        worker.join().unwrap();
    });
}

/// Every order of closing with going to sleep: the sleep ends.
#[test]
fn a_sleep_ends_when_all_is_closed() {
    loom::model(|| {
        let flag = Arc::new(SleepFlag::default());
        let closing = {
            let flag = Arc::clone(&flag);
            thread::spawn(move || flag.close())
        };
        flag.announce();
        if flag.pause(Duration::ZERO) {
            assert!(!flag.sleep());
        }
        closing.join().unwrap();
    });
}

/// A thread does something alone, of which others know by a lock, and ends it without. Every order of beginning, doing and
/// ending with another's look under the lock: that other finds it not done, or sees all that was done.
#[test]
fn what_is_done_alone_is_seen_when_it_is_over() {
    #[derive(Default)]
    struct Sender {
        is_alone: Mutex<bool>,
        flag: DoneFlag,
        sent: AtomicUsize,
    }
    loom::model(|| {
        let sender = Arc::new(Sender::default());
        let other = {
            let sender = Arc::clone(&sender);
            thread::spawn(move || {
                let is_alone = sender.is_alone.lock().unwrap();
                if *is_alone && sender.flag.is_done() {
                    assert_eq!(sender.sent.load(Ordering::Relaxed), 1);
                }
            })
        };
        let mut is_alone = sender.is_alone.lock().unwrap();
        *is_alone = true;
        sender.flag.begin();
        drop(is_alone);
        sender.sent.store(1, Ordering::Relaxed);
        sender.flag.end();
        other.join().unwrap();
        assert!(sender.flag.is_done());
    });
}

/// Two threads take from a budget that is enough for one. Every order of taking and giving back: no more is taken than
/// there is, and all of it is free at the end.
#[test]
fn no_more_is_taken_than_there_is() {
    loom::model(|| {
        const LIMIT: usize = 3;
        let budget = Arc::new(Budget::new(LIMIT));
        let taken = Arc::new(AtomicUsize::new(0));
        let take = |budget: &Budget, taken: &AtomicUsize| {
            if budget.take(2) {
                assert!(taken.fetch_add(2, Ordering::SeqCst) + 2 <= LIMIT);
                taken.fetch_sub(2, Ordering::SeqCst);
                budget.give_back(2);
            }
        };
        let other = {
            let (budget, taken) = (Arc::clone(&budget), Arc::clone(&taken));
            thread::spawn(move || take(&budget, &taken))
        };
        take(&budget, &taken);
        other.join().unwrap();
        assert!(budget.take(LIMIT) && !budget.take(1));
    });
}

/// A caller gives a call up while a task asks whether it has. Every order of setting and waking with noting the task and
/// asking: the task is told, or woken.
#[test]
fn a_task_whose_call_is_given_up_is_told() {
    #[derive(Default)]
    struct Woken(std::sync::atomic::AtomicBool);

    impl Wake for Woken {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.store(true, std::sync::atomic::Ordering::SeqCst);
        }
    }

    loom::model(|| {
        let flag = CancelFlag::default();
        let setting = {
            let flag = flag.clone();
            thread::spawn(move || flag.set())
        };
        let woken = std::sync::Arc::<Woken>::default();
        let waker = Waker::from(std::sync::Arc::clone(&woken));
        let is_told = flag.poll_set(&Context::from_waker(&waker));
        setting.join().unwrap();
        assert!(is_told || woken.0.load(std::sync::atomic::Ordering::SeqCst));
        assert!(flag.is_set());
    });
}

/// A thread runs a call of one connection, then one of another that has the same number, while two others cancel the
/// first by its number and all of the first connection: only the first is ever cancelled. Orders in which a thread is
/// interrupted more than twice are left out: there are more than can be tried in minutes.
#[test]
fn a_cancelled_run_is_the_one_that_was_meant() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let runs = Arc::new(RunState::default());
        let cancelling: Vec<_> = [Some(7), None]
            .into_iter()
            .map(|key| {
                let runs = Arc::clone(&runs);
                thread::spawn(move || runs.cancel(1, key))
            })
            .collect();
        for owner in [1, 2] {
            runs.set_owner(owner);
            runs.begin(7);
            assert!(owner == 1 || !runs.is_cancelled());
            runs.end();
        }
        for thread in cancelling {
            thread.join().unwrap();
        }
        runs.begin(7);
        assert!(!runs.is_cancelled());
        runs.cancel(2, Some(7));
        assert!(runs.is_cancelled());
    });
}
