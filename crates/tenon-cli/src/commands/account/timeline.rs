//! An account as a time line: a row for each step, in the order of the way.

use std::fmt::Write as _;

use tenon::Owner;
use tenon_study::svg::{line, text};

use super::measuring::ProfileFinding;
use super::report::{owner_name, part_name, shown};

const WIDTH: f64 = 1000.0;
const MARGIN: f64 = 28.0;
/// Left edge of the time axis, to the right of the names.
const LEFT: f64 = 320.0;
/// Right edge of the time axis; text behind a bar finds room further on.
const RIGHT: f64 = 850.0;
/// Top edge of the rows.
const TOP: f64 = 110.0;
const ROW: f64 = 30.0;
const BAR: f64 = 17.0;

/// Colours that people with any sight tell apart.
fn colour(owner: Owner) -> &'static str {
    match owner {
        Owner::Client => "#0072b2",
        Owner::Kernel => "#999999",
        Owner::Server => "#e08a00",
        Owner::Unknown => "#cccccc",
    }
}

/// Returns the time lines of all as a file, on one scale.
pub fn svg(findings: &[ProfileFinding]) -> String {
    let round_trips = findings.iter().map(|it| it.summary.round_trip.typical);
    let total = round_trips.fold(1.0, f64::max);
    let rows: usize = findings.iter().map(|it| it.summary.parts.len()).sum();
    let height = TOP * findings.len() as f64 + ROW * rows as f64 + 80.0;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"Helvetica, Arial, sans-serif\" \
         font-size=\"15\" fill=\"#222\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>"
    );
    let mut top = 0.0;
    for finding in findings {
        draw(&mut out, finding, top, total);
        top += TOP + ROW * finding.summary.parts.len() as f64;
    }
    let nanos = (0..=4).map(|quarter| total * f64::from(quarter) / 4.0);
    for nanos in nanos {
        let attributes = "text-anchor=\"middle\" font-size=\"12\" fill=\"#666\"";
        let label = format!("{} us", shown(nanos));
        text(&mut out, (at(nanos, total), top + 18.0), attributes, &label);
    }
    legend(&mut out, findings, height - 22.0);
    out.push_str("</svg>\n");
    out
}

/// Returns the position of a time, if as much as `total` is to find room.
fn at(nanos: f64, total: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * nanos / total
}

/// Draws a title, and a row for each step.
fn draw(out: &mut String, finding: &ProfileFinding, above: f64, total: f64) {
    let summary = &finding.summary;
    let title = format!("Where {} us go", shown(summary.round_trip.typical));
    let bold = "font-size=\"24\" font-weight=\"bold\"";
    text(out, (MARGIN, above + 42.0), bold, &title);
    let subtitle = format!(
        "{} at {}, the middle half of {} calls",
        finding.procedure, finding.address, summary.calls
    );
    text(out, (MARGIN, above + 70.0), "fill=\"#666\"", &subtitle);
    let top = above + TOP;
    let bottom = top + ROW * summary.parts.len() as f64;
    for quarter in 0..=4 {
        let x = at(total * f64::from(quarter) / 4.0, total);
        line(out, (x, top - 12.0), (x, bottom), "#e4e4e4");
    }
    let mut begin = 0.0;
    for (index, part) in summary.parts.iter().enumerate() {
        let nanos = part.figures.typical;
        let middle = top + ROW * (index as f64 + 0.5);
        let (from, to) = (at(begin, total), at(begin + nanos, total));
        let name = part_name(part.part);
        text(
            out,
            (LEFT - 12.0, middle + 5.0),
            "text-anchor=\"end\"",
            name,
        );
        let _ = writeln!(
            out,
            "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{BAR}\" fill=\"{}\"/>",
            middle - BAR / 2.0,
            (to - from).max(1.0),
            colour(part.part.owner())
        );
        let label = format!("{} us, {:.1} %", shown(nanos), finding.share(nanos));
        text(out, (to + 6.0, middle + 4.5), "font-size=\"13\"", &label);
        begin += nanos;
    }
}

fn legend(out: &mut String, findings: &[ProfileFinding], y: f64) {
    let mut x = MARGIN;
    let mut shown_owners: Vec<Owner> = Vec::new();
    for part in findings.iter().flat_map(|finding| &finding.summary.parts) {
        let owner = part.part.owner();
        if shown_owners.contains(&owner) {
            continue;
        }
        shown_owners.push(owner);
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"14\" height=\"14\" fill=\"{}\"/>",
            y - 12.0,
            colour(owner)
        );
        text(out, (x + 21.0, y), "", owner_name(owner));
        x += 61.0 + owner_name(owner).len() as f64 * 7.8;
    }
}
