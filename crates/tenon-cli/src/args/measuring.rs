//! What commands take that measure marshalling.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::{InterfaceArgs, RepresentationArg};

#[derive(Debug, Args)]
pub struct StudyArgs {
    /// Measure for a moment only
    #[arg(long)]
    pub quick: bool,

    /// How items lie on the wire; with `lean` no design has to change the order of bytes
    #[arg(long, value_enum, default_value = "xdr")]
    pub representation: RepresentationArg,

    /// Write everything that was measured to FILE; `-` prints it instead of the tables
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,

    /// Draw the tables into DIR, which is made if need be
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub svg: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum EngineArg {
    /// Stubs made at build time
    Compiled,
    /// Machine code made at bind time
    Machine,
    /// The interpreter
    Interp,
}

#[derive(Debug, Args)]
pub struct CostArgs {
    /// The interface file; `-` reads it from stdin
    #[arg(value_hint = ValueHint::FilePath, required_unless_present = "export")]
    pub file: Option<PathBuf>,

    /// A type or procedure; all procedures if left out, or all types if there are none
    pub name: Option<String>,

    /// What runs the plans
    #[arg(long, value_enum, default_value = "compiled")]
    pub engine: EngineArg,

    /// How items lie on the wire
    #[arg(long, value_name = "NAME", default_value = "xdr")]
    pub representation: RepresentationArg,

    /// How long everything is that varies: bytes or elements, up to its bound
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub length: u64,

    /// How long one field is (repeatable)
    #[arg(long, value_name = "FIELD=N", value_parser = parse_length)]
    pub lengths: Vec<(String, u64)>,

    /// Which arm a union has, by a label; else the first one that holds something (repeatable)
    #[arg(long = "arm", value_name = "UNION=LABEL", value_parser = parse_arm)]
    pub arms: Vec<(String, String)>,

    /// Measure this machine again
    #[arg(long)]
    pub calibrate: bool,

    /// Measure this machine for a moment only, and do not keep what is found
    #[arg(long)]
    pub quick: bool,

    /// Predict for the machine whose parameters are in FILE, which `--export` has written there
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath,
        conflicts_with_all = ["calibrate", "quick", "check", "export"])]
    pub machine: Option<PathBuf>,

    /// Write the parameters of this machine to FILE, which `--machine` takes on another one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "quick")]
    pub export: Option<PathBuf>,

    /// Measure the messages, with random values, beside what is predicted of them
    #[arg(long, conflicts_with_all = ["name", "length", "lengths", "arms"])]
    pub check: bool,

    /// Print everything as JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub interface: InterfaceArgs,
}

fn parse_length(text: &str) -> Result<(String, u64), String> {
    let (name, length) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` is not FIELD=N; write data=8192"))?;
    let length = length
        .parse()
        .map_err(|_| format!("`{length}` is no length"))?;
    Ok((name.to_owned(), length))
}

fn parse_arm(text: &str) -> Result<(String, String), String> {
    let (name, label) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` is not UNION=LABEL; write post_op_attr=FALSE"))?;
    Ok((name.to_owned(), label.to_owned()))
}
