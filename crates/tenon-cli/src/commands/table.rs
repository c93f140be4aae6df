//! Tables and the figures in them.

use std::time::Duration;

/// Returns the value below which `percent` of the sorted values lie (nearest rank).
///
/// # Panics
/// If there are no values.
pub fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted[rank - 1]
}

/// Returns microseconds, for machines.
pub fn in_micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

/// Returns microseconds, for people, with three significant digits or more.
pub fn micros(time: Duration) -> String {
    match in_micros(time) {
        m if m < 10.0 => format!("{m:.2}"),
        m if m < 100.0 => format!("{m:.1}"),
        m => format!("{m:.0}"),
    }
}

/// Rows under a heading, the first `left` columns aligned to the left and the others, which
/// are numbers, to the right.
pub fn render(heading: &[&str], rows: &[Vec<String>], left: usize) -> String {
    let heading: Vec<String> = heading.iter().map(|&cell| cell.to_owned()).collect();
    let lines = || std::iter::once(&heading).chain(rows);
    let widths: Vec<usize> = (0..heading.len())
        .map(|column| lines().map(|row| row[column].len()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in lines() {
        let cells = row.iter().zip(&widths).enumerate();
        let cells: Vec<String> = cells
            .map(|(column, (cell, &width))| match column < left {
                true => format!("{cell:<width$}"),
                false => format!("{cell:>width$}"),
            })
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let times: Vec<_> = (1..=200).map(Duration::from_micros).collect();
        assert_eq!(percentile(&times, 50), Duration::from_micros(100));
        assert_eq!(percentile(&times, 99), Duration::from_micros(198));
        assert_eq!(percentile(&times[..1], 99), Duration::from_micros(1));
    }

    #[test]
    fn columns_line_up() {
        let rows = [vec!["NULL".into(), "12.5".into()]];
        assert_eq!(
            render(&["procedure", "us"], &rows, 1),
            "procedure    us\nNULL       12.5\n"
        );
    }
}
