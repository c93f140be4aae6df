//! The macros that a C preprocessor defines by itself, for the machine that Tenon runs on: interfaces test the system,
//! the processor, and the sizes of C's types. `tests/for_c.rs` compares them with those of `cpp`.

use std::env::consts;

/// The macros of every C preprocessor, with the version of GCC that clang claims, too.
const ALWAYS: &str = "\
__STDC__ 1
__STDC_HOSTED__ 1
__STDC_VERSION__ 201710L
__GNUC__ 4
__GNUC_MINOR__ 2
__GNUC_PATCHLEVEL__ 1
__CHAR_BIT__ 8
__ORDER_LITTLE_ENDIAN__ 1234
__ORDER_BIG_ENDIAN__ 4321
__ORDER_PDP_ENDIAN__ 3412
__SIZEOF_SHORT__ 2
__SIZEOF_INT__ 4
__SIZEOF_LONG_LONG__ 8
__SIZEOF_FLOAT__ 4
__SIZEOF_DOUBLE__ 8
__SCHAR_MAX__ 0x7f
__SHRT_MAX__ 0x7fff
__INT_MAX__ 0x7fffffff
__LONG_LONG_MAX__ 0x7fffffffffffffffLL
";

const UNIX: &str = "__unix__ 1\n__unix 1\nunix 1\n";
const LINUX: &str = "__linux__ 1\n__linux 1\n__gnu_linux__ 1\nlinux 1\n__ELF__ 1\n";
const APPLE: &str = "__APPLE__ 1\n__MACH__ 1\n";
const WINDOWS: &str = "_WIN32 1\n_WIN64 1\n";

const X86_64: &str = "__x86_64__ 1\n__x86_64 1\n__amd64__ 1\n__amd64 1\n";
const AARCH64: &str = "__aarch64__ 1\n";
const S390X: &str = "__s390x__ 1\n__s390__ 1\n";
const POWERPC64: &str = "__powerpc64__ 1\n__powerpc__ 1\n";

/// C's `long` has 64 bits, as pointers have.
const LP64: &str = "\
__LP64__ 1
_LP64 1
__SIZEOF_LONG__ 8
__SIZEOF_POINTER__ 8
__SIZEOF_SIZE_T__ 8
__LONG_MAX__ 0x7fffffffffffffffL
";

const LITTLE_ENDIAN: &str = "__BYTE_ORDER__ __ORDER_LITTLE_ENDIAN__\n";
const BIG_ENDIAN: &str = "__BYTE_ORDER__ __ORDER_BIG_ENDIAN__\n";

/// Returns a line for each macro: its name and its body.
pub(super) fn text() -> String {
    let system = match consts::OS {
        "linux" => [UNIX, LINUX],
        "macos" => [APPLE, ""],
        "windows" => [WINDOWS, ""],
        _ => ["", ""],
    };
    let processor = match consts::ARCH {
        "x86_64" => X86_64,
        "aarch64" => AARCH64,
        "s390x" => S390X,
        "powerpc64" => POWERPC64,
        _ => "",
    };
    let sizes = if cfg!(all(target_pointer_width = "64", not(windows))) {
        LP64
    } else {
        ""
    };
    let order = if cfg!(target_endian = "little") {
        LITTLE_ENDIAN
    } else {
        BIG_ENDIAN
    };
    [ALWAYS, system[0], system[1], processor, sizes, order].concat()
}
