//! What pictures are made of.

use std::fmt::Write as _;

/// Appends text that begins, ends or is centred at a point, as the attributes say.
pub fn text(out: &mut String, (x, y): (f64, f64), attributes: &str, text: &str) {
    let text = escaped(text);
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" {attributes}>{text}</text>"
    );
}

/// Appends a line.
pub fn line(out: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64), stroke: &str) {
    let _ = writeln!(
        out,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{stroke}\"/>"
    );
}

/// Returns text as it is written in a file of this kind.
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
}
