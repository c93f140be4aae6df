//! Machine code, the interpreter and frames make the same of any bytes, of every type of random interfaces, where values
//! lie as C has them, in every representation, both modes and both dialects of C. C refuses strings that hold a NUL, and
//! takes other memory than frames.
//!
//! The first byte of an input chooses the interface, the second the type, the third the mode, the representation and
//! the dialect.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tenon_exec::layout::CDialect;
use tenon_exec::random::{Random, schemas};
use tenon_exec::{CMessage, CValues, Interface, MessageId};
use tenon_fuzz::engines::{self, Outcome, Read};
use tenon_plan::Representation;
use tenon_schema::{Schema, TypeId};
use tenon_wire::{Buffer, DecodeErrorKind, DecodeMode, Encoder, Lean, Native, Swapped, Xdr};

/// How many there are.
const INTERFACES: usize = 64;

/// An interface in one representation, by all engines.
struct Engines {
    frames: Interface,
    interpreted: CValues,
    compiled: CValues,
}

/// Interfaces in xdr and in lean, each of another dialect than the one before.
static ALL: LazyLock<Vec<[Engines; 2]>> = LazyLock::new(|| {
    let each = (0..).filter_map(|seed| {
        let schema = schemas::schema_for_c(&mut Random::new(seed));
        let dialect = match seed % 2 {
            0 => CDialect::Tenon,
            _ => CDialect::Rpcgen,
        };
        let xdr = Engines::new(&schema, Representation::XDR, dialect)?;
        Some([xdr, Engines::new(&schema, Representation::LEAN, dialect)?])
    });
    each.take(INTERFACES).collect()
});

impl Engines {
    fn new(schema: &Schema, representation: Representation, dialect: CDialect) -> Option<Self> {
        let values = |is_interpreted| {
            CValues::new(schema.clone(), representation, dialect, is_interpreted).ok()
        };
        let compiled = values(false)?;
        assert!(compiled.compile(), "there is machine code");
        Some(Self {
            frames: Interface::with_representation(schema.clone(), representation).ok()?,
            interpreted: values(true)?,
            compiled,
        })
    }

    fn judge<R: Read>(&self, id: TypeId, read: (DecodeMode, &[u8])) {
        let framed = engines::agreed::<R>(&self.frames, id, read);
        let interpreted = recoded::<R>(self.interpreted.message(MessageId::Type(id)), read);
        let compiled = recoded::<R>(self.compiled.message(MessageId::Type(id)), read);
        assert_eq!(interpreted, compiled);
        let is_other = |outcome: &Outcome| {
            use DecodeErrorKind::{HoldsNul, TooMuchMemory};
            matches!(outcome, Err((HoldsNul | TooMuchMemory, _)))
        };
        if !is_other(&framed) && !is_other(&interpreted) {
            assert_eq!(framed, interpreted);
        }
    }
}

fn recoded<R: Read>(message: CMessage<'_>, read: (DecodeMode, &[u8])) -> Outcome {
    engines::outcome::<R>(read, |input| {
        let value = message.read(input)?;
        let mut written = Buffer::default();
        let mut out = Encoder::<R::Written>::over(&mut written);
        assert_eq!(value.encode(&mut out, usize::MAX), Ok(()));
        Ok(written)
    })
}

// The interfaces are made before the first input, and are no part of its time.
fuzz_target!(init: { LazyLock::force(&ALL); }, |input: &[u8]| {
    let [interface, id, how, bytes @ ..] = input else {
        return;
    };
    let [xdr, lean] = &ALL[usize::from(*interface) % INTERFACES];
    let id = TypeId(u32::from(*id) % xdr.frames.schema().types.len() as u32);
    let (mode, how) = engines::mode(*how);
    match how % 3 {
        0 => xdr.judge::<Xdr>(id, (mode, bytes)),
        1 => lean.judge::<Lean<Native>>(id, (mode, bytes)),
        _ => lean.judge::<Lean<Swapped>>(id, (mode, bytes)),
    }
});
