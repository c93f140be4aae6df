//! Any bytes as an interface file: the front end answers with a schema or with errors that can be
//! shown, and touches no file.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use tenon_idl::{FileSource, Options, ParseLimits, Style};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    for strict_rpcgen in [false, true] {
        let options = options(&text, strict_rpcgen);
        let parsed = tenon_idl::parse_text("main.x", &text, &options);
        let failed = parsed.schema.is_none();
        let errors = parsed
            .reports()
            .iter()
            .any(|report| report.severity == "error");
        assert_eq!(failed, errors, "no schema without an error that says why");
        parsed.render(Style::Plain);
    }
});

/// The text may include itself, the way to endless recursion. The limits are low, so that a run
/// that comes up to them takes milliseconds.
fn options(text: &str, strict_rpcgen: bool) -> Options {
    let files = BTreeMap::from([("main.x".into(), text.to_string())]);
    Options {
        strict_rpcgen,
        files: FileSource::Memory(files),
        limits: ParseLimits {
            text_bytes_max: 256 << 10,
            expansion_tokens_max: 10_000,
            ..ParseLimits::default()
        },
        ..Options::default()
    }
}
