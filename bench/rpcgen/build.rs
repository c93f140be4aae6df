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
    for file in ["interface", "../marshal/interface", "Makefile"] {
        println!("cargo::rerun-if-changed={file}");
    }
    for file in ["marshal.c", "client.c", "server.c", "values.c", "values.h"] {
        println!("cargo::rerun-if-changed={file}");
    }
    let printed = Command::new("bash").arg("interface").output()?.stdout;
    for (who, write) in [("rpcgen", rpcgen as fn(&Path) -> Outcome), ("tenon", tenon)] {
        let folder = out.join(who);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("echo.x"), &printed)?;
        write(&folder)?;
    }
    make(&out)
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
    let options = c::Options {
        header: "echo.h".to_owned(),
        source: "echo.x".to_owned(),
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
        let of = c::Interface { schema, written };
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

fn make(out: &Path) -> Outcome {
    let mut command = Command::new("make");
    command
        .arg("--silent")
        .arg(format!("out={}", out.display()));
    match command.status()?.success() {
        true => Ok(()),
        false => Err("the C programs do not compile".into()),
    }
}
