//! Values that lie on the wire as they lie in memory, but for the order of the bytes of each number.

/// A value without holes for which every pattern of bytes is a value.
///
/// The macro [`blittable!`](crate::blittable) declares structs that are, and proves it.
///
/// # Safety
/// The type has no padding, owns nothing and does not change behind a shared reference; every pattern of bytes is a value of it; and its bytes are those of the
/// numbers that [`RUNS`](Self::RUNS) lists, which together divide its size.
pub unsafe trait Blittable: Sized + 'static {
    /// The numbers that it consists of, over and over until it ends.
    const RUNS: &'static [Run];
}

/// Numbers of one size, one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Bytes of a number, which change their order together: 1, 2, 4 or 8.
    pub unit: usize,
    /// Count of the numbers.
    pub units: usize,
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        // SAFETY: a primitive number.
        unsafe impl Blittable for $number {
            const RUNS: &'static [Run] = &[Run {
                unit: size_of::<$number>(),
                units: 1,
            }];
        }
    )*};
}

numbers!(i8 u8 i16 u16 i32 u32 i64 u64 f32 f64);

// SAFETY: elements lie one behind the other, so that the array repeats what one of them is.
unsafe impl<T: Blittable, const N: usize> Blittable for [T; N] {
    const RUNS: &'static [Run] = T::RUNS;
}

/// Returns the size of all numbers of a type, if they have the same.
pub(super) const fn unit<T: Blittable>() -> Option<usize> {
    match T::RUNS {
        [run] => Some(run.unit),
        _ => None,
    }
}

/// Returns whether all numbers of a type are single bytes, which no order changes.
pub const fn has_no_order<T: Blittable>() -> bool {
    matches!(unit::<T>(), Some(1))
}

/// A field of a struct, for the macro [`blittable!`](crate::blittable).
#[derive(Debug, Clone, Copy)]
pub struct Part {
    runs: &'static [Run],
    times: usize,
    bytes: usize,
}

impl Part {
    /// A field of type `T`.
    pub const fn of<T: Blittable>() -> Self {
        let (mut bytes, mut index) = (0, 0);
        while index < T::RUNS.len() {
            bytes += T::RUNS[index].unit * T::RUNS[index].units;
            index += 1;
        }
        Self {
            runs: T::RUNS,
            times: match size_of::<T>().checked_div(bytes) {
                Some(times) => times,
                None => 0,
            },
            bytes: size_of::<T>(),
        }
    }

    /// Bytes of all fields.
    pub const fn bytes(parts: &[Self]) -> usize {
        let (mut bytes, mut index) = (0, 0);
        while index < parts.len() {
            bytes += parts[index].bytes;
            index += 1;
        }
        bytes
    }

    /// Returns the number of runs that all fields consist of, neighbours of one unit taken together.
    pub const fn count(parts: &[Self]) -> usize {
        merge::<0>(parts).1
    }

    /// The runs that all fields consist of, `N` as [`count`](Self::count) says.
    pub const fn merged<const N: usize>(parts: &[Self]) -> [Run; N] {
        merge(parts).0
    }
}

/// The first `N` runs, and how many there are.
const fn merge<const N: usize>(parts: &[Part]) -> ([Run; N], usize) {
    let mut runs = [Run { unit: 1, units: 0 }; N];
    let (mut count, mut unit, mut index) = (0, 0, 0);
    while index < parts.len() {
        let Part {
            runs: of, times, ..
        } = parts[index];
        index += 1;
        // A field of one unit is one run, however long it is.
        let (rounds, factor) = match of.len() {
            1 => (if times == 0 { 0 } else { 1 }, times),
            _ => (times, 1),
        };
        let mut at = 0;
        while at < rounds * of.len() {
            let run = of[at % of.len()];
            at += 1;
            if run.unit != unit {
                unit = run.unit;
                count += 1;
                if count <= N {
                    runs[count - 1] = Run { unit, units: 0 };
                }
            }
            if count <= N {
                runs[count - 1].units += run.units * factor;
            }
        }
    }
    (runs, count)
}

/// Declares a struct that is [`Blittable`](crate::Blittable), or does not compile. It is laid out
/// as C does.
///
/// ```
/// tenon_wire::blittable! {
///     /// Where something is.
///     #[derive(Debug, Clone, Copy)]
///     pub struct Point {
///         pub x: i32,
///         pub y: i32,
///     }
/// }
/// ```
///
/// A hole is refused:
///
/// ```compile_fail,E0080
/// tenon_wire::blittable! {
///     #[derive(Clone)]
///     pub struct Padded {
///         pub small: u8,
///         pub large: u32,
///     }
/// }
/// ```
///
/// So is a field of which not every pattern of bytes is a value:
///
/// ```compile_fail,E0277
/// tenon_wire::blittable! {
///     #[derive(Clone)]
///     pub struct Checked {
///         pub flag: bool,
///     }
/// }
/// ```
///
/// And whatever might make another struct of it:
///
/// ```compile_fail
/// tenon_wire::blittable! {
///     #[repr(packed)]
///     pub struct Packed {
///         pub small: u8,
///     }
/// }
/// ```
#[macro_export]
macro_rules! blittable {
    (
        $(#[doc = $doc:expr])*
        $(#[deprecated $(= $reason:literal)?])?
        #[derive($($derive:tt)*)]
        $visibility:vis struct $name:ident {
            $(
                $(#[doc = $field_doc:expr])*
                $(#[deprecated $(= $field_reason:literal)?])?
                $(#[serde($($field_serde:tt)*)])?
                $field_visibility:vis $field:ident: $ty:ty
            ),* $(,)?
        }
    ) => {
        $(#[doc = $doc])*
        $(#[deprecated $(= $reason)?])?
        #[repr(C)]
        #[derive($($derive)*)]
        $visibility struct $name {
            $(
                $(#[doc = $field_doc])*
                $(#[deprecated $(= $field_reason)?])?
                $(#[serde($($field_serde)*)])?
                $field_visibility $field: $ty
            ),*
        }

        // SAFETY: each field is blittable, and without a hole, as is asserted, the struct consists
        // of them alone, one behind the other, as C lays them out. No attribute
        // is let through that could change it: derivations add to it, one of `serde` tells one of these how, and
        // `deprecated` has the compiler warn.
        unsafe impl $crate::kernels::Blittable for $name {
            const RUNS: &'static [$crate::kernels::Run] = {
                const PARTS: &[$crate::kernels::Part] = &[$($crate::kernels::Part::of::<$ty>()),*];
                const COUNT: usize = $crate::kernels::Part::count(PARTS);
                assert!(
                    $crate::kernels::Part::bytes(PARTS) == ::core::mem::size_of::<$name>(),
                    "there is a hole between the fields or behind the last one"
                );
                &$crate::kernels::Part::merged::<COUNT>(PARTS)
            };
        }

        // A hole is found even where nothing is moved.
        const _: &[$crate::kernels::Run] = <$name as $crate::kernels::Blittable>::RUNS;
    };
}
