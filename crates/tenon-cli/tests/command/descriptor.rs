//! `tenon descriptor`, and descriptors in place of interface files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{DemoServer, command, tenon, tenon_reading};

const DEMO: &str = "interfaces/demo.x";

/// A folder that goes away with this value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("tenon-descriptor-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("the folder for temporary files can be written");
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes the descriptor of the demo.
fn write(to: &str) {
    assert_eq!(tenon(&["descriptor", DEMO, "-o", to]).ok(), "");
}

#[test]
fn a_descriptor_stands_for_its_file() {
    let folder = Folder::new("stands");
    let demo = folder.file("demo.descriptor");
    write(&demo);
    let identity = tenon(&["descriptor", "--identity", DEMO]).ok();
    assert_eq!(identity.trim().len(), 64, "{identity}");
    assert_eq!(tenon(&["descriptor", "--identity", &demo]).ok(), identity);

    let again = folder.file("again.descriptor");
    tenon(&["descriptor", &demo, "-o", &again]).ok();
    let bytes = fs::read(&demo).expect("it was written");
    assert_eq!(fs::read(&again).expect("it was written"), bytes);
    let printed = command(&["descriptor", DEMO]).output().expect("it runs");
    assert_eq!(printed.stdout, bytes);

    let explained = tenon(&["explain", &demo, "SAY_HELLO"]).ok();
    assert_eq!(explained, tenon(&["explain", DEMO, "SAY_HELLO"]).ok());
    let checked = tenon(&["check", &demo]).ok();
    let expected = "ok, a descriptor of 5 types, 1 constant, 1 program, 1 version, 5 procedures\n";
    assert!(checked.ends_with(expected), "{checked}");
    let stubs = tenon(&["gen", "--lang", "rust", &demo]).ok();
    assert!(stubs.contains("pub trait DemoV1Calls"), "{stubs}");
    let of_stdin = tenon_reading(&["descriptor", "--identity", "-"], &bytes).ok();
    assert_eq!(of_stdin, identity);
}

#[test]
fn calls_need_a_descriptor_only() {
    let folder = Folder::new("calls");
    let demo = folder.file("demo.descriptor");
    write(&demo);
    let server = DemoServer::start();
    for address in [server.tcp.clone(), format!("lean+{}", server.tcp)] {
        let said = tenon(&["call", &address, &demo, "SAY_HELLO", "\"Ada\""]).ok();
        assert_eq!(
            said,
            tenon(&["call", &address, DEMO, "SAY_HELLO", "\"Ada\""]).ok()
        );
    }
}

#[test]
fn what_is_no_descriptor_is_told() {
    let folder = Folder::new("told");
    let demo = folder.file("demo.descriptor");
    write(&demo);
    let c = ["gen", "--lang", "c", &demo, "-o", &folder.file(".")];
    for arguments in [&c[..], &["rpcgen", "-h", &demo]] {
        let said = tenon(arguments).fails_with(1);
        let says = ["this is a descriptor", "give the interface file"];
        assert!(says.iter().all(|words| said.contains(words)), "{said}");
    }

    let mut bytes = fs::read(&demo).expect("it was written");
    bytes[11] = 7;
    let later = folder.file("later.descriptor");
    fs::write(&later, &bytes).expect("a file");
    let said = tenon(&["check", &later]).fails_with(1);
    assert!(
        said.contains("later.descriptor: this is a descriptor of format 7"),
        "{said}"
    );
    bytes[11] = 1;
    bytes.truncate(bytes.len() / 2);
    fs::write(&later, &bytes).expect("a file");
    let said = tenon(&["explain", &later]).fails_with(1);
    assert!(
        said.contains("later.descriptor: the descriptor cannot be decoded"),
        "{said}"
    );

    let nowhere = folder.file("none.x");
    assert!(!Path::new(&nowhere).exists());
    tenon(&["descriptor", &nowhere]).fails_with(1);
    let said = tenon(&["descriptor", DEMO, "-o", &folder.file("no/such/folder")]).fails_with(1);
    assert!(said.contains("cannot write"), "{said}");
}
