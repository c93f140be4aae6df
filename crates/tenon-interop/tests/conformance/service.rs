//! What the servers of the suite serve, by both protocols, for threads and for tasks.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use tenon::lean::{Interface, Part};
use tenon::wire::{DecodeError, Decoder, EncodeError, Encoder, Lean};
use tenon::{CallInfo, Credential, LeanInput, LeanService, Protocol, Refusal, Service};
use tenon_interop::compiled::torture::Drawing;
use tenon_tokio::{Answer, AsyncService, Call};
use tokio::sync::watch;

pub const PROGRAM: u32 = 0x2000_0c0f;
pub const VERSION: u32 = 3;

/// Returns its arguments.
pub const ECHO: u16 = 1;
/// Returns its arguments when the gate is open.
pub const HOLD: u16 = 2;
/// Returns its arguments, and the gate remembers them.
pub const NOTE: u16 = 3;
/// Fails.
pub const FAIL: u16 = 4;
/// Panics.
pub const PANIC: u16 = 5;
/// Finds that the arguments make no sense.
pub const GARBAGE: u16 = 6;
/// Returns so many bytes as its argument says, which has 4 bytes, the most significant first.
pub const GROW: u16 = 7;
/// Adds 1 to a number of 8 bytes in the caller's order.
pub const ADD: u16 = 8;
/// Raises an exception, with [`details`].
pub const RAISE: u16 = 9;
/// Returns the user that the system says the caller is, as [`WHO`] returns the one that it claims to be.
pub const RUNS_AS: u16 = 11;
/// Returns the user that the caller claims to be, as a number of 4 bytes, the most significant first; nothing if it claims
/// to be none.
pub const WHO: u16 = 10;

/// What the exception of [`RAISE`] brings.
pub fn details() -> Drawing {
    Drawing {
        title: "drawn in vain".into(),
        pixels: vec![1, 2, 3],
        created: 1 << 40,
        ..Drawing::default()
    }
}

/// What the server was built from.
pub fn interface() -> Interface {
    interface_with(7)
}

/// The same, but for a type of this fingerprint. No procedure is known.
pub fn interface_with(point: u64) -> Interface {
    let part = |name: &str, fingerprint| Part {
        name: name.into(),
        fingerprint,
        layout: 0,
        procedure: 0,
    };
    Interface {
        fingerprint: 0x1000 + point,
        parts: vec![
            part("color", 5),
            part("point", point),
            part("line", point + 1),
        ],
        ..Interface::unknown(PROGRAM, VERSION)
    }
}

/// What a server was built from whose ECHO has this fingerprint; NOTE is as ever.
pub fn interface_with_echo(echo: u64) -> Interface {
    let procedure = |name: &str, fingerprint, number: u16| Part {
        name: name.into(),
        fingerprint,
        layout: 0,
        procedure: number.into(),
    };
    let mut interface = interface_with(7);
    interface.fingerprint += echo << 32;
    let procedures = [
        procedure("procedure ECHO", echo, ECHO),
        procedure("procedure NOTE", 3, NOTE),
    ];
    interface.parts.splice(0..0, procedures);
    interface
}

/// Where calls are held until a test lets them go on, and what became of them.
#[derive(Clone)]
pub struct Gate {
    shared: Arc<(Mutex<State>, Condvar)>,
    open: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    is_open: bool,
    held: usize,
    held_most: usize,
    noted: Vec<Vec<u8>>,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            shared: Arc::default(),
            open: watch::Sender::new(false),
        }
    }
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock().unwrap()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.shared.1.notify_all();
    }

    /// Lets all calls go on, those that come later, too.
    pub fn open(&self) {
        self.change(|state| state.is_open = true);
        self.open.send_replace(true);
    }

    fn arrive(&self) {
        self.change(|state| {
            state.held += 1;
            state.held_most = state.held_most.max(state.held);
        });
    }

    fn leave(&self) {
        self.change(|state| state.held -= 1);
    }

    /// Waits until so many calls are held.
    pub fn wait_for(&self, held: usize) {
        let (lock, changed) = &*self.shared;
        let patience = super::rows::PATIENCE;
        let state = lock.lock().unwrap();
        let waited = changed.wait_timeout_while(state, patience, |state| state.held < held);
        assert!(!waited.unwrap().1.timed_out(), "{held} calls never came");
    }

    /// The most calls that were held at a time.
    pub fn held_most(&self) -> usize {
        self.lock().held_most
    }

    /// The arguments of the calls of [`NOTE`], in the order in which they were carried out.
    pub fn noted(&self) -> Vec<Vec<u8>> {
        self.lock().noted.clone()
    }

    fn note(&self, arguments: &[u8]) {
        self.change(|state| state.noted.push(arguments.to_vec()));
    }

    fn hold(&self) {
        self.arrive();
        let (lock, changed) = &*self.shared;
        let state = lock.lock().unwrap();
        let patience = super::rows::PATIENCE;
        drop(changed.wait_timeout_while(state, patience, |state| !state.is_open));
        self.leave();
    }

    async fn hold_task(&self) {
        /// Leaves even if the call is given up.
        struct Held<'g>(&'g Gate);
        impl Drop for Held<'_> {
            fn drop(&mut self) {
                self.0.leave();
            }
        }
        self.arrive();
        let _held = Held(self);
        let mut open = self.open.subscribe();
        let waited = tokio::time::timeout(super::rows::PATIENCE, open.wait_for(|open| *open));
        let _ = waited.await;
    }
}

/// Does what its callers ask for.
#[derive(Clone, Default)]
pub struct Obliging {
    pub gate: Gate,
    /// Whether the calls of a connection are carried out one after the other.
    pub keeps_order: bool,
    /// What it was built from, if that is not [`interface`].
    pub interface: Option<Interface>,
}

impl Obliging {
    fn interface(&self) -> Arc<Interface> {
        Arc::new(self.interface.clone().unwrap_or_else(interface))
    }

    /// Puts the metadata of a call on its reply, whatever becomes of it.
    fn reflect(call: &CallInfo<'_>) {
        for (key, value) in call.metadata() {
            call.append_reply_metadata(key, value).unwrap();
        }
    }

    /// What becomes of a call that is held by nothing.
    fn oblige(&self, call: &CallInfo<'_>, arguments: &[u8]) -> Result<Vec<u8>, Refusal> {
        Self::reflect(call);
        match call.procedure() as u16 {
            RUNS_AS => Ok(call
                .peer()
                .user
                .map_or(Vec::new(), |user| user.to_be_bytes().to_vec())),
            WHO => Ok(match call.peer().credential {
                Credential::Sys(user) => user.uid().to_be_bytes().to_vec(),
                Credential::None => Vec::new(),
            }),
            ECHO | HOLD => Ok(arguments.to_vec()),
            NOTE => {
                self.gate.note(arguments);
                Ok(arguments.to_vec())
            }
            FAIL => Err(Refusal::SystemError("as the test asked".to_owned())),
            RAISE => Err(Refusal::raise(0, "as the test asked", &details())),
            PANIC => panic!("as the test asked"),
            GARBAGE => Err(Decoder::new(&[]).get::<u32>().unwrap_err().into()),
            GROW => {
                let bytes: [u8; 4] = arguments.try_into().unwrap();
                Ok(pattern(u32::from_be_bytes(bytes) as usize))
            }
            _ => Err(Refusal::ProcedureUnavailable),
        }
    }

    fn oblige_lean(
        &self,
        call: &CallInfo<'_>,
        input: &mut LeanInput<'_>,
    ) -> Result<Vec<u8>, Refusal> {
        if call.procedure() as u16 == ADD {
            let number: u64 = match input {
                LeanInput::Native(input) => input.get()?,
                LeanInput::Swapped(input) => input.get()?,
            };
            return Ok((number + 1).to_ne_bytes().to_vec());
        }
        let arguments = rest_lean(input)?;
        self.oblige(call, &arguments)
    }
}

/// Bytes that are not mistaken for others of the same length.
pub fn pattern(length: usize) -> Vec<u8> {
    let block: Vec<u8> = (0..256).map(|at| (at * 31 + length) as u8).collect();
    let mut bytes = block.repeat(length / 256 + 1);
    bytes.truncate(length);
    bytes
}

/// By ONC RPC bytes stand behind their number, and are filled up to words.
pub fn rest(input: &mut Decoder<'_>) -> Result<Vec<u8>, DecodeError> {
    let length = input.get::<u32>()? as usize;
    let padded = input.take(length.next_multiple_of(4))?;
    Ok(padded[..length].to_vec())
}

pub fn rest_lean(input: &mut LeanInput<'_>) -> Result<Vec<u8>, DecodeError> {
    match input {
        LeanInput::Native(input) => Ok(input.take(input.left())?.to_vec()),
        LeanInput::Swapped(input) => Ok(input.take(input.left())?.to_vec()),
    }
}

pub fn put(bytes: &[u8]) -> impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError> + '_ {
    |out| {
        out.put(bytes.len() as u32);
        let room = out.room(bytes.len().next_multiple_of(4));
        let (bytes_room, padding) = room.split_at_mut(bytes.len());
        bytes_room.copy_from_slice(bytes);
        padding.fill(0);
        Ok(())
    }
}

pub fn put_lean(
    bytes: &[u8],
) -> impl FnOnce(&mut Encoder<'_, Lean>) -> Result<(), EncodeError> + '_ {
    |out| {
        out.room(bytes.len()).copy_from_slice(bytes);
        Ok(())
    }
}

impl Service for Obliging {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn keeps_order(&self) -> bool {
        self.keeps_order
    }

    fn call(
        &self,
        call: &CallInfo<'_>,
        arguments: &mut Decoder<'_>,
        result: &mut Encoder<'_>,
    ) -> Result<(), Refusal> {
        let arguments = rest(arguments)?;
        if call.procedure() == u32::from(HOLD) {
            self.gate.hold();
        }
        let made = self.oblige(call, &arguments)?;
        Ok(put(&made)(result)?)
    }

    fn lean(&self) -> Option<&dyn LeanService> {
        Some(self)
    }
}

impl LeanService for Obliging {
    fn interface(&self) -> Arc<Interface> {
        self.interface()
    }

    fn call_lean(
        &self,
        call: &CallInfo<'_>,
        mut arguments: LeanInput<'_>,
        result: &mut Encoder<'_, Lean>,
    ) -> Result<(), Refusal> {
        if call.procedure() == u32::from(HOLD) {
            self.gate.hold();
        }
        let made = self.oblige_lean(call, &mut arguments)?;
        result.room(made.len()).copy_from_slice(&made);
        Ok(())
    }
}

/// The same for tasks, whose calls wait without a thread.
pub struct Patient(pub Obliging);

impl AsyncService for Patient {
    fn program(&self) -> u32 {
        PROGRAM
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn interface(&self) -> Option<Arc<Interface>> {
        Some(self.0.interface())
    }

    async fn call(&self, call: Call) -> Result<Answer, Refusal> {
        if call.procedure() == u32::from(HOLD) {
            self.0.gate.hold_task().await;
        }
        match call.protocol() {
            Protocol::Onc => {
                let made = self.0.oblige(&call.info(), &call.decode(rest)?)?;
                call.answer(put(&made))
            }
            Protocol::Lean => {
                let mut made = Err(Refusal::ProcedureUnavailable);
                call.decode_lean(|input| {
                    made = self.0.oblige_lean(&call.info(), input);
                    Ok(())
                })?;
                match made {
                    Ok(made) => call.answer_lean(put_lean(&made)),
                    Err(refusal) => Ok(call.refuse(refusal)),
                }
            }
        }
    }
}
