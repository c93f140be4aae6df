//! Figures for people, for machines, and for the files of results.

use std::error::Error;
use std::fmt::Write as _;

use serde_json::{Value, json};
use tenon_bench::machine;
use tenon_bench::results::{self, aligned};
use tenon_bench::stats::Summary;

use crate::code::{self, Code};
use crate::measure::{Direction, Row};
use crate::messages::Engine;

const SECTION: &str = "size";

const ABOUT: &str = "\
What code costs by being large. A thousand different message types, as those of a large interface
are: 4 to 12 members among integers, booleans, enums, text, short lists, nested records and unions.
20,000 messages come in a random order, among 1, 10, 100 and all of the types; each is encoded into
a reused buffer, or decoded to an owned value that is dropped, in xdr. `compiled` are the stubs of
all thousand types in one program, `jit` their machine code, `interp` the interpreter. Which type
comes next is unknown to the processor, so jumps are guessed wrong, and code and plans come from
whatever cache they fit into.
";

/// What was measured.
pub struct Report {
    /// The code of this program.
    pub code: Code,
    /// By direction and number of types.
    pub rows: Vec<Row>,
    /// Bytes of a message on the wire, on average.
    pub message_bytes: usize,
}

impl Report {
    /// Tables in Markdown that is also readable as it is.
    pub fn tables(&self) -> String {
        let mut text = String::new();
        for direction in Direction::ALL {
            let _ = writeln!(
                text,
                "\n### {SECTION}.{}: time of a message\n",
                direction.name()
            );
            text.push_str(&self.times(direction));
        }
        let _ = writeln!(text, "\n### {SECTION}: bytes of code\n");
        let heading = ["", "bytes"].map(str::to_owned).to_vec();
        let rows = self.code_bytes().into_iter();
        let rows = rows.map(|(name, bytes)| vec![name.to_owned(), bytes.to_string()]);
        text.push_str(&aligned(
            &[heading].into_iter().chain(rows).collect::<Vec<_>>(),
        ));
        text
    }

    fn times(&self, direction: Direction) -> String {
        let heading = [
            "types",
            "compiled",
            "jit",
            "interp",
            "jit_over_compiled",
            "interp_over_compiled",
        ];
        let mut table = vec![heading.map(str::to_owned).to_vec()];
        for row in self.rows.iter().filter(|row| row.direction == direction) {
            let mut cells = vec![row.types.to_string()];
            cells.extend(Engine::ALL.map(|engine| format!("{:.1} ns", row.time(engine).median)));
            cells.extend(OTHERS.map(|engine| {
                let Summary { median, low, high } = row.over_compiled(engine);
                format!("{median:.2} ({low:.2}-{high:.2})")
            }));
            table.push(cells);
        }
        aligned(&table)
    }

    fn code_bytes(&self) -> [(&'static str, u64); 4] {
        [
            (
                "a record of 8192 integers, encode",
                self.code.bytes(&["wide", "encode_wide"]),
            ),
            (
                "a record of 8192 integers, decode",
                self.code.bytes(&["wide", "decode_wide"]),
            ),
            (
                "a thousand message types, both",
                self.code.bytes(&["messages", "Message", "code"]),
            ),
            (
                "instruction cache of level 1",
                code::instruction_cache().unwrap_or(0),
            ),
        ]
    }

    /// `size.xdr.types1000.encode.jit_over_compiled 1.23` and the like.
    pub fn ratios(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            for engine in OTHERS {
                let ratio = row.over_compiled(engine).median;
                let _ = writeln!(text, "ratio {} {ratio:.3}", name(row, engine));
            }
        }
        text
    }

    /// Writes the files of results.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write(&self) -> Result<(), Box<dyn Error>> {
        let mut machine = machine::describe();
        machine["bytes of a message"] = self.message_bytes.into();
        let ratios = self.rows.iter().flat_map(|row| {
            let each = move |engine| (name(row, engine), json!(row.over_compiled(engine).median));
            OTHERS.map(each)
        });
        let code = self.code_bytes();
        let code = code.map(|(name, bytes)| (name.to_owned(), Value::from(bytes)));
        results::write(
            SECTION,
            &json!({
                "section": SECTION,
                "about": ABOUT,
                "machine": machine,
                "tables": self.tables(),
                "ratios": ratios.collect::<serde_json::Map<_, _>>(),
                "bytes": code.into_iter().collect::<serde_json::Map<_, _>>(),
            }),
        )
    }
}

/// Those beside the compiled stubs.
const OTHERS: [Engine; 2] = [Engine::Machine, Engine::Interpreter];

fn name(row: &Row, engine: Engine) -> String {
    let (types, way) = (row.types, row.direction.name());
    format!(
        "{SECTION}.xdr.types{types}.{way}.{}_over_compiled",
        engine.name()
    )
}
