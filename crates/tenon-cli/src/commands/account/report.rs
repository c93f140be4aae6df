//! An account for people, in the form of Firefly's tables, and for machines.

use std::time::Duration;

use serde_json::{Value as Json, json};
use tenon::{Leg, Owner, PacketStep, Part, PartStats, ProfileStats, Protocol, Way};

use super::measuring::{ProfileFinding, SortedTimes};
use super::packets;
use crate::commands::table::{in_micros, micros, render};

/// The owners in the order of the tables.
pub const OWNERS: [Owner; 4] = [Owner::Client, Owner::Kernel, Owner::Server, Owner::Unknown];

/// Returns the name of the owner of a time.
pub fn owner_name(owner: Owner) -> &'static str {
    match owner {
        Owner::Client => "client",
        Owner::Kernel => "kernel and wire",
        Owner::Server => "server",
        Owner::Unknown => "kernel, wire, server",
    }
}

/// The parts of all ways, in their order.
const PARTS: [Part; 33] = [
    Part::Encode,
    Part::Turn,
    Part::Send,
    Part::Wait,
    Part::CallAway,
    Part::BothAway,
    Part::Packet(Leg::Call, PacketStep::Headers),
    Part::Packet(Leg::Call, PacketStep::SystemCall),
    Part::Packet(Leg::Call, PacketStep::KernelOut),
    Part::Packet(Leg::Call, PacketStep::OutAndWire),
    Part::Packet(Leg::Call, PacketStep::Wire),
    Part::BothWires,
    Part::BothBeyond,
    Part::Beyond,
    Part::Packet(Leg::Call, PacketStep::WireAndIn),
    Part::Packet(Leg::Call, PacketStep::KernelIn),
    Part::Packet(Leg::Call, PacketStep::WakeUp),
    Part::Dispatch,
    Part::Serve,
    Part::Finish,
    Part::ReplyAway,
    Part::Packet(Leg::Reply, PacketStep::Headers),
    Part::Packet(Leg::Reply, PacketStep::SystemCall),
    Part::Packet(Leg::Reply, PacketStep::KernelOut),
    Part::Packet(Leg::Reply, PacketStep::OutAndWire),
    Part::Packet(Leg::Reply, PacketStep::Wire),
    Part::Packet(Leg::Reply, PacketStep::WireAndIn),
    Part::Packet(Leg::Reply, PacketStep::KernelIn),
    Part::Packet(Leg::Reply, PacketStep::WakeUp),
    Part::Find,
    Part::HandOver,
    Part::Decode,
    Part::Leave,
];

/// Returns the parts that any of them has, in the order of the way.
pub fn parts_of(findings: &[&ProfileFinding]) -> Vec<Part> {
    let parts = PARTS.into_iter();
    let had = |part: &Part| findings.iter().any(|it| it.typical(*part).is_some());
    parts.filter(had).collect()
}

/// Returns a phrase for what happens in a part of the way.
pub fn part_name(part: Part) -> &'static str {
    match part {
        Part::Encode => "write header and arguments",
        Part::Turn => "take the turn, number the call",
        Part::CallAway => "send, carry and receive the call",
        Part::Dispatch => "find the service",
        Part::Serve => "decode, execute, encode the result",
        Part::Finish => "make the reply ready",
        Part::ReplyAway => "send, carry and receive the reply",
        Part::BothAway => "send, carry and receive both",
        Part::Send => "send the call: the system call",
        Part::Wait => "until the reply is received",
        Part::Find => "find whose reply it is",
        Part::HandOver => "hand it to the caller: wake it, or wait for it",
        Part::Decode => "decode the result",
        Part::Leave => "leave the channel to others",
        Part::Packet(leg, step) => match (leg, step) {
            (Leg::Call, PacketStep::Headers) => "call: headers, checksum, copy",
            (Leg::Call, PacketStep::SystemCall) => "call: system call",
            (Leg::Call, PacketStep::KernelOut) => "call: kernel out",
            (Leg::Call, PacketStep::Wire) => "call: wire",
            (Leg::Call, PacketStep::KernelIn) => "call: kernel in",
            (Leg::Call, PacketStep::WakeUp) => "call: wake-up",
            (Leg::Call, PacketStep::WireAndIn) => "call: wire, kernel in, wake-up",
            (Leg::Call, PacketStep::OutAndWire) => "call: send, wire",
            (Leg::Reply, PacketStep::Headers) => "reply: headers, checksum, copy",
            (Leg::Reply, PacketStep::SystemCall) => "reply: system call",
            (Leg::Reply, PacketStep::KernelOut) => "reply: kernel out",
            (Leg::Reply, PacketStep::Wire) => "reply: wire",
            (Leg::Reply, PacketStep::KernelIn) => "reply: kernel in",
            (Leg::Reply, PacketStep::WakeUp) => "reply: wake-up",
            (Leg::Reply, PacketStep::WireAndIn) => "reply: wire, kernel in, wake-up",
            (Leg::Reply, PacketStep::OutAndWire) => "reply: send, wire",
        },
        Part::BothWires => "both: wire",
        Part::BothBeyond => "both: wire, and the server's kernel",
        Part::Beyond => "wire, all that the server does, wire",
    }
}

/// Returns the same for machines.
pub fn part_key(part: Part) -> &'static str {
    match part {
        Part::Encode => "encode",
        Part::Turn => "turn",
        Part::CallAway => "call_away",
        Part::Dispatch => "dispatch",
        Part::Serve => "serve",
        Part::Finish => "finish",
        Part::ReplyAway => "reply_away",
        Part::BothAway => "both_away",
        Part::Send => "send",
        Part::Wait => "wait",
        Part::Find => "find",
        Part::HandOver => "hand_over",
        Part::Decode => "decode",
        Part::Leave => "leave",
        Part::Packet(leg, step) => match (leg, step) {
            (Leg::Call, PacketStep::Headers) => "call_headers",
            (Leg::Call, PacketStep::SystemCall) => "call_system_call",
            (Leg::Call, PacketStep::KernelOut) => "call_kernel_out",
            (Leg::Call, PacketStep::Wire) => "call_wire",
            (Leg::Call, PacketStep::KernelIn) => "call_kernel_in",
            (Leg::Call, PacketStep::WakeUp) => "call_wake_up",
            (Leg::Call, PacketStep::WireAndIn) => "call_wire_and_in",
            (Leg::Call, PacketStep::OutAndWire) => "call_out_and_wire",
            (Leg::Reply, PacketStep::Headers) => "reply_headers",
            (Leg::Reply, PacketStep::SystemCall) => "reply_system_call",
            (Leg::Reply, PacketStep::KernelOut) => "reply_kernel_out",
            (Leg::Reply, PacketStep::Wire) => "reply_wire",
            (Leg::Reply, PacketStep::KernelIn) => "reply_kernel_in",
            (Leg::Reply, PacketStep::WakeUp) => "reply_wake_up",
            (Leg::Reply, PacketStep::WireAndIn) => "reply_wire_and_in",
            (Leg::Reply, PacketStep::OutAndWire) => "reply_out_and_wire",
        },
        Part::BothWires => "both_wires",
        Part::BothBeyond => "both_beyond",
        Part::Beyond => "beyond",
    }
}

fn way_key(way: Way) -> &'static str {
    match way {
        Way::Whole => "whole",
        Way::TwoClocks => "two_clocks",
        Way::Client => "client",
    }
}

pub fn owner_key(owner: Owner) -> &'static str {
    match owner {
        Owner::Client => "client",
        Owner::Kernel => "kernel",
        Owner::Server => "server",
        Owner::Unknown => "unknown",
    }
}

/// Microseconds of what is counted in nanoseconds.
pub fn shown(nanos: f64) -> String {
    micros(Duration::from_secs_f64(nanos / 1e9))
}

impl ProfileFinding {
    /// Returns the part of the round trip that `nanos` are, in per cent.
    pub fn share(&self, nanos: f64) -> f64 {
        100.0 * nanos / self.summary.round_trip.typical.max(1.0)
    }

    /// Returns typical nanoseconds of all parts of an owner; `None` if it has none.
    pub fn of_owner(&self, owner: Owner) -> Option<f64> {
        let parts = self.summary.parts.iter();
        let mut parts = parts.filter(|part| part.part.owner() == owner).peekable();
        parts.peek()?;
        Some(parts.map(|part| part.figures.typical).sum())
    }

    /// Returns the typical time of a part, in nanoseconds; `None` if it is none of this way.
    pub fn typical(&self, wanted: Part) -> Option<f64> {
        let mut parts = self.summary.parts.iter();
        let found = parts.find(|figures| figures.part == wanted)?;
        Some(found.figures.typical)
    }

    /// Returns what the steps leave of the time that a clock around the calls says, in nanoseconds. Two clocks are
    /// compared: of very long calls it may be less than nothing.
    fn unaccounted(&self) -> f64 {
        self.measured.typical() - self.sum()
    }

    /// Returns the same as a part of that time, in per cent.
    pub fn unaccounted_percent(&self) -> f64 {
        100.0 * self.unaccounted() / self.measured.typical().max(1.0)
    }

    /// Returns the sum of the parts.
    fn sum(&self) -> f64 {
        let parts = self.summary.parts.iter();
        parts.map(|part| part.figures.typical).sum()
    }
}

/// Returns tables of the round trip by owner and of the way step by step, with notes on how to read them.
pub fn as_tables(finding: &ProfileFinding) -> String {
    let summary = &finding.summary;
    let packets = match finding.packets {
        Some(_) => packets::as_tables(finding) + "\n",
        None => String::new(),
    };
    format!(
        "{} at {}, {}, in us\n\n{}\n{}\n{packets}{}",
        finding.procedure,
        finding.address,
        calls(summary.calls),
        whole(finding),
        way(finding),
        notes(finding)
    )
}

/// Returns the number of calls, in words.
pub fn calls(count: usize) -> String {
    match count {
        1 => "1 call".to_owned(),
        count => format!("{count} calls"),
    }
}

fn whole(finding: &ProfileFinding) -> String {
    let percent = |nanos| format!("{:.1} %", finding.share(nanos));
    let mut rows: Vec<Vec<String>> = OWNERS
        .into_iter()
        .filter_map(|owner| Some((owner, finding.of_owner(owner)?)))
        .map(|(owner, nanos)| vec![owner_name(owner).to_owned(), shown(nanos), percent(nanos)])
        .collect();
    let round_trip = finding.summary.round_trip.typical;
    rows.push(vec![
        "round trip".to_owned(),
        shown(round_trip),
        percent(round_trip),
    ]);
    render(&["whose time", "typical", "share"], &rows, 1)
}

fn way(finding: &ProfileFinding) -> String {
    let row = |whose: &str, what: &str, figures: &ProfileStats| {
        vec![
            whose.to_owned(),
            what.to_owned(),
            shown(figures.typical),
            format!("{:.1} %", finding.share(figures.typical)),
            shown(figures.median as f64),
            shown(figures.p99 as f64),
        ]
    };
    let summary = &finding.summary;
    let parts = summary.parts.iter();
    let mut rows: Vec<Vec<String>> = parts
        .map(|PartStats { part, figures, .. }| {
            row(owner_name(part.owner()), part_name(*part), figures)
        })
        .collect();
    rows.push(row("", "round trip", &summary.round_trip));
    let heading = ["whose time", "step", "typical", "share", "median", "p99"];
    render(&heading, &rows, 2)
}

fn notes(finding: &ProfileFinding) -> String {
    let summary = &finding.summary;
    let measured = &finding.measured;
    let mut notes = vec![format!(
        "Typical is the mean over the middle half of the calls, so that the steps add up: to {} us. A clock\n\
         around the same calls says {} us (median {}, p99 {}): the steps leave {:.1} % of the round trip\n\
         unaccounted, in which the account is kept and that clock is read. As many calls without an account\n\
         took {} us by it (median {}, p99 {}).",
        shown(finding.sum()),
        shown(measured.typical()),
        micros(measured.percentile(50)),
        micros(measured.percentile(99)),
        finding.unaccounted_percent(),
        shown(finding.unfollowed.typical()),
        micros(finding.unfollowed.percentile(50)),
        micros(finding.unfollowed.percentile(99)),
    )];
    if summary.way == Way::Whole {
        notes.push(format!(
            "The system call that sends the call returned after {} us; the server may have the call before.",
            shown(summary.send.typical)
        ));
    }
    notes.extend(on_the_way(finding));
    notes.extend(on_packets(finding));
    notes.join("\n") + "\n"
}

/// Returns notes on how much is known, and of how many calls.
pub fn on_the_way(finding: &ProfileFinding) -> Vec<String> {
    let summary = &finding.summary;
    let mut notes = Vec::new();
    match (summary.way, finding.address.protocol()) {
        (Way::Whole, _) => {}
        (Way::TwoClocks, _) => notes.push(
            "The ends read different clocks, so the way there and the way back are counted together."
                .to_owned(),
        ),
        (Way::Client, Protocol::Onc) => notes.push(
            "ONC RPC has no room for the server's time stamps: only the client's side is known. \
             The lean protocol has."
                .to_owned(),
        ),
        (Way::Client, Protocol::Lean) => notes.push(
            "The server has said nothing of its side, as those do that do not know time stamps."
                .to_owned(),
        ),
    }
    if summary.left_out > 0 {
        let are = match summary.left_out {
            1 => "1 more call is".to_owned(),
            count => format!("{count} more calls are"),
        };
        notes.push(format!(
            "{are} left out, of whose way more or less is known."
        ));
    }
    notes
}

/// Returns notes on packets, if they were followed.
pub fn on_packets(finding: &ProfileFinding) -> Vec<String> {
    let measures = finding.packets.as_ref();
    measures.map_or_else(Vec::new, |measures| packets::notes(finding, measures))
}

/// Returns everything, in microseconds.
pub fn as_json(finding: &ProfileFinding) -> Json {
    let summary = &finding.summary;
    let parts = summary.parts.iter().map(|PartStats { part, figures, .. }| {
        let mut json = figures_as_json(figures);
        json["part"] = part_key(*part).into();
        json["owner"] = owner_key(part.owner()).into();
        json["share"] = (finding.share(figures.typical) / 100.0).into();
        json
    });
    let mut json = json!({
        "address": finding.address.to_string(),
        "procedure": finding.procedure,
        "argument_bytes": finding.bytes.arguments,
        "result_bytes": finding.bytes.result,
        "calls": summary.calls,
        "left_out": summary.left_out,
        "way": way_key(summary.way),
        "measured": measured_as_json(&finding.measured),
        "unaccounted": {
            "typical_us": finding.unaccounted() / 1e3,
            "share": finding.unaccounted_percent() / 100.0,
        },
        "without_account": measured_as_json(&finding.unfollowed),
        "round_trip": figures_as_json(&summary.round_trip),
        "send_system_call": figures_as_json(&summary.send),
        "parts": parts.collect::<Vec<_>>(),
    });
    if let Some(measures) = &finding.packets {
        json["packets"] = packets::as_json(finding, measures);
    }
    json
}

fn measured_as_json(measured: &SortedTimes) -> Json {
    json!({
        "typical_us": measured.typical() / 1e3,
        "median_us": in_micros(measured.percentile(50)),
        "p99_us": in_micros(measured.percentile(99)),
    })
}

fn figures_as_json(figures: &ProfileStats) -> Json {
    json!({
        "typical_us": figures.typical / 1e3,
        "median_us": figures.median as f64 / 1e3,
        "p99_us": figures.p99 as f64 / 1e3,
    })
}
