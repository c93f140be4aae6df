//! How many bytes of code stubs are, as this program's own table of symbols has it.

use std::error::Error;
use std::fs;

use object::{Object, ObjectSymbol};

/// Names of the program's functions, and how many bytes each is.
pub struct Code(Vec<(String, u64)>);

impl Code {
    /// Of this program.
    ///
    /// # Errors
    /// Its file cannot be read.
    pub fn of_this_program() -> Result<Self, Box<dyn Error>> {
        let bytes = fs::read(std::env::current_exe()?)?;
        let file = object::File::parse(&*bytes)?;
        let functions = file
            .symbols()
            .filter(|symbol| symbol.kind() == object::SymbolKind::Text);
        let named = functions.map(|symbol| Ok((symbol.name()?.to_owned(), symbol.size())));
        named
            .collect::<Result<_, object::Error>>()
            .map_err(Into::into)
            .map(Self)
    }

    /// Bytes of those functions in whose mangled name all of `parts` are.
    pub fn bytes(&self, parts: &[&str]) -> u64 {
        let is_it = |name: &str| parts.iter().all(|part| name.contains(part));
        let found = self.0.iter().filter(|(name, _)| is_it(name));
        found.map(|(_, bytes)| bytes).sum()
    }
}

/// Bytes of the instruction cache of level 1, as the system says.
pub fn instruction_cache() -> Option<u64> {
    let folder = "/sys/devices/system/cpu/cpu0/cache";
    let caches = fs::read_dir(folder).ok()?.filter_map(Result::ok);
    let said = |path: std::path::PathBuf| Some(fs::read_to_string(path).ok()?.trim().to_owned());
    caches
        .map(|entry| entry.path())
        .filter(|cache| said(cache.join("type")).as_deref() == Some("Instruction"))
        .find_map(|cache| said(cache.join("size"))?.strip_suffix('K')?.parse().ok())
        .map(|kibibytes: u64| kibibytes << 10)
}
