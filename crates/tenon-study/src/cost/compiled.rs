//! Stubs that were compiled together with this crate.

use tenon_wire::{Lean, Marshal, Representation, Xdr};

use crate::design::DataMovement;
use crate::entry::{CodecBenchmarks, EncodeBuffer, read, write};

/// Lets a stub enter with the message that some bytes are. `None`: they are none.
pub(super) type Entrance = for<'a> fn(&str, &'a [u8], &mut CodecBenchmarks<'a>) -> Option<()>;

/// A type of the stubs, in each representation that they are made for.
struct StubEntrances {
    xdr: Entrance,
    lean: Entrance,
}

impl StubEntrances {
    fn of<T, X, L>() -> Self
    where
        T: Marshal<X> + Marshal<L> + 'static,
        X: Representation,
        L: Representation,
    {
        Self {
            xdr: enter::<T, X>,
            lean: enter::<T, L>,
        }
    }
}

macro_rules! stubs {
    ($module:ident, $file:literal, $way:ty) => {
        #[allow(
            dead_code,
            missing_docs,
            clippy::all,
            reason = "generated, and not all used"
        )]
        mod $module {
            /// The way in which these stubs move what the representation `R` has.
            pub type Way<R> = $way;

            include!(concat!(env!("OUT_DIR"), $file));
        }
    };
}

macro_rules! table {
    ($($key:pat => $ty:ty, $way:ident::Way;)*) => {
        fn stub(interface: &str, movement: &str, name: &str) -> Option<StubEntrances> {
            match (interface, movement, name) {
                $($key => Some(StubEntrances::of::<$ty, $way::Way<Xdr>, $way::Way<Lean>>()),)*
                _ => None,
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/cost.rs"));

/// Returns the stub of a type of one of the interfaces that were compiled, if there is one.
pub(super) fn find(
    interface: &str,
    representation: tenon_plan::Representation,
    movement: DataMovement,
    name: &str,
) -> Option<Entrance> {
    let stub = stub(interface, movement.name(), name)?;
    match representation {
        tenon_plan::Representation::XDR => Some(stub.xdr),
        tenon_plan::Representation::LEAN => Some(stub.lean),
        _ => None,
    }
}

/// Attributes of before and behind, both there, as many answers have them. No memory is taken: where the
/// pieces lie would decide what the pace is.
const YARDSTICK: &[u8; 104] = &{
    let mut bytes = [0; 104];
    (bytes[3], bytes[31]) = (1, 1);
    bytes
};

/// Lets the work enter by which the pace of the machine is told, which is always the same.
pub fn enter_yardstick(contests: &mut CodecBenchmarks<'_>) {
    let xdr = tenon_plan::Representation::XDR;
    let stub = find("corpus", xdr, DataMovement::EveryPass, "both");
    let entered = stub.and_then(|enter| enter("yardstick", YARDSTICK, contests));
    assert!(
        entered.is_some(),
        "the yardstick is a message of the corpus"
    );
}

fn enter<'a, T, R>(name: &str, bytes: &'a [u8], contests: &mut CodecBenchmarks<'a>) -> Option<()>
where
    T: Marshal<R> + 'static,
    R: Representation,
{
    let value: T = read(bytes).ok()?;
    let mut room = EncodeBuffer::default();
    write(&value, &mut room).ok()?;
    if room.message() != bytes {
        return None;
    }
    contests.enter_stub(name, value, bytes);
    Some(())
}
