//! Costs as people read them, and as JSON.

use std::fmt::Write;

use serde_json::{Value as Json, json};
use tenon_plan::cost::{Direction, Level, Share, Symbol};

use super::PredictionErrors;
use super::calibrate::EngineCalibration;
use super::check::CheckedPrediction;
use super::estimate::{DirectionEstimate, MessageEstimate, MessageRole};

/// Shares and parts that are worth a line.
const LINES: usize = 3;

/// Smallest part of a time that is reported.
const WORTH: f64 = 0.05;

/// A report of estimates, and the parameters that they were made with.
#[derive(Debug, Clone, Copy)]
pub struct CostReport<'a> {
    /// The name that the processor reports.
    pub processor: &'a str,
    /// The parameters, both ways.
    pub calibrations: &'a [EngineCalibration; 2],
}

impl CostReport<'_> {
    /// Returns the machine, the engine and the representation in one line, and how far the parameters are from what
    /// they were measured by.
    fn heading(&self) -> String {
        let EngineCalibration {
            engine,
            representation,
            errors,
            ..
        } = &self.calibrations[0];
        let decode = self.calibrations[1].errors;
        format!(
            "{}; {engine}, {representation}\ncalibrated by {} messages: median error {} to encode, {} to \
             decode\n\n",
            self.processor,
            errors.count,
            percent(errors.median),
            percent(decode.median),
        )
    }

    /// Returns a table with one line for each message.
    pub fn table(&self, estimates: &[MessageEstimate]) -> String {
        let heading = [
            "message",
            "",
            "bytes",
            "encode ns",
            "decode ns",
            "allocations",
            "most of decode",
        ];
        let rows = estimates.iter().map(|estimate| {
            let [encode, decode] = &estimate.ways;
            let most = decode.parts.first();
            vec![
                estimate.name.clone(),
                estimate.role.name().to_owned(),
                bytes(estimate),
                time(encode.nanoseconds),
                time(decode.nanoseconds),
                decode.allocations.to_string(),
                most.map_or(String::new(), |most| part(decode, most)),
            ]
        });
        self.heading() + &table(&heading, &rows.collect::<Vec<_>>(), &[0, 1, 6])
    }

    /// Returns all that is to be known of each message, and the parameters.
    pub fn equations(&self, estimates: &[MessageEstimate]) -> String {
        let mut text = self.heading();
        for estimate in estimates {
            let of = match estimate.role {
                MessageRole::Type => estimate.name.clone(),
                MessageRole::Arguments => format!("the arguments of {}", estimate.name),
                MessageRole::Result => format!("the result of {}", estimate.name),
            };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{of}: {} bytes", bytes(estimate));
            for way in &estimate.ways {
                text += &self.way(way);
            }
            text.push('\n');
        }
        text + &self.legend(estimates)
    }

    fn way(&self, way: &DirectionEstimate) -> String {
        let mut text = format!("  {}: {} ns", way.direction, time(way.nanoseconds));
        match (way.direction, way.allocations) {
            (Direction::Encode, _) | (_, 0) => {}
            (_, 1) => text += &format!(", 1 allocation of {} bytes", way.allocated_bytes),
            (_, count) => {
                text += &format!(", {count} allocations of {} bytes", way.allocated_bytes);
            }
        }
        text.push('\n');
        for line in way.equation.lines() {
            text += &format!("      {line}\n");
        }
        let worth = |share: &&Share| share.nanoseconds >= way.nanoseconds * WORTH;
        let shares = way.shares.iter().filter(worth).take(LINES);
        let shares: Vec<String> = shares.map(|share| self.share(way, share)).collect();
        if !shares.is_empty() {
            text += &format!("      dominated by {}\n", shares.join(", "));
        }
        let worth = |part: &&(String, f64)| part.1 >= way.nanoseconds * WORTH;
        let parts = way.parts.iter().filter(worth).take(LINES);
        let parts: Vec<String> = parts.map(|one| part(way, one)).collect();
        if !parts.is_empty() {
            text += &format!("      most in {}\n", parts.join(", "));
        }
        text
    }

    fn share(&self, way: &DirectionEstimate, share: &Share) -> String {
        let part = percent(share.nanoseconds / way.nanoseconds);
        format!("{} {part}", share.symbol)
    }

    /// Returns the parameters that occur, in nanoseconds.
    fn legend(&self, estimates: &[MessageEstimate]) -> String {
        let occurs = |symbol: &Symbol| {
            let shares = estimates.iter().flat_map(|estimate| &estimate.ways);
            let mut shares = shares.flat_map(|way| &way.shares);
            shares.any(|share| share.symbol == *symbol)
        };
        let rows = Symbol::ALL.into_iter().filter(occurs).map(|symbol| {
            let of = |calibration: &EngineCalibration| self.values(calibration, symbol);
            let [encode, decode] = self.calibrations.each_ref().map(of);
            vec![
                symbol.letter().to_owned(),
                encode,
                decode,
                symbol.meaning().to_owned(),
            ]
        });
        let heading = ["", "encode ns", "decode ns", ""];
        table(&heading, &rows.collect::<Vec<_>>(), &[0, 3])
    }

    fn values(&self, calibration: &EngineCalibration, symbol: Symbol) -> String {
        let levels = match symbol.is_by_level() {
            true => calibration.parameters.levels.count(),
            false => 1,
        };
        let values = (0..levels).filter_map(|level| {
            let level = Level { symbol, level };
            let value = calibration.parameters.nanoseconds.get(&level)?;
            Some(format!("{value:.3}"))
        });
        values.collect::<Vec<_>>().join(" ")
    }

    /// Returns everything as JSON.
    pub fn json(&self, estimates: &[MessageEstimate]) -> Json {
        json!({
            "processor": self.processor,
            "engine": self.calibrations[0].engine.name(),
            "representation": self.calibrations[0].representation,
            "parameters": self.calibrations.iter().map(parameters).collect::<Vec<_>>(),
            "messages": estimates.iter().map(message).collect::<Vec<_>>(),
        })
    }

    /// Returns measured and predicted, one line for each message.
    pub fn checked(&self, checked: &[CheckedPrediction]) -> String {
        let heading = ["message", "", "bytes", "measured ns", "predicted", "error"];
        let rows = checked.iter().map(|checked| {
            vec![
                checked.name.clone(),
                checked.direction.to_string(),
                checked.bytes.to_string(),
                time(checked.measured),
                format!("({})", time(checked.predicted)),
                format!("{:+.0} %", checked.error() * 100.0),
            ]
        });
        let mut text = self.heading() + &table(&heading, &rows.collect::<Vec<_>>(), &[0, 1]);
        for direction in Direction::ALL {
            let errors = errors(checked, direction);
            let _ = writeln!(
                text,
                "{direction}: {} messages, median error {}, worst {}",
                errors.count,
                percent(errors.median),
                percent(errors.worst)
            );
        }
        text
    }

    /// Returns measured and predicted as JSON.
    pub fn checked_json(&self, checked: &[CheckedPrediction]) -> Json {
        let messages = checked.iter().map(|checked| {
            json!({
                "name": checked.name,
                "direction": checked.direction.name(),
                "bytes": checked.bytes,
                "measured_ns": checked.measured,
                "predicted_ns": checked.predicted,
            })
        });
        let summaries = Direction::ALL.map(|direction| {
            let errors = errors(checked, direction);
            json!({
                "direction": direction.name(),
                "messages": errors.count,
                "median_error": errors.median,
                "worst_error": errors.worst,
            })
        });
        json!({
            "processor": self.processor,
            "engine": self.calibrations[0].engine.name(),
            "representation": self.calibrations[0].representation,
            "summary": summaries,
            "messages": messages.collect::<Vec<_>>(),
        })
    }
}

fn errors(checked: &[CheckedPrediction], direction: Direction) -> PredictionErrors {
    let of = checked
        .iter()
        .filter(|checked| checked.direction == direction);
    PredictionErrors::of(of.map(|checked| (checked.predicted, checked.measured)))
}

fn parameters(calibration: &EngineCalibration) -> Json {
    let all = calibration
        .parameters
        .nanoseconds
        .iter()
        .map(|(level, value)| {
            json!({
                "symbol": level.symbol.letter(),
                "meaning": level.symbol.meaning(),
                "level": level.level,
                "ns": value,
            })
        });
    json!({
        "direction": calibration.direction.name(),
        "caches": calibration.parameters.levels.caches,
        "parameters": all.collect::<Vec<_>>(),
        "messages": calibration.errors.count,
        "median_error": calibration.errors.median,
        "worst_error": calibration.errors.worst,
    })
}

fn message(estimate: &MessageEstimate) -> Json {
    let ways = estimate.ways.iter().map(|way| {
        let shares = way.shares.iter().map(|share| {
            json!({
                "symbol": share.symbol.letter(),
                "times": share.times,
                "ns": share.nanoseconds,
            })
        });
        let parts = way
            .parts
            .iter()
            .map(|(name, ns)| json!({"name": name, "ns": ns}));
        json!({
            "direction": way.direction.name(),
            "equation": way.equation.lines().collect::<Vec<_>>(),
            "ns": way.nanoseconds,
            "allocations": way.allocations,
            "allocated_bytes": way.allocated_bytes,
            "shares": shares.collect::<Vec<_>>(),
            "parts": parts.collect::<Vec<_>>(),
        })
    });
    json!({
        "name": estimate.name,
        "role": estimate.role.name(),
        "bytes": estimate.bytes,
        "complete": !estimate.has_unknown,
        "ways": ways.collect::<Vec<_>>(),
    })
}

fn bytes(estimate: &MessageEstimate) -> String {
    match estimate.has_unknown {
        true => format!("{} or more", estimate.bytes),
        false => estimate.bytes.to_string(),
    }
}

fn part(way: &DirectionEstimate, (name, nanoseconds): &(String, f64)) -> String {
    format!("{name} {}", percent(nanoseconds / way.nanoseconds))
}

fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

/// Nanoseconds with three digits or more.
fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        short if short < 9.995 => format!("{short:.2}"),
        short if short < 99.95 => format!("{short:.1}"),
        long => format!("{long:.0}"),
    }
}

/// Rows under a heading, those of `left` columns aligned to the left.
fn table(heading: &[&str], rows: &[Vec<String>], left: &[usize]) -> String {
    let heading: Vec<String> = heading.iter().map(|&cell| cell.to_owned()).collect();
    let lines = || std::iter::once(&heading).chain(rows);
    let width = |column: usize| lines().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..heading.len())
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in lines() {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let width = widths[column];
            match left.contains(&column) {
                true => format!("{cell:<width$}"),
                false => format!("{cell:>width$}"),
            }
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}
