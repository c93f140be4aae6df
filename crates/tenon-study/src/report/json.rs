//! Everything that was measured, for machines.

use serde_json::{Value, json};

use super::figures::{BASELINE, PaperComparison, movements, procedural};
use crate::measure::QuartileSummary;
use crate::paper;
use crate::study::{StudyCell, StudyDirection, StudyResults};
use crate::work::Workload;

impl StudyResults {
    /// Returns everything: the times (Tables 1 and 2), their multiples of the baseline, Tables 3 and 4, Tables 5 and 6
    /// if the cost model was asked, and unrolled code.
    pub fn json(&self) -> Value {
        let effort = self.options.effort;
        let share = |rows: Vec<Value>| Value::Array(rows);
        json!({
            "representation": self.options.wire.representation().name,
            "machine": machine(),
            "rounds": effort.rounds,
            "turn_us": effort.turn.as_micros() as u64,
            "baseline": BASELINE.name(),
            "paper": { "machine": paper::MACHINE },
            "cells": self.cells().iter().map(|cell| self.cell_json(cell)).collect::<Vec<_>>(),
            "percent_interpretation": share(self.interpretations_json()),
            "percent_procedure_calls": share(self.calls_json()),
            "equations": share(self.equations_json()),
            "parameters": share(self.parameters_json()),
            "unrolling": share(self.unrolling_json()),
        })
    }

    fn cell_json(&self, cell: &StudyCell) -> Value {
        json!({
            "design": cell.design.name(),
            "work": cell.work.notation(),
            "direction": cell.direction.name(),
            "ns": summary(cell.nanoseconds()),
            "yardstick_ns": cell.yardstick,
            "predicted_ns": cell.predicted,
            "over_baseline": self.multiple(cell).map(|it| figure(&it)),
            "paper_ms": paper::milliseconds(cell.design, cell.work),
        })
    }

    fn equations_json(&self) -> Vec<Value> {
        let equations = self.model.equations.iter();
        let equations = equations.map(|it| {
            json!({
                "design": it.design.name(),
                "direction": it.direction.name(),
                "equation": it.text,
            })
        });
        equations.collect()
    }

    fn parameters_json(&self) -> Vec<Value> {
        let parameters = self.model.parameters.iter();
        let parameters = parameters.map(|it| {
            json!({
                "engine": it.engine.name(),
                "direction": it.direction.name(),
                "symbol": it.symbol.letter(),
                "meaning": it.symbol.meaning(),
                "ns": it.nanoseconds,
                "paper_us": paper::parameter(it.symbol),
            })
        });
        parameters.collect()
    }

    fn interpretations_json(&self) -> Vec<Value> {
        let rows = movements().flat_map(|movement| {
            everywhere().filter_map(move |(work, direction)| {
                let it = self.interpretation(movement, work, direction)?;
                Some(row(movement.name(), work, direction, &it))
            })
        });
        rows.collect()
    }

    fn calls_json(&self) -> Vec<Value> {
        let rows = procedural().flat_map(|design| {
            everywhere().filter_map(move |(work, direction)| {
                let it = self.procedure_calls(design, work, direction)?;
                Some(row(&design.0.name(), work, direction, &it))
            })
        });
        rows.collect()
    }
}

fn everywhere() -> impl Iterator<Item = (Workload, StudyDirection)> {
    let both = |work| StudyDirection::ALL.map(|direction| (work, direction));
    Workload::ALL.into_iter().flat_map(both)
}

fn row(stub: &str, work: Workload, direction: StudyDirection, it: &PaperComparison) -> Value {
    json!({
        "stub": stub,
        "work": work.notation(),
        "direction": direction.name(),
        "percent": figure(it),
    })
}

fn figure(it: &PaperComparison) -> Value {
    json!({ "here": summary(it.here), "paper": it.paper })
}

pub(super) fn summary(it: QuartileSummary) -> Value {
    json!({ "median": it.median, "lower_quartile": it.lower, "upper_quartile": it.upper })
}

/// Returns a description of the machine that the figures were measured on.
fn machine() -> Value {
    json!({
        "cpu": cpu(),
        "architecture": std::env::consts::ARCH,
        "system": std::env::consts::OS,
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "tenon": env!("CARGO_PKG_VERSION"),
        "optimised": !cfg!(debug_assertions),
    })
}

fn cpu() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let model = info.lines().find(|line| line.starts_with("model name"))?;
    let (_, name) = model.split_once(": ")?;
    Some(name.to_owned())
}
