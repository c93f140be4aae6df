//! Bars side by side as SVG: rows with names, panels that share them, a mark beside each bar.

use std::fmt::Write as _;

use crate::svg::{line, text};

/// A picture.
pub struct BarChart {
    /// The title of the chart.
    pub title: String,
    /// Instructions for reading it.
    pub subtitle: String,
    /// The axis of the panels.
    pub axis: ChartAxis,
    /// Names and colours of the rows, from top to bottom.
    pub rows: Vec<ChartRow>,
    /// From left to right.
    pub panels: Vec<ChartPanel>,
    /// Meanings of the colours.
    pub key: Vec<(String, BarColour)>,
    /// The meaning of the marks.
    pub marks: String,
}

/// A row of all panels.
pub struct ChartRow {
    /// Its name.
    pub name: String,
    /// Of its bars.
    pub colour: BarColour,
}

/// A column of bars.
pub struct ChartPanel {
    /// The subject of the column.
    pub heading: String,
    /// One for each row that has one.
    pub bars: Vec<Option<ChartBar>>,
}

/// A bar, and what stands beside it.
pub struct ChartBar {
    /// The value at which the bar ends.
    pub value: f64,
    /// The text that is written behind it.
    pub text: String,
    /// The value at which the mark is.
    pub mark: Option<f64>,
}

/// The mapping from values to lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChartAxis {
    /// Multiples of one, by their logarithms: bars go to either side of 1.
    Multiples,
    /// From zero.
    Percent,
}

/// Colours that people with any sight tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarColour {
    Orange,
    Blue,
    Green,
}

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 28.0;
/// Distance from the top edge to the panels.
const TOP: f64 = 128.0;
const ROW: f64 = 30.0;
const BAR: f64 = 17.0;
/// Space between the rows of two colours.
const GAP: f64 = 14.0;
/// About the width of a letter of the rows' names.
const LETTER: f64 = 7.8;
/// Space for what is written behind a bar.
const BEHIND: f64 = 74.0;
const BETWEEN: f64 = 26.0;

impl BarColour {
    fn code(self) -> &'static str {
        match self {
            Self::Orange => "#e08a00",
            Self::Blue => "#0072b2",
            Self::Green => "#009e73",
        }
    }
}

impl BarChart {
    /// Returns the picture as a file.
    pub fn svg(&self) -> String {
        let place = ChartLayout::new(self);
        let mut out = String::new();
        let height = place.bottom + 92.0;
        let _ = writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" font-family=\"Helvetica, Arial, sans-serif\" \
             font-size=\"15\" fill=\"#222\">"
        );
        let _ = writeln!(
            out,
            "<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>"
        );
        let attributes = "font-size=\"24\" font-weight=\"bold\"";
        text(&mut out, (MARGIN, 42.0), attributes, &self.title);
        text(&mut out, (MARGIN, 70.0), "fill=\"#666\"", &self.subtitle);
        self.names(&mut out, &place);
        for (index, panel) in self.panels.iter().enumerate() {
            self.panel(&mut out, &place, place.panel(index), panel);
        }
        self.legend(&mut out, height - 26.0);
        out.push_str("</svg>\n");
        out
    }

    fn names(&self, out: &mut String, place: &ChartLayout) {
        for (row, y) in self.rows.iter().zip(&place.rows) {
            let at = (place.left - 12.0, y + 5.0);
            text(out, at, "text-anchor=\"end\"", &row.name);
        }
    }

    fn panel(&self, out: &mut String, place: &ChartLayout, left: f64, panel: &ChartPanel) {
        let scale = place.scale;
        let at = |value: f64| left + scale.part(value) * place.width;
        let attributes = "font-weight=\"bold\"";
        text(out, (left, TOP - 22.0), attributes, &panel.heading);
        for tick in scale.ticks() {
            let (x, is_origin) = (at(tick), tick == scale.origin());
            let stroke = if is_origin { "#888" } else { "#e4e4e4" };
            line(out, (x, TOP - 8.0), (x, place.bottom), stroke);
            let attributes = "text-anchor=\"middle\" font-size=\"12\" fill=\"#666\"";
            text(
                out,
                (x, place.bottom + 18.0),
                attributes,
                &scale.label(tick),
            );
        }
        let rows = self.rows.iter().zip(&place.rows);
        for ((row, y), bar) in rows.zip(&panel.bars) {
            let Some(bar) = bar else { continue };
            let (origin, end) = (at(scale.origin()), at(bar.value));
            let (from, to) = (origin.min(end), origin.max(end));
            let _ = writeln!(
                out,
                "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{BAR}\" \
                 fill=\"{}\"/>",
                y - BAR / 2.0,
                (to - from).max(1.5),
                row.colour.code()
            );
            let mark = bar.mark.map(at);
            if let Some(x) = mark {
                diamond(out, x, *y);
            }
            // Between the bar and its mark, if there is room, or behind both.
            let room = bar.text.chars().count() as f64 * LETTER + 12.0;
            let behind = match mark {
                Some(x) if x + 5.0 > to && x - 5.0 < to + room => x + 11.0,
                _ => to + 6.0,
            };
            let attributes = "font-size=\"13\"";
            text(out, (behind, y + 4.5), attributes, &bar.text);
        }
    }

    fn legend(&self, out: &mut String, y: f64) {
        let mut x = MARGIN;
        for (name, colour) in &self.key {
            let _ = writeln!(
                out,
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"14\" height=\"14\" fill=\"{}\"/>",
                y - 12.0,
                colour.code()
            );
            text(out, (x + 21.0, y), "", name);
            x += 21.0 + name.len() as f64 * LETTER + 30.0;
        }
        diamond(out, x + 5.0, y - 5.0);
        text(out, (x + 17.0, y), "", &self.marks);
    }
}

/// Positions of the parts of a chart.
struct ChartLayout {
    /// Left edge of the first panel.
    left: f64,
    /// Of what a panel draws, without what is written behind it.
    width: f64,
    /// The middle of each row.
    rows: Vec<f64>,
    /// Bottom edge of the rows.
    bottom: f64,
    scale: AxisScale,
}

impl ChartLayout {
    fn new(chart: &BarChart) -> Self {
        let names = chart.rows.iter().map(|row| row.name.len());
        let left = MARGIN + names.max().unwrap_or(0) as f64 * LETTER + 12.0;
        let panels = chart.panels.len().max(1) as f64;
        let between = BETWEEN * (panels - 1.0);
        let width = ((WIDTH - MARGIN - left - between) / panels - BEHIND).min(460.0);
        let (mut rows, mut y) = (Vec::new(), TOP + ROW / 2.0);
        let mut before = None;
        for row in &chart.rows {
            if before.is_some_and(|before| before != row.colour) {
                y += GAP;
            }
            before = Some(row.colour);
            rows.push(y);
            y += ROW;
        }
        Self {
            left,
            width,
            rows,
            bottom: y - ROW / 2.0 + 6.0,
            scale: AxisScale::new(chart),
        }
    }

    fn panel(&self, index: usize) -> f64 {
        self.left + index as f64 * (self.width + BEHIND + BETWEEN)
    }
}

/// The values at the ends of a panel.
#[derive(Clone, Copy)]
struct AxisScale {
    axis: ChartAxis,
    low: f64,
    high: f64,
}

impl AxisScale {
    fn new(chart: &BarChart) -> Self {
        let bars = || chart.panels.iter().flat_map(|panel| &panel.bars).flatten();
        let values = bars().flat_map(|bar| [Some(bar.value), bar.mark]);
        let values: Vec<f64> = values.flatten().filter(|value| value.is_finite()).collect();
        let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
        let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = match chart.axis {
            ChartAxis::Multiples => (
                10f64.powf(lowest.clamp(1e-6, 1.0).log10().floor()),
                10f64.powf(highest.max(1.5).log10().ceil()),
            ),
            ChartAxis::Percent => (below_zero(lowest), 100.0),
        };
        Self {
            axis: chart.axis,
            low,
            high,
        }
    }

    /// Returns the value at which the bars begin.
    fn origin(self) -> f64 {
        match self.axis {
            ChartAxis::Multiples => 1.0,
            ChartAxis::Percent => 0.0,
        }
    }

    /// Returns the position of a value, from 0 to 1.
    fn part(self, value: f64) -> f64 {
        let part = match self.axis {
            ChartAxis::Multiples => {
                let low = self.low.log10();
                (value.max(self.low).log10() - low) / (self.high.log10() - low)
            }
            ChartAxis::Percent => (value - self.low) / (self.high - self.low),
        };
        part.clamp(0.0, 1.0)
    }

    fn ticks(self) -> Vec<f64> {
        match self.axis {
            ChartAxis::Multiples => {
                let exponents = self.low.log10().round() as i32..=self.high.log10().round() as i32;
                exponents.map(|exponent| 10f64.powi(exponent)).collect()
            }
            ChartAxis::Percent => {
                let step = if self.low < 0.0 { 50.0 } else { 25.0 };
                let steps = ((self.high - self.low) / step).round() as i32;
                (0..=steps)
                    .map(|index| self.low + step * f64::from(index))
                    .collect()
            }
        }
    }

    fn label(self, tick: f64) -> String {
        match self.axis {
            ChartAxis::Multiples => format!("{tick}\u{d7}"),
            ChartAxis::Percent => format!("{tick}%"),
        }
    }
}

/// Returns the value at which an axis of per cent begins if the lowest value is this: what lies far below zero is noise
/// and need not be seen in full.
fn below_zero(lowest: f64) -> f64 {
    (lowest.min(0.0) / 50.0).floor().max(-2.0) * 50.0
}

fn diamond(out: &mut String, x: f64, y: f64) {
    let _ = writeln!(
        out,
        "<path d=\"M{x:.1} {:.1}l5.5 6.5l-5.5 6.5l-5.5 -6.5z\" fill=\"#222\" stroke=\"white\"/>",
        y - 6.5
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(axis: ChartAxis, value: f64, mark: Option<f64>) -> BarChart {
        let bar = ChartBar {
            value,
            text: "4 ns".to_owned(),
            mark,
        };
        BarChart {
            title: "A < B & C".to_owned(),
            subtitle: String::new(),
            axis,
            rows: vec![ChartRow {
                name: "compiled".to_owned(),
                colour: BarColour::Blue,
            }],
            panels: vec![ChartPanel {
                heading: "(I)".to_owned(),
                bars: vec![Some(bar)],
            }],
            key: Vec::new(),
            marks: "paper".to_owned(),
        }
    }

    #[test]
    fn an_axis_reaches_as_far_as_the_values() {
        let scale = |axis, value, mark| {
            let scale = AxisScale::new(&chart(axis, value, mark));
            (scale.low, scale.high)
        };
        assert_eq!(scale(ChartAxis::Multiples, 0.05, Some(7.0)), (0.01, 10.0));
        assert_eq!(scale(ChartAxis::Multiples, 1.0, None), (1.0, 10.0));
        assert_eq!(scale(ChartAxis::Percent, 40.0, Some(90.0)), (0.0, 100.0));
        assert_eq!(scale(ChartAxis::Percent, -30.0, None), (-50.0, 100.0));
    }

    #[test]
    fn multiples_lie_at_either_side_of_one() {
        let scale = AxisScale::new(&chart(ChartAxis::Multiples, 0.1, Some(10.0)));
        assert!((scale.part(1.0) - 0.5).abs() < 1e-9);
        assert_eq!((scale.part(0.0), scale.part(1e9)), (0.0, 1.0));
    }

    #[test]
    fn text_cannot_be_taken_for_markup() {
        let svg = chart(ChartAxis::Percent, 1.0, None).svg();
        assert!(svg.contains(">A &lt; B &amp; C<"), "{svg}");
    }
}
