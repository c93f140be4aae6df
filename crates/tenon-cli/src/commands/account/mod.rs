//! `tenon account`: where the time of a call goes.

mod difference;
mod report;
mod subject;
mod timeline;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use tenon::{Account, Address, Client, Summary};

use crate::args::AccountArgs;
use crate::commands::{connect, dynamic};
use crate::failure::Failure;
use crate::output;
use subject::{Bytes, Subject};

/// Calls before those that count: connections, caches and branch predictors are warm then, and it is
/// known what the server can say.
const WARM_UP: u32 = 100;

/// Calls of one procedure before it is the other one's turn: what changes on the machine meanwhile
/// concerns both.
const TURN: u32 = 50;

/// What was found out of one procedure.
pub struct Finding<'a> {
    /// What was called.
    pub address: &'a Address,
    /// The procedure's name.
    pub procedure: &'a str,
    /// How large its messages are.
    pub bytes: Bytes,
    /// The account.
    pub summary: Summary,
    /// What the calls took by a clock around them, sorted.
    pub measured: Vec<Duration>,
}

pub fn run(args: &AccountArgs) -> Result<(), Failure> {
    let address = connect::address(&args.address)?;
    let representation = dynamic::representation(address.protocol());
    let interface = args.interface.interface_in(&args.file, representation)?;
    interface.compile();
    let subjects = subject::find(args, &interface, representation)?;
    let (program, version) = subject::common(&subjects)?;
    let client = connect::client(&address, &args.options, program.number, version.number)?;
    let made_from = dynamic::made_from(interface.schema(), program, version);
    let client = client.with_interface(made_from);
    if cfg!(debug_assertions) {
        eprintln!("tenon: built without optimisation, so these are not the figures to quote");
    }
    let mut measurings = Vec::new();
    for subject in &subjects {
        measurings.push(Measuring::begin(subject, &client, &address, args.calls)?);
    }
    while measurings.iter().any(|measuring| measuring.left > 0) {
        for measuring in &mut measurings {
            measuring.turn()?;
        }
    }
    let findings: Result<Vec<_>, _> = measurings.into_iter().map(Measuring::end).collect();
    show(args, &findings?)
}

fn show(args: &AccountArgs, findings: &[Finding<'_>]) -> Result<(), Failure> {
    if let Some(file) = &args.svg {
        write(file, &timeline::svg(findings))?;
    }
    match (findings, args.json) {
        ([small, large], true) => output::print_json(&difference::as_json(small, large), false),
        ([small, large], false) => output::print(&difference::as_tables(small, large)),
        (findings, true) => findings
            .iter()
            .try_for_each(|finding| output::print_json(&report::as_json(finding), false)),
        (findings, false) => findings
            .iter()
            .try_for_each(|finding| output::print(&report::as_tables(finding))),
    }
}

/// A procedure that is called again and again.
struct Measuring<'a> {
    subject: &'a Subject<'a>,
    address: &'a Address,
    account: Account,
    /// With the account.
    client: Client,
    bytes: Bytes,
    /// Calls still to be made.
    left: u32,
    measured: Vec<Duration>,
}

impl<'a> Measuring<'a> {
    fn begin(
        subject: &'a Subject<'a>,
        client: &Client,
        address: &'a Address,
        calls: u32,
    ) -> Result<Self, Failure> {
        let bytes = subject.bytes(client, address)?;
        let account = Account::with(1, calls as usize);
        let mut measuring = Self {
            subject,
            address,
            client: client.with_account(&account),
            account,
            bytes,
            left: calls,
            measured: Vec::with_capacity(calls as usize),
        };
        for _ in 0..WARM_UP {
            measuring.call()?;
        }
        measuring.account.clear();
        measuring.measured.clear();
        Ok(measuring)
    }

    fn turn(&mut self) -> Result<(), Failure> {
        for _ in 0..TURN.min(self.left) {
            self.call()?;
            self.left -= 1;
        }
        Ok(())
    }

    fn call(&mut self) -> Result<(), Failure> {
        let begin = Instant::now();
        let result = self.subject.call(&self.client);
        let took = begin.elapsed();
        result.map_err(|error| connect::failure(self.address, &error))?;
        self.measured.push(took);
        Ok(())
    }

    fn end(mut self) -> Result<Finding<'a>, Failure> {
        self.measured.sort_unstable();
        Ok(Finding {
            address: self.address,
            procedure: &self.subject.name,
            bytes: self.bytes,
            summary: self.account.summary().ok_or_else(Failure::explained)?,
            measured: self.measured,
        })
    }
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    fs::write(file, text)
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", file.display())))?;
    eprintln!("wrote {}", file.display());
    Ok(())
}
