//! One procedure at several addresses, side by side: what a protocol and a transport take of its time.

use tenon::Owner;

use super::measuring::ProfileFinding;
use super::report::{OWNERS, owner_name, part_name, parts_of, shown};
use crate::commands::table::render;

/// Returns the columns by owner of the time, and step by step. Each finding has a column, under its name.
pub fn side_by_side(
    findings: &[ProfileFinding],
    name: impl Fn(&ProfileFinding) -> String,
) -> String {
    let names: Vec<String> = findings.iter().map(name).collect();
    let findings: Vec<&ProfileFinding> = findings.iter().collect();
    format!(
        "{}\n{}",
        by_owner(&names, &findings),
        by_step(&names, &findings)
    )
}

fn by_owner(names: &[String], findings: &[&ProfileFinding]) -> String {
    let names = names.iter().flat_map(|name| [name, "share"]);
    let heading: Vec<&str> = ["whose time"].into_iter().chain(names).collect();
    let row = |name: &str, nanos: &dyn Fn(&ProfileFinding) -> Option<f64>| {
        let cells = findings.iter().flat_map(|finding| match nanos(finding) {
            Some(nanos) => [shown(nanos), format!("{:.1} %", finding.share(nanos))],
            None => ["-".to_owned(), "-".to_owned()],
        });
        let first = [name.to_owned()].into_iter();
        first.chain(cells).collect::<Vec<_>>()
    };
    let has = |owner: &Owner| {
        let mut findings = findings.iter();
        findings.any(|finding| finding.of_owner(*owner).is_some())
    };
    let owners = OWNERS.into_iter().filter(has);
    let mut rows: Vec<_> = owners
        .map(|owner| row(owner_name(owner), &|finding| finding.of_owner(owner)))
        .collect();
    let whole = |finding: &ProfileFinding| Some(finding.summary.round_trip.typical);
    rows.push(row("round trip", &whole));
    render(&heading, &rows, 1)
}

fn by_step(names: &[String], findings: &[&ProfileFinding]) -> String {
    let names = names.iter().map(String::as_str);
    let heading: Vec<&str> = ["whose time", "step"].into_iter().chain(names).collect();
    let row = |whose: &str, what: &str, cell: &dyn Fn(&ProfileFinding) -> String| {
        let cells = findings.iter().map(|finding| cell(finding));
        let first = [whose.to_owned(), what.to_owned()].into_iter();
        first.chain(cells).collect::<Vec<_>>()
    };
    let parts = parts_of(findings).into_iter();
    let mut rows: Vec<_> = parts
        .map(|part| {
            let typical = |finding: &ProfileFinding| match finding.typical(part) {
                Some(nanos) => shown(nanos),
                None => "-".to_owned(),
            };
            row(owner_name(part.owner()), part_name(part), &typical)
        })
        .collect();
    rows.push(row("", "round trip", &|finding| {
        shown(finding.summary.round_trip.typical)
    }));
    rows.push(row("", "by a clock around the calls", &|finding| {
        shown(finding.measured.typical())
    }));
    rows.push(row("", "unaccounted by the steps", &|finding| {
        format!("{:.1} %", finding.unaccounted_percent())
    }));
    rows.push(row("", "calls without an account", &|finding| {
        shown(finding.unfollowed.typical())
    }));
    render(&heading, &rows, 2)
}
