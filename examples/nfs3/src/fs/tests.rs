//! The file system as its callers see it, and its books under random operations.

use super::*;
use directory::ENTRY_COST;

const NOTHING: SetAttributes = SetAttributes {
    mode: None,
    uid: None,
    gid: None,
    size: None,
    accessed: SetTime::Keep,
    modified: SetTime::Keep,
};

fn empty() -> FileSystem {
    FileSystem::new(7, 1 << 20)
}

fn file(fs: &mut FileSystem, name: &str) -> FileId {
    fs.create(ROOT, name.as_bytes(), Create::Guarded(NOTHING))
        .unwrap()
}

fn directory(fs: &mut FileSystem, dir: FileId, name: &str) -> FileId {
    fs.make_directory(dir, name.as_bytes(), &NOTHING).unwrap()
}

fn names(fs: &FileSystem, dir: FileId) -> Vec<String> {
    let entries = fs.list(dir, 0).unwrap().skip(2);
    entries.map(|entry| entry.name.to_string()).collect()
}

#[test]
fn handles_are_valid_stale_or_malformed() {
    let mut fs = empty();
    let id = file(&mut fs, "a");
    let handle = fs.handle(id).to_bytes();
    assert_eq!(fs.resolve(&handle), Ok(id));
    assert_eq!(fs.resolve(&handle[1..]), Err(FsError::BadHandle));
    assert_eq!(
        FileSystem::new(8, 1 << 20).resolve(&handle),
        Err(FsError::Stale)
    );
    fs.remove(ROOT, b"a").unwrap();
    assert_eq!(fs.resolve(&handle), Err(FsError::Stale));
    assert_eq!(fs.read(id, 0, 1), Err(FsError::Stale));
    assert_ne!(file(&mut fs, "a"), id);
}

#[test]
fn the_three_ways_to_create() {
    let mut fs = empty();
    let id = file(&mut fs, "a");
    fs.write(id, 0, b"hello").unwrap();
    let again = |fs: &mut FileSystem, how| fs.create(ROOT, b"a", how);
    assert_eq!(
        again(&mut fs, Create::Guarded(NOTHING)),
        Err(FsError::Exists)
    );
    assert_eq!(
        again(&mut fs, Create::Exclusive([0; 8], NOTHING)),
        Err(FsError::Exists)
    );
    assert_eq!(again(&mut fs, Create::Unchecked(NOTHING)), Ok(id));
    assert_eq!(fs.attributes(id).unwrap().size, 5);
    let cut = SetAttributes {
        size: Some(1),
        mode: Some(0),
        ..NOTHING
    };
    assert_eq!(again(&mut fs, Create::Unchecked(cut)), Ok(id));
    let attributes = fs.attributes(id).unwrap();
    assert_eq!((attributes.size, attributes.mode), (1, 0o644));

    let once = fs
        .create(ROOT, b"x", Create::Exclusive([1; 8], NOTHING))
        .unwrap();
    assert_eq!(
        fs.create(ROOT, b"x", Create::Exclusive([1; 8], NOTHING)),
        Ok(once)
    );
    assert_eq!(
        fs.create(ROOT, b"x", Create::Exclusive([2; 8], NOTHING)),
        Err(FsError::Exists)
    );
    directory(&mut fs, ROOT, "d");
    assert_eq!(
        fs.create(ROOT, b"d", Create::Unchecked(NOTHING)),
        Err(FsError::Exists)
    );
    assert_eq!(
        fs.create(ROOT, b"..", Create::Unchecked(NOTHING)),
        Err(FsError::Exists)
    );
}

#[test]
fn names_lead_up_and_down() {
    let mut fs = empty();
    let inner = directory(&mut fs, ROOT, "d");
    let innermost = directory(&mut fs, inner, "e");
    assert_eq!(fs.lookup(inner, b"e"), Ok(innermost));
    assert_eq!(fs.lookup(innermost, b".."), Ok(inner));
    assert_eq!(fs.lookup(innermost, b"."), Ok(innermost));
    assert_eq!(fs.lookup(ROOT, b".."), Ok(ROOT));
    assert_eq!(fs.lookup(ROOT, b"e"), Err(FsError::NoEntry));
    assert_eq!(fs.attributes(ROOT).unwrap().links, 3);
    let id = file(&mut fs, "f");
    assert_eq!(fs.lookup(id, b"."), Err(FsError::NotDirectory));
}

#[test]
fn removing_asks_for_the_right_kind() {
    let mut fs = empty();
    let dir = directory(&mut fs, ROOT, "d");
    directory(&mut fs, dir, "e");
    file(&mut fs, "f");
    assert_eq!(fs.remove(ROOT, b"d"), Err(FsError::IsDirectory));
    assert_eq!(fs.remove_directory(ROOT, b"d"), Err(FsError::NotEmpty));
    assert_eq!(fs.remove_directory(ROOT, b"f"), Err(FsError::NotDirectory));
    assert_eq!(fs.remove_directory(dir, b"."), Err(FsError::Invalid));
    assert_eq!(fs.remove(ROOT, b"nothing"), Err(FsError::NoEntry));
    fs.remove_directory(dir, b"e").unwrap();
    fs.remove_directory(ROOT, b"d").unwrap();
    assert_eq!(
        fs.create(dir, b"g", Create::Guarded(NOTHING)),
        Err(FsError::Stale)
    );
}

#[test]
fn a_file_lives_as_long_as_a_name_of_it() {
    let mut fs = empty();
    let id = file(&mut fs, "a");
    fs.link(id, ROOT, b"b").unwrap();
    assert_eq!(fs.link(id, ROOT, b"b"), Err(FsError::Exists));
    assert_eq!(fs.attributes(id).unwrap().links, 2);
    fs.rename(ROOT, b"a", ROOT, b"b").unwrap();
    assert_eq!(
        names(&fs, ROOT),
        ["a", "b"],
        "two names of one file both stay"
    );
    fs.remove(ROOT, b"a").unwrap();
    assert_eq!(fs.lookup(ROOT, b"b"), Ok(id));
    fs.remove(ROOT, b"b").unwrap();
    assert_eq!(fs.attributes(id), Err(FsError::Stale));
    let dir = directory(&mut fs, ROOT, "d");
    assert_eq!(fs.link(dir, ROOT, b"e"), Err(FsError::IsDirectory));
}

#[test]
fn renaming_moves_and_replaces() {
    let mut fs = empty();
    let (from, to) = (
        directory(&mut fs, ROOT, "from"),
        directory(&mut fs, ROOT, "to"),
    );
    let moved = directory(&mut fs, from, "m");
    fs.rename(from, b"m", to, b"n").unwrap();
    assert_eq!(fs.lookup(moved, b".."), Ok(to));
    let links = |fs: &FileSystem, id| fs.attributes(id).unwrap().links;
    assert_eq!((links(&fs, from), links(&fs, to)), (2, 3));

    let (a, b) = (file(&mut fs, "a"), file(&mut fs, "b"));
    fs.rename(ROOT, b"a", ROOT, b"b").unwrap();
    assert_eq!(fs.lookup(ROOT, b"b"), Ok(a));
    assert_eq!(fs.attributes(b), Err(FsError::Stale));
}

#[test]
fn renaming_refuses_what_makes_no_sense() {
    let mut fs = empty();
    let outer = directory(&mut fs, ROOT, "outer");
    let inner = directory(&mut fs, outer, "inner");
    file(&mut fs, "f");
    directory(&mut fs, ROOT, "other");
    for (from, from_name, to, to_name, error) in [
        (ROOT, "outer", inner, "x", FsError::Invalid),
        (ROOT, "outer", outer, "x", FsError::Invalid),
        (ROOT, ".", ROOT, "x", FsError::Invalid),
        (ROOT, "f", ROOT, "..", FsError::Invalid),
        (ROOT, "f", ROOT, "outer", FsError::Exists),
        (ROOT, "outer", ROOT, "f", FsError::Exists),
        (ROOT, "other", ROOT, "outer", FsError::NotEmpty),
        (ROOT, "nothing", ROOT, "x", FsError::NoEntry),
    ] {
        let result = fs.rename(from, from_name.as_bytes(), to, to_name.as_bytes());
        assert_eq!(result, Err(error), "{from_name} to {to_name}");
    }
    assert_eq!(names(&fs, ROOT), ["outer", "f", "other"]);
}

#[test]
fn attributes_are_set_each_on_its_own() {
    let mut fs = empty();
    let id = file(&mut fs, "a");
    let time = Time {
        seconds: 5,
        nanoseconds: 6,
    };
    let before = fs.attributes(id).unwrap();
    let set = SetAttributes {
        mode: Some(0o107_777),
        gid: Some(3),
        modified: SetTime::To(time),
        ..NOTHING
    };
    fs.set_attributes(id, &set, Some(before.changed)).unwrap();
    let after = fs.attributes(id).unwrap();
    assert_eq!((after.mode, after.uid, after.gid), (MODE_MASK, 0, 3));
    assert_eq!((after.modified, after.accessed), (time, before.accessed));
    assert_ne!(after.changed, before.changed);
    let stale_guard = Some(before.changed);
    assert_eq!(
        fs.set_attributes(id, &set, stale_guard),
        Err(FsError::NotInStep)
    );
    let no_time = Time {
        seconds: 0,
        nanoseconds: 1_000_000_000,
    };
    let set = SetAttributes {
        accessed: SetTime::To(no_time),
        ..NOTHING
    };
    assert_eq!(fs.set_attributes(id, &set, None), Err(FsError::Invalid));
    let sized = SetAttributes {
        size: Some(0),
        ..NOTHING
    };
    assert_eq!(
        fs.set_attributes(ROOT, &sized, None),
        Err(FsError::IsDirectory)
    );
}

#[test]
fn links_keep_their_target_to_the_byte() {
    let mut fs = empty();
    let id = fs.make_symlink(ROOT, b"s", b"../\xff", &NOTHING).unwrap();
    assert_eq!(fs.read_link(id).unwrap().as_slice(), b"../\xff");
    assert_eq!(fs.attributes(id).unwrap().size, 4);
    assert_eq!(fs.read(id, 0, 1), Err(FsError::Invalid));
    assert_eq!(fs.read_link(ROOT), Err(FsError::Invalid));
    let long = [b'l'; TARGET_MAX + 1];
    assert_eq!(
        fs.make_symlink(ROOT, b"t", &long, &NOTHING),
        Err(FsError::NameTooLong)
    );
    assert_eq!(
        fs.make_symlink(ROOT, b"t", b"", &NOTHING),
        Err(FsError::Invalid)
    );
}

#[test]
fn memory_is_bounded_and_comes_back() {
    let mut fs = FileSystem::new(1, 10 * (ENTRY_COST + NODE_COST));
    let make = |fs: &mut FileSystem, at: usize| {
        fs.make_directory(ROOT, format!("d{at}").as_bytes(), &NOTHING)
    };
    for at in 0..10 {
        make(&mut fs, at).unwrap();
    }
    assert_eq!(make(&mut fs, 10), Err(FsError::NoSpace));
    fs.rename(ROOT, b"d0", ROOT, &[b'n'; NAME_MAX]).unwrap();
    fs.rename(ROOT, b"d1", ROOT, b"d2").unwrap();
    make(&mut fs, 10).unwrap();
}

/// What the space account and the link counts should say, from the nodes alone.
fn audit(fs: &FileSystem) {
    let mut used = 0;
    let mut links = HashMap::from([(ROOT, 2)]);
    for (id, node) in &fs.nodes {
        used += if *id == ROOT { 0 } else { node.cost() };
        for entry in fs.list(*id, 0).into_iter().flatten().skip(2) {
            used += ENTRY_COST;
            let below = fs.node(entry.id).unwrap();
            let own = if below.is_directory() { 2 } else { 1 };
            *links.entry(entry.id).or_insert(0) += own;
            *links.entry(*id).or_insert(0) += u32::from(below.is_directory());
            if let Ok(directory) = below.directory() {
                assert_eq!(directory.parent, *id);
            }
        }
    }
    assert_eq!(fs.space().used, used);
    let counted: HashMap<_, _> = fs
        .nodes
        .iter()
        .map(|(id, node)| (*id, node.inode.links))
        .collect();
    assert_eq!(counted, links);
}

/// A small generator of repeatable numbers (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

fn random_step(fs: &mut FileSystem, random: &mut Random) -> Result<(), FsError> {
    let name = |random: &mut Random| [b'a' + random.below(6) as u8];
    let (dir, other) = (FileId(1 + random.below(40)), FileId(1 + random.below(40)));
    let (one, two) = (name(random), name(random));
    match random.below(9) {
        0 => fs.create(dir, &one, Create::Unchecked(NOTHING)).map(drop),
        1 | 2 => fs.make_directory(dir, &one, &NOTHING).map(drop),
        3 => fs.make_symlink(dir, &one, &two, &NOTHING).map(drop),
        4 => fs.remove(dir, &one),
        5 => fs.remove_directory(dir, &one),
        6 => fs.rename(dir, &one, other, &two),
        7 => fs.link(other, dir, &one),
        _ => fs.write(other, random.below(20_000), &[1; 5000]),
    }
}

#[test]
fn the_books_are_right_after_any_operation() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..40 {
        let mut fs = FileSystem::new(1, 60_000);
        for _ in 0..500 {
            let before = fs.space();
            if random_step(&mut fs, &mut random).is_err() {
                assert_eq!(fs.space(), before, "a failure changes nothing");
            }
            audit(&fs);
        }
    }
}
