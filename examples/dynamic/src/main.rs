//! Calls a procedure of any interface: `dynamic ADDRESS FILE PROCEDURE JSON`; without a procedure, names
//! those there are.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use tenon_example_dynamic::Remote;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dynamic: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [address, file] => {
            let remote = Remote::open(address, Path::new(file))?;
            for procedure in remote.interface().procedures() {
                println!("{}.{}", procedure.program().name, procedure.name());
            }
        }
        [address, file, procedure, arguments] => {
            let remote = Remote::open(address, Path::new(file))?;
            let arguments = tenon_exec::json::parse(arguments)?;
            println!("{}", remote.call_json(procedure, &arguments)?);
        }
        _ => return Err("usage: dynamic ADDRESS FILE [PROCEDURE JSON]".into()),
    }
    Ok(())
}
