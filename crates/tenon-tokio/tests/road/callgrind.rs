//! Reads what callgrind has written: instructions by file, and calls between functions of different files. The format
//! is the one of valgrind's manual ("Callgrind Format Specification"), without compressed names and positions.

use std::collections::BTreeMap;

/// The counts of one process.
#[derive(Default)]
pub struct Profile {
    /// Of everything, the standard library and the C library, too.
    pub instructions: u64,
    /// Instructions by file of ours; those of an inlined function belong to the file that it was written in.
    pub executed: BTreeMap<String, u64>,
    /// Calls of functions by the file of ours that they are in, if the caller is a function of another file.
    pub entries: BTreeMap<String, u64>,
}

impl Profile {
    /// Parses a profile.
    ///
    /// # Panics
    ///
    /// Panics if the text is no profile.
    pub fn parse(text: &str) -> Self {
        let mut profile = Self::default();
        // Where the instructions of the next line were written, which an inlined function changes.
        let mut file = "";
        // Where the function is whose instructions are listed.
        let mut function_file = "";
        let mut called_file = None;
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            match line.split_once('=') {
                Some(("fl" | "fi" | "fe", name)) => file = name,
                Some(("fn", _)) => function_file = file,
                Some(("cfi" | "cfl", name)) => called_file = Some(name),
                Some(("calls", count)) => {
                    let count = count.split(' ').next().map(str::parse);
                    let called = called_file.take().unwrap_or(file);
                    profile.note_calls(function_file, called, count.unwrap().unwrap());
                    // What the function has taken is listed where the function is.
                    lines.next();
                }
                Some(_) => {}
                None => profile.note_line(file, line),
            }
        }
        assert!(profile.instructions > 0, "no profile of callgrind");
        profile
    }

    fn note_calls(&mut self, from: &str, to: &str, count: u64) {
        let Some(to_ours) = of_ours(to) else { return };
        if from != to {
            *self.entries.entry(to_ours.to_owned()).or_default() += count;
        }
    }

    /// Takes "line instructions", and leaves what is no such pair.
    fn note_line(&mut self, file: &str, line: &str) {
        let mut numbers = line.split(' ').map(str::parse::<u64>);
        let (Some(Ok(_)), Some(Ok(instructions)), None) =
            (numbers.next(), numbers.next(), numbers.next())
        else {
            return;
        };
        self.instructions += instructions;
        if let Some(ours) = of_ours(file) {
            *self.executed.entry(ours.to_owned()).or_default() += instructions;
        }
    }
}

/// Returns the path below `crates` of a source of ours: not of a test, and not of what others have written.
fn of_ours(path: &str) -> Option<&str> {
    let (_, below) = path.rsplit_once("crates/")?;
    let (folder, _) = below.split_once("/src/")?;
    (folder == "tenon" || folder.starts_with("tenon-")).then_some(below)
}
