//! `tenon rpcgen`, and `tenon` under the name `rpcgen`: the command line, the files, the exit statuses.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const INTERFACE: &str = "\
#ifdef RPC_HDR
%/* only the header */
#endif
const MAX = 0x10;
struct pair { int a; string b<MAX>; };
program DEMO { version FIRST { pair ECHO(pair) = 1; int SUM(int, int) = 2; } = 1; } = 0x20000001;
";

/// A folder with the interface in it, and `tenon` under the name of rpcgen.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let name = format!("tenon-rpcgen-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("demo.x"), INTERFACE).expect("a file");
        symlink(env!("CARGO_BIN_EXE_tenon"), folder.join("rpcgen")).expect("a link");
        Place(folder)
    }

    fn rpcgen(&self, arguments: &str) -> Output {
        Command::new(self.0.join("rpcgen"))
            .current_dir(&self.0)
            .args(arguments.split_whitespace())
            .output()
            .expect("it runs")
    }

    /// What it prints; it has to succeed.
    fn prints(&self, arguments: &str) -> String {
        let output = self.rpcgen(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments}: {said}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// What it prints of an interface on its standard input.
    fn prints_of(&self, interface: &str, arguments: &str) -> String {
        let interface = fs::File::open(self.0.join(interface)).expect("an interface");
        let output = Command::new(self.0.join("rpcgen"))
            .current_dir(&self.0)
            .args(arguments.split_whitespace())
            .stdin(interface)
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// What it says when it fails.
    fn refuses(&self, arguments: &str) -> String {
        let output = self.rpcgen(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("a folder").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names
            .filter(|name| name != "demo.x" && name != "rpcgen")
            .collect();
        names.sort();
        names
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn files_have_the_names_that_rpcgen_gives_them() {
    let place = Place::new("names");
    assert_eq!(place.prints("-N demo.x"), "");
    let built = ["demo.h", "demo_clnt.c", "demo_svc.c", "demo_xdr.c"];
    assert_eq!(place.files(), built);
    place.prints("-a -N demo.x");
    let samples = ["Makefile.demo", "demo.h", "demo_client.c", "demo_clnt.c"];
    assert_eq!(place.files()[..4], samples);
    assert!(place.files().contains(&"demo_server.c".to_owned()));
}

#[test]
fn each_output_is_read_with_its_own_symbol() {
    let place = Place::new("symbols");
    let header = place.prints("-hN demo.x");
    assert!(header.contains("/* only the header */"), "{header}");
    assert!(header.contains("#define MAX 0x10"), "{header}");
    assert!(
        header.contains("extern  int * sum_1(int , int , CLIENT *);"),
        "{header}"
    );
    let routines = place.prints("-c -N demo.x");
    assert!(!routines.contains("/* only the header */"), "{routines}");
    assert!(routines.contains("register int32_t *buf;"), "{routines}");
    assert!(routines.contains("#include \"demo.h\""), "{routines}");
}

#[test]
fn an_interface_is_read_from_the_standard_input() {
    let place = Place::new("stdin");
    let header = place.prints("-hN demo.x");
    for arguments in ["-hN", "-hN -"] {
        let read = place.prints_of("demo.x", arguments);
        let without_names = |text: &str| text.replace("STDIN", "DEMO").replace("stdin", "demo");
        let expected = header.replace("demo.x", "demo");
        assert_eq!(without_names(&read), expected, "{arguments}");
    }
}

#[test]
fn the_run_time_of_fast_is_named_in_the_header_alone() {
    let place = Place::new("fast");
    let differs = |flags: &str| {
        let (plain, fast) = (
            place.prints(flags),
            place.prints(&format!("--fast {flags}")),
        );
        let is_new = |line: &&str| !plain.lines().any(|known| known == *line);
        let new: Vec<String> = fast.lines().filter(is_new).map(str::to_owned).collect();
        new
    };
    let include = "#include <tenon/tirpc.h>";
    assert_eq!(differs("-N -h demo.x"), [include]);
    assert_eq!(differs("-N -M -h demo.x"), [include]);
    for output in ["-c", "-l", "-m", "-s tcp"] {
        assert!(
            differs(&format!("-N {output} demo.x")).is_empty(),
            "{output}"
        );
    }
    let makefile = differs("-N -Sm demo.x").join("\n");
    assert!(makefile.contains("--libs tenon-tirpc"), "{makefile}");
}

/// `--small` and `--large` change routines alone, and the smaller are smaller.
#[test]
fn the_size_of_routines_can_be_chosen() {
    let place = Place::new("sizes");
    let text = "struct pair { int a; string b<>; };
        struct many { pair of<>; };
        struct few { pair of[2]; };
        union result switch (int status) { case 0: many all; default: few why; };";
    fs::write(place.0.join("pairs.x"), text).expect("a file");
    let specialised = |flags: &str| {
        let routines = place.prints(&format!("{flags} -c pairs.x"));
        let types = ["result", "many", "pair", "few"].into_iter();
        let types = types.filter(|name| routines.contains(&format!("tenon_decode_{name} (")));
        types.collect::<Vec<_>>()
    };
    assert_eq!(specialised("--small"), [] as [&str; 0]);
    // What only an error carries is not.
    assert_eq!(specialised(""), ["result", "many", "pair"]);
    assert_eq!(specialised("--large"), ["result", "many", "pair", "few"]);
    for output in ["-h", "-l", "-m"] {
        let plain = place.prints(&format!("-N {output} demo.x"));
        assert_eq!(place.prints(&format!("--small -N {output} demo.x")), plain);
    }
    let said = place.refuses("--small --large -c pairs.x");
    assert!(said.contains("exclude each other"), "{said}");
    assert!(place.prints("-N -Sm --small demo.x").contains("--small"));
}

/// The template of a Makefile makes the files anew by the command that has made it, whatever rpcgen the system has.
#[test]
fn its_makefile_runs_the_command_itself() {
    let place = Place::new("makefile");
    place.prints("-a -N --fast demo.x");
    fs::remove_file(place.0.join("demo.h")).expect("it was made");
    let command = Path::new(env!("CARGO_BIN_EXE_tenon"));
    let folder = command.parent().expect("it lies in a folder");
    let others = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&others));
    let made = Command::new("make")
        .args(["-f", "Makefile.demo", "demo.h"])
        .env("PATH", std::env::join_paths(folders).expect("no colons"))
        .current_dir(&place.0)
        .output()
        .expect("make is there");
    assert!(made.status.success(), "{made:?}");
    let header = fs::read_to_string(place.0.join("demo.h")).expect("it was made again");
    assert!(header.contains("#include <tenon/tirpc.h>"), "{header}");
}

#[test]
fn a_file_that_is_there_is_kept() {
    let place = Place::new("kept");
    place.prints("-h -N -o out.h demo.x");
    let said = place.refuses("-h -N -o out.h demo.x");
    assert!(said.contains("already exists"), "{said}");
    let header = fs::read_to_string(place.0.join("out.h")).expect("a file");
    assert!(header.contains("#ifndef _OUT_H_RPCGEN"), "{header}");
}

#[test]
fn wrong_command_lines_end_with_the_usage_and_1() {
    let place = Place::new("wrong");
    for (line, reason) in [
        ("", ""),
        ("-h -c demo.x", "more than one file generation flag"),
        ("-Z demo.x", "no flag -Z"),
        ("-Sx demo.x", "-Sc, -Ss, -Sm"),
        ("-K soon demo.x", "`soon' is none"),
        ("-h demo.x -o", "-o lacks its value"),
        ("demo.x other.x", "more than one input file"),
        ("-n tcp demo.x", "netid"),
    ] {
        let said = place.refuses(line);
        assert!(said.contains("usage: rpcgen infile"), "{line}: {said}");
        assert!(said.contains(reason), "{line}: {said}");
    }
    assert!(place.refuses("-h none.x").contains("none.x"));
    assert!(
        place
            .refuses("-h demo.x")
            .contains("only one argument is allowed")
    );
    assert_eq!(place.files(), [] as [&str; 0]);
}

#[test]
fn types_that_c_does_not_have_are_refused_wherever_they_are_used() {
    let place = Place::new("quadruple");
    let program = "program P { version V { void F(NAME) = 1; } = 1; } = 0x20000001;";
    for (name, text) in [
        ("pair", "struct pair { quadruple of[2]; };".to_owned()),
        ("F", program.replace("NAME", "quadruple")),
    ] {
        fs::write(place.0.join("wide.x"), text).expect("a file");
        let said = place.refuses("-h wide.x");
        let wanted = format!("{name}: C has no type for `quadruple`");
        assert!(said.contains(&wanted), "{said}");
    }
}

#[test]
fn the_version_is_that_of_the_rpcgen_that_it_stands_in_for() {
    let place = Place::new("version");
    assert!(place.prints("--version").trim_end().ends_with(" 1.4.3"));
    let output = Command::new(env!("CARGO_BIN_EXE_tenon"))
        .args(["rpcgen", "--version"])
        .output()
        .expect("it runs");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        place.prints("--version")
    );
}
