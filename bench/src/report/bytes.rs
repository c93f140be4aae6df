//! How many bytes calls put on the wire.

use serde_json::{Map, Value, json};
use tenon_bench::results::aligned;

/// The bytes of one operation.
#[derive(Debug)]
pub struct Counted {
    /// Its name.
    pub operation: String,
    /// For each contestant that takes part.
    pub bytes: Vec<(&'static str, u64)>,
}

/// The pairs that are compared, under the names of what they put on the wire.
const RATIOS: [(&str, &str, &str); 2] = [
    ("protobuf_over_lean", "tonic", "tenon"),
    ("onc_over_lean", "tenon_onc", "tenon"),
];

impl Counted {
    fn of(&self, name: &str) -> Option<u64> {
        let mut bytes = self.bytes.iter();
        bytes.find(|of| of.0 == name).map(|of| of.1)
    }

    fn ratios(&self) -> impl Iterator<Item = (&'static str, f64)> {
        RATIOS.into_iter().filter_map(|(name, over, under)| {
            let (over, under) = (self.of(over)?, self.of(under)?);
            Some((name, over as f64 / under as f64))
        })
    }

    /// For the file of results.
    pub fn json(&self) -> Value {
        let bytes = self.bytes.iter();
        json!({
            "name": format!("bytes.{}", self.operation),
            "bytes": bytes.map(|of| (of.0.to_owned(), of.1.into())).collect::<Map<_, _>>(),
        })
    }
}

/// A table of them.
pub fn table(section: &str, counted: &[Counted]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in counted.iter().flat_map(|row| &row.bytes) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return String::new();
    }
    let heading = std::iter::once("operation").chain(names.iter().copied());
    let mut table: Vec<Vec<String>> = vec![heading.map(str::to_owned).collect()];
    for row in counted {
        let cell = |name: &&str| {
            row.of(name)
                .map_or("-".to_owned(), |bytes| bytes.to_string())
        };
        let cells = names.iter().map(cell);
        table.push(
            std::iter::once(row.operation.clone())
                .chain(cells)
                .collect(),
        );
    }
    format!(
        "\n### {section}.bytes: call and answer on the wire, bytes\n\n{}",
        aligned(&table)
    )
}

/// One line per ratio, for machines.
pub fn ratio_lines(section: &str, counted: &[Counted]) -> String {
    let lines = counted.iter().flat_map(|row| {
        let operation = &row.operation;
        let line =
            move |(name, value)| format!("ratio {section}.bytes.{operation}.{name} {value:.3}\n");
        row.ratios().map(line)
    });
    lines.collect()
}
