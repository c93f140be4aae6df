//! `tenon completions`.

use clap::CommandFactory;

use crate::args::CliArgs;
use crate::failure::CommandFailure;
use crate::output;

pub fn run(shell: clap_complete::Shell) -> Result<(), CommandFailure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CliArgs::command(), "tenon", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
