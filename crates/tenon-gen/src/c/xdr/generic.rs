//! What only C knows enough of, as rpcgen moves it: by a call of libtirpc's routine or of the program's own, which does
//! whatever the stream is for.

use tenon_schema::{Length, Type};

use crate::c::spot::Spot;
use crate::c::{Interface, names};

/// The call that moves what is at `at`: of a type that is declared elsewhere, or an array whose length C alone knows.
pub fn call<'a>(of: Interface<'a>, at: &Spot<'a>) -> String {
    let to = at.address(of);
    let Some((ty, spelling)) = at.resolved(of) else {
        return format!("xdr_{} (xdrs, {to})", at.name(of));
    };
    let length = spelling.bound.as_deref().unwrap_or("0");
    let routine = names::routine(spelling);
    match ty {
        Type::Opaque(Length::Fixed(_)) => format!("xdr_opaque (xdrs, {to}, {length})"),
        Type::Array(_, Length::Fixed(_)) => {
            let of = names::c_type(spelling);
            format!(
                "xdr_vector (xdrs, (char *) {to}, {length}, sizeof ({of}), (xdrproc_t) {routine})"
            )
        }
        _ => format!("{routine} (xdrs, {to})"),
    }
}
