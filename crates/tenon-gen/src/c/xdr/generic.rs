//! Values as rpcgen moves them: each by a call of a routine, which encodes, decodes or frees as the stream says.

use tenon_schema::written::Spelling;
use tenon_schema::{Length, Type};

use super::believed::is_believed;
use super::pieces::is_plain_number;
use crate::c::spot::CLvalue;
use crate::c::{Interface, Size, names};

/// Writes calls of routines.
#[derive(Debug, Clone, Copy)]
pub struct RoutineCalls<'a> {
    pub of: Interface<'a>,
    pub size: Size,
}

impl<'a> RoutineCalls<'a> {
    /// The call that moves what is at `at`, in the stream that `xdrs` leads to.
    pub fn call(self, at: &CLvalue<'a>, xdrs: &str) -> String {
        let of = self.of;
        let Some((ty, spelling)) = at.declaration() else {
            return format!("xdr_{} ({xdrs}, {})", at.name(of), at.address(of));
        };
        let routine = names::routine(spelling);
        match ty {
            Type::String(bound) => {
                let (ours, bound) = (
                    self.prefix(*bound, &Type::Char, spelling),
                    limit(of, at, *bound),
                );
                format!("{ours}_string ({xdrs}, {}, {bound})", at.pointer())
            }
            Type::Opaque(Length::Fixed(_)) => {
                let (to, length) = (at.address(of), length(spelling));
                format!("xdr_opaque ({xdrs}, {to}, {length})")
            }
            Type::Opaque(Length::Counted(bound)) => {
                let ours = self.prefix(*bound, &Type::Char, spelling);
                format!("{ours}_bytes ({})", self.counted(at, *bound, xdrs))
            }
            Type::Array(_, Length::Fixed(_)) => vector(at.address(of), spelling, xdrs),
            Type::Array(element, Length::Counted(bound)) => {
                let counted = self.counted(at, *bound, xdrs);
                let ours = self.prefix(*bound, element, spelling);
                let plain = is_plain_number(of, element, spelling);
                match plain.filter(|_| self.size != Size::Small) {
                    Some(bytes) => format!("tenon_xdr_numbers ({counted}, {bytes})"),
                    None => {
                        let words = names::c_type(spelling);
                        format!("{ours}_array ({counted}, sizeof ({words}), (xdrproc_t) {routine})")
                    }
                }
            }
            Type::Optional(_) => {
                let (words, pointer) = (names::c_type(spelling), at.pointer());
                format!(
                    "xdr_pointer ({xdrs}, (char **) {pointer}, sizeof ({words}), (xdrproc_t) {routine})"
                )
            }
            _ => format!("{routine} ({xdrs}, {})", at.address(of)),
        }
    }

    /// Returns the prefix of the routine that moves an array with up to so many elements: libtirpc's trusts the count.
    fn prefix(self, bound: u32, element: &Type, spelling: &Spelling) -> &'static str {
        if !spelling.foreign && is_believed(self.of, bound, element) {
            "xdr"
        } else {
            "tenon_xdr"
        }
    }

    /// Returns the arguments of the routine of a counted array.
    fn counted(self, at: &CLvalue<'a>, bound: u32, xdrs: &str) -> String {
        let (elements, length) = (at.elements(self.of), at.length(self.of));
        let bound = limit(self.of, at, bound);
        format!("{xdrs}, (char **) &{elements}, &{length}, {bound}")
    }
}

/// The routine that moves what is at `at`, if it takes no more than that.
pub fn routine<'a>(of: Interface<'a>, at: &CLvalue<'a>) -> Option<String> {
    match at.declaration() {
        None => Some(format!("xdr_{}", at.name(of))),
        Some((Type::String(_) | Type::Opaque(_) | Type::Array(..) | Type::Optional(_), _)) => None,
        Some((_, spelling)) => Some(names::routine(spelling)),
    }
}

fn vector(to: String, spelling: &Spelling, xdrs: &str) -> String {
    let (words, routine) = (names::c_type(spelling), names::routine(spelling));
    let length = length(spelling);
    format!("xdr_vector ({xdrs}, (char *) {to}, {length}, sizeof ({words}), (xdrproc_t) {routine})")
}

fn length(spelling: &Spelling) -> &str {
    spelling.bound.as_deref().unwrap_or("0")
}

fn limit<'a>(of: Interface<'a>, at: &CLvalue<'a>, bound: u32) -> String {
    let bound = at.bound(of, bound);
    bound.unwrap_or_else(|| format!("{}u", u32::MAX))
}
