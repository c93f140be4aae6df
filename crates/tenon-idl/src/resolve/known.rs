//! Types and numbers that interfaces use without declaring them, because the standards or C's headers do.

use tenon_schema::{Length, Type};

use crate::options::Undeclared;

/// Returns the type that is called `name`, if it is known. Only for names that the interface does not
/// declare.
pub(super) fn undeclared(name: &str, known: Undeclared) -> Option<Type> {
    match known {
        Undeclared::Usual | Undeclared::Allowed => type_called(name),
        Undeclared::OfLibtirpc => type_called(name).filter(|_| OF_LIBTIRPC.contains(&name)),
    }
}

/// Returns the number that the standards call `name`. Only for names that the interface does not define.
pub(super) fn number_called(name: &str) -> Option<i128> {
    Some(match name {
        // RFC 4506 section 4.4, and C
        "TRUE" | "true" => 1,
        "FALSE" | "false" => 0,
        // Flavours of authentication, RFC 5531 section 8.2, with the names of C's <rpc/auth.h>: callbacks of NFS
        // version 4 are switched by them (RFC 7530), and its interface does not define them.
        "AUTH_NONE" | "AUTH_NULL" => 0,
        "AUTH_SYS" | "AUTH_UNIX" => 1,
        "AUTH_SHORT" => 2,
        "AUTH_DH" | "AUTH_DES" => 3,
        "RPCSEC_GSS" => 6,
        _ => return None,
    })
}

/// The names of numbers for which libtirpc has `xdr_` routines.
const OF_LIBTIRPC: [&str; 18] = [
    "u_int",
    "u_long",
    "u_short",
    "u_char",
    "int8_t",
    "uint8_t",
    "u_int8_t",
    "int16_t",
    "uint16_t",
    "u_int16_t",
    "int32_t",
    "uint32_t",
    "u_int32_t",
    "int64_t",
    "uint64_t",
    "u_int64_t",
    "quad_t",
    "u_quad_t",
];

/// Returns the type that C's headers declare as `name`. Only for names that the interface does not declare.
fn type_called(name: &str) -> Option<Type> {
    Some(match name {
        "u_int" | "uint" | "u_long" | "ulong" | "uint32_t" | "u_int32_t" | "uint32" | "u_int32"
        | "rpcprog_t" | "rpcvers_t" | "rpcproc_t" | "rpcprot_t" | "rpcport_t" => Type::Uint,
        "int32_t" | "int32" => Type::Int,
        "u_short" | "ushort" | "uint16_t" | "u_int16_t" | "uint16" => Type::Ushort,
        "int16_t" | "int16" => Type::Short,
        "u_char" | "uchar" | "uint8_t" | "u_int8_t" | "uint8" => Type::Uchar,
        "int8_t" | "int8" => Type::Char,
        "quad_t" | "int64_t" | "int64" | "longlong_t" => Type::Hyper,
        "u_quad_t" | "uint64_t" | "u_int64_t" | "uint64" | "u_longlong_t" => Type::Uhyper,
        "bool_t" => Type::Bool,
        // struct netobj of <rpc/xdr.h>, MAX_NETOBJ_SZ
        "netobj" => Type::Opaque(Length::Counted(1024)),
        // des_block of <rpc/auth_des.h>, as xdr_des_block sends it
        "des_block" => Type::Opaque(Length::Fixed(8)),
        _ => return None,
    })
}
