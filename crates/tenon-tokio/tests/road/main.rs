//! Counts the road of a Null call: the files of ours that it enters, how often, and the instructions it takes, at
//! either end, by either protocol over TCP, between threads and between tasks. `./test road` runs it, as it needs
//! valgrind and optimised code (the profile `road`); `cargo test` alone leaves it out.
//!
//! # What is counted
//!
//! The process of one end runs under callgrind, its peer does not. What 200 calls have counted is subtracted from
//! what 600 have, so that connecting, learning and ending do not count.
//!
//! A file is *entered* by a call that the processor makes to a function of this file out of a function of another
//! file. Functions that the compiler has put into their callers are not entered, they belong to the file of the
//! caller; there is nothing to jump to for a reader of the machine code, and nothing to pay. This is the reading of
//! "a Null call enters at most 12 files (tasks 14), each once" that is asserted. The stricter one, by which each file
//! counts of which a single instruction is executed, does not hold (some 40 files at a client, 20 at a server): most
//! of these are accessors of two or three instructions. It is bounded by what it is today and four, so that it does
//! not grow unseen.
//!
//! Each file is entered once between threads. Between tasks it cannot be: a call is two polls of its future and one
//! of the task that receives, and each of them asks tokio, takes the lock and sends or receives. So there the number
//! of files is asserted, and the entries of one and of all together are bounded by what they are.
//!
//! Every file that is entered is named in ARCHITECTURE.md where it describes the road.

#![allow(clippy::unwrap_used)]

mod callgrind;
mod programs;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::{env, fmt, fs};

use callgrind::Profile;
use programs::{Driver, End};

/// The numbers of calls whose counts are subtracted from each other.
const FEW: u32 = 200;
const MANY: u32 = 600;

/// Times that calls are counted which take too much: a server that finds nothing in its socket looks again, and how often
/// that is differs from one count to the next, by up to 60 instructions a call.
const ATTEMPTS: usize = 3;

/// The protocols, as the prefix of the address says them.
const PROTOCOLS: [(&str, &str); 2] = [("ONC RPC", ""), ("lean", "lean+")];

/// What one end of a call is allowed.
struct Limits {
    driver: Driver,
    /// Files that are entered.
    files: usize,
    /// Entries of one file, and of all together.
    entries_of_one: u64,
    entries: u64,
    /// Files of which instructions are executed, at a client and at a server.
    executed: [usize; 2],
    /// Instructions of both ends together, by ONC RPC and by the lean protocol.
    instructions: [u64; 2],
}

/// Instructions between threads may be 15 % more by ONC RPC, and 20 % more by the lean protocol, than before there was one
/// connection core for all drivers: 2324 and 1576, counted in the same way, with the same compiler. By ONC RPC they are a
/// quarter fewer. By the lean protocol they are 16 to 18 % more, and are to be 15 again: a call of it has come to look for
/// what its client and its thread have it carry, for a server that asks it to go away, and for a peer that is silent.
/// Those between tasks are bounded by what they are, and some room for tokio's.
const LIMITS: [Limits; 2] = [
    Limits {
        driver: Driver::Threads,
        files: 12,
        entries_of_one: 1,
        entries: 12,
        executed: [45, 34],
        instructions: [2324 * 115 / 100, 1576 * 120 / 100],
    },
    Limits {
        driver: Driver::Tasks,
        files: 14,
        entries_of_one: 4,
        entries: 24,
        executed: [52, 36],
        instructions: [12_000, 12_000],
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let Some(role) = arguments.first().filter(|first| !first.starts_with('-')) {
        programs::run(role, &arguments[1..]);
        return ExitCode::SUCCESS;
    }
    let mut faults = Vec::new();
    let map = road_of_the_map();
    for limits in &LIMITS {
        for index in 0..PROTOCOLS.len() {
            let mut found = Vec::new();
            for _ in 0..ATTEMPTS {
                found = faults_of(limits, index, &map);
                if found.is_empty() {
                    break;
                }
            }
            faults.extend(found);
        }
    }
    if faults.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("{}", faults.join("\n"));
    ExitCode::FAILURE
}

/// Counts what calls by one protocol take; returns what is beyond the limits.
fn faults_of(limits: &Limits, index: usize, map: &str) -> Vec<String> {
    let (protocol, prefix) = PROTOCOLS[index];
    let driver = limits.driver;
    let mut faults = Vec::new();
    let mut instructions = 0;
    for (end, executed) in [End::Client, End::Server].into_iter().zip(limits.executed) {
        let road = Road::count(driver, end, prefix);
        println!("{protocol} between {driver}, {end:?}: {road}");
        instructions += road.instructions;
        let complaints = road.complaints(limits, executed, map);
        faults.extend(
            complaints
                .map(|complaint| format!("{protocol} between {driver}, {end:?}: {complaint}")),
        );
    }
    let most = limits.instructions[index];
    println!("{protocol} between {driver}: {instructions} instructions, at most {most}\n");
    if instructions > most {
        faults.push(format!(
            "{protocol} between {driver}: {instructions} instructions, more than {most}"
        ));
    }
    faults
}

/// The section of ARCHITECTURE.md about the road, which names every file that is entered.
fn road_of_the_map() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ARCHITECTURE.md");
    let map = fs::read_to_string(path).unwrap();
    let from = map.find("\n## The road of a call").unwrap();
    let section = &map[from + 1..];
    section[..section.find("\n## ").unwrap()].to_owned()
}

/// What one call takes at one end.
struct Road {
    instructions: u64,
    /// Instructions by file, whether entered or put into a function of another.
    executed: BTreeMap<String, u64>,
    /// Entries by file.
    entries: BTreeMap<String, u64>,
}

impl Road {
    fn count(driver: Driver, end: End, prefix: &str) -> Self {
        let few = Profile::parse(&programs::profile(driver, end, prefix, FEW));
        let many = Profile::parse(&programs::profile(driver, end, prefix, MANY));
        let calls = u64::from(MANY - FEW);
        // What happens now and then, such as a tick of the watchdog, is less than half of once a call.
        let of_one_call = |few: u64, many: u64| (many.saturating_sub(few) + calls / 2) / calls;
        let by_file = |few: &BTreeMap<String, u64>, many: &BTreeMap<String, u64>| {
            let counts = many.iter().map(|(file, count)| {
                let before = few.get(file).copied().unwrap_or_default();
                (file.clone(), of_one_call(before, *count))
            });
            counts.filter(|(_, count)| *count > 0).collect()
        };
        Self {
            instructions: of_one_call(few.instructions, many.instructions),
            executed: by_file(&few.executed, &many.executed),
            entries: by_file(&few.entries, &many.entries),
        }
    }

    /// Says what is beyond the limits.
    fn complaints(
        &self,
        limits: &Limits,
        most_executed: usize,
        map: &str,
    ) -> impl Iterator<Item = String> {
        let mut found = Vec::new();
        // A road without files was not counted: the code has no lines, or lies elsewhere.
        if self.entries.is_empty() || self.executed.is_empty() {
            found.push("no file of ours was entered".to_owned());
        }
        if self.entries.len() > limits.files {
            found.push(format!("enters more than {} files", limits.files));
        }
        if self.entries.values().sum::<u64>() > limits.entries {
            found.push(format!("enters files more than {} times", limits.entries));
        }
        if self.executed.len() > most_executed {
            found.push(format!("executes code of more than {most_executed} files"));
        }
        for (file, times) in &self.entries {
            if *times > limits.entries_of_one {
                found.push(format!("enters {file} {times} times"));
            }
            if !map.contains(name_on_the_map(file)) {
                found.push(format!("ARCHITECTURE.md does not name {file} on the road"));
            }
        }
        found.into_iter()
    }
}

/// The name of a file, behind its folder if it is that of a module with children.
fn name_on_the_map(file: &str) -> &str {
    let mut slashes = file.rmatch_indices('/');
    let at = if file.ends_with("/mod.rs") {
        slashes.nth(1)
    } else {
        slashes.next()
    };
    at.map_or(file, |(at, _)| &file[at + 1..])
}

impl fmt::Display for Road {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} instructions, of {} files; {} files entered",
            self.instructions,
            self.executed.len(),
            self.entries.len()
        )?;
        for (file, times) in &self.entries {
            writeln!(f, "  {times} {file}")?;
        }
        Ok(())
    }
}
