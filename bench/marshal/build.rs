//! Makes both sides' stubs of the section `marshal` from one interface: Tenon's in Rust and
//! rpcgen's in C; and the names of the members of the widest record, for the peers' types.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed=interface");
    let printed = Command::new("bash").arg("interface").output()?;
    fs::write(out.join("marshal.x"), printed.stdout)?;
    tenon_build::Builder::new()
        .views(true)
        .compile(out.join("marshal.x"))?;
    rpcgen(&out, "-h", "marshal.h")?;
    rpcgen(&out, "-c", "marshal_xdr.c")?;
    compile(&out);
    fs::write(out.join("members.rs"), with_members())?;
    Ok(())
}

fn rpcgen(out: &Path, what: &str, file: &str) -> Outcome {
    let _ = fs::remove_file(out.join(file));
    let mut command = Command::new("rpcgen");
    command.args(["-C", what, "-o", file, "marshal.x"]);
    match command.current_dir(out).status()?.success() {
        true => Ok(()),
        false => Err(format!("rpcgen cannot make {file}").into()),
    }
}

/// rpcgen's routines, and the door to them, with what a user of libtirpc compiles with.
fn compile(out: &Path) {
    println!("cargo::rerun-if-changed=libtirpc.c");
    println!("cargo::rustc-link-lib=tirpc");
    cc::Build::new()
        .files([PathBuf::from("libtirpc.c"), out.join("marshal_xdr.c")])
        .includes([out, Path::new("/usr/include/tirpc")])
        .opt_level(2)
        .warnings(false)
        .compile("marshal_libtirpc");
}

/// A macro that hands the names of all members of `Members1000` to another macro.
fn with_members() -> String {
    let names: Vec<String> = (1..=1000).map(|member| format!("m{member}")).collect();
    let names = names.join(" ");
    format!("macro_rules! with_members {{ ($then:ident) => {{ $then! {{ {names} }} }}; }}\n")
}
