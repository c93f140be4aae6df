//! Writes the C files of both sides from one interface, and compiles the same programs with either.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use tenon_gen::c;
use tenon_idl::{Output, Style, Undeclared};

type Outcome = Result<(), Box<dyn Error>>;

/// What a file is, by rpcgen's option, and how its name ends.
const FILES: [(&str, &str, Output); 4] = [
    ("-h", ".h", Output::Header),
    ("-c", "_xdr.c", Output::Xdr),
    ("-l", "_clnt.c", Output::Client),
    ("-m", "_svc.c", Output::Server),
];

fn main() -> Outcome {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for file in ["interface", "nested.x", "../marshal/interface", "Makefile"] {
        println!("cargo::rerun-if-changed={file}");
    }
    for file in ["marshal.c", "client.c", "server.c", "values.c", "values.h"] {
        println!("cargo::rerun-if-changed={file}");
    }
    let printed = Command::new("bash").arg("interface").output()?.stdout;
    println!("cargo::rerun-if-env-changed=PKG_CONFIG_PATH");
    let mut makers = vec![("rpcgen", rpcgen as fn(&Path) -> Outcome), ("tenon", tenon)];
    if has_library()? {
        makers.push(("fast", fast));
    }
    for (who, write) in &makers {
        let folder = out.join(who);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("echo.x"), &printed)?;
        write(&folder)?;
    }
    let names: Vec<&str> = makers.iter().map(|(who, _)| *who).collect();
    make(&out, &names)
}

/// Whether the C library is installed, which `bench/run` does, and `cargo clippy` does not need.
fn has_library() -> Result<bool, std::io::Error> {
    let mut command = Command::new("pkg-config");
    let status = command.args(["--exists", "tenon-tirpc"]).status()?;
    Ok(status.success())
}

/// What rpcgen writes.
fn rpcgen(folder: &Path) -> Outcome {
    for (option, ending, _) in FILES {
        let file = format!("echo{ending}");
        // It overwrites nothing.
        let _ = fs::remove_file(folder.join(&file));
        let mut command = Command::new("rpcgen");
        command.args(["-C", option, "-o", &file, "echo.x"]);
        if !command.current_dir(folder).status()?.success() {
            return Err(format!("rpcgen cannot make {file}").into());
        }
    }
    Ok(())
}

/// What `tenon rpcgen` writes.
fn tenon(folder: &Path) -> Outcome {
    generate(folder, false)
}

/// What `tenon rpcgen --fast` writes.
fn fast(folder: &Path) -> Outcome {
    generate(folder, true)
}

fn generate(folder: &Path, fast: bool) -> Outcome {
    let options = c::Options {
        header: "echo.h".to_owned(),
        source: "echo.x".to_owned(),
        fast,
        ..c::Options::default()
    };
    for (_, ending, output) in FILES {
        let read = tenon_idl::Options {
            output,
            undeclared: Undeclared::OfLibtirpc,
            ..tenon_idl::Options::default()
        };
        let parsed = tenon_idl::parse_file(&folder.join("echo.x"), &read);
        let (Some(schema), Some(written)) = (&parsed.schema, &parsed.written) else {
            return Err(parsed.render(Style::Plain).into());
        };
        let of = c::Interface {
            schema,
            written,
            dialect: c::Dialect::Libtirpc,
        };
        let text = match output {
            Output::Header => of.header(&options),
            Output::Xdr => of.xdr(&options)?,
            Output::Client => of.client(&options),
            _ => of.server(&options),
        };
        fs::write(folder.join(format!("echo{ending}")), text)?;
    }
    Ok(())
}

fn make(out: &Path, makers: &[&str]) -> Outcome {
    let mut command = Command::new("make");
    command
        .arg("--silent")
        .arg(format!("out={}", out.display()))
        .arg(format!("makers={}", makers.join(" ")));
    match command.status()?.success() {
        true => Ok(()),
        false => Err("the C programs do not compile".into()),
    }
}
