//! The generated stubs in use: they compile without a warning, and what they put on the wire is
//! what the interpreter puts there.
#![deny(warnings)]

use std::collections::BTreeSet;
use std::path::Path;

use tenon::wire::{
    Buffer, DecodeError, DecodeErrorKind, DecodeMode, Decoder, EncodeError, EncodeErrorKind,
    Encoder, Limits, Marshal,
};
use tenon_exec::Interface;
use tenon_exec::random::Random;
use tenon_schema::{Type, TypeId};

mod common;

#[path = "golden/arrays.rs"]
mod arrays;
#[path = "golden/calls.rs"]
mod calls;
#[path = "golden/constants.rs"]
mod constants;
#[path = "golden/demo.rs"]
mod demo;
#[path = "golden/deprecated.rs"]
mod deprecated;
#[path = "golden/external.rs"]
mod external;
#[path = "golden/hprpc.rs"]
mod hprpc;
#[path = "golden/in_place.rs"]
mod in_place;
#[path = "golden/lists.rs"]
mod lists;
#[path = "golden/mount3.rs"]
mod mount3;
#[path = "golden/names.rs"]
mod names;
#[path = "golden/namespaces.rs"]
mod namespaces;
#[path = "golden/nested.rs"]
mod nested;
#[path = "golden/nfs3.rs"]
mod nfs3;
#[path = "golden/recursion.rs"]
mod recursion;
#[path = "golden/sensitive.rs"]
mod sensitive;
#[path = "golden/service.rs"]
mod service;
#[path = "golden/torture.rs"]
mod torture;
#[path = "golden/unions.rs"]
mod unions;

/// The type that the interface `external.x` leaves to the module around its stubs.
pub type ElsewhereT = arrays::Point;

/// Holds the stubs of one interface against the interpreter.
struct Check {
    interface: Interface,
    random: Random,
    checked: BTreeSet<String>,
}

impl Check {
    fn of(path: &Path) -> Self {
        Self {
            interface: Interface::new(common::schema(path)).expect("the interface has plans"),
            random: Random::new(1),
            checked: BTreeSet::new(),
        }
    }

    /// Random values of the type `name` take the same bytes, both ways; bytes that are cut off
    /// or changed are refused by both or by none.
    fn moves<T>(
        &mut self,
        name: &str,
        encode: impl Fn(&T, &mut Encoder<'_>) -> Result<(), EncodeError>,
        decode: impl Fn(&mut Decoder<'_>) -> Result<T, DecodeError>,
    ) {
        let id = self.interface.schema().find_type(name).expect(name);
        let recode = |bytes: &[u8], mode| {
            let mut input = Decoder::with(bytes, mode, Limits::default());
            let value = decode(&mut input)?;
            input.finish()?;
            Ok::<_, DecodeError>(written(|out| encode(&value, out)))
        };
        for _ in 0..200 {
            let value = self
                .random
                .value(self.interface.schema(), &Type::Named(id), 40);
            let bytes = written(|out| self.interface.encode(id, &value, out));
            assert_eq!(
                recode(&bytes, DecodeMode::Strict),
                Ok(bytes.clone()),
                "{name}: {value:?}"
            );
            for end in (0..bytes.len()).step_by(1 + bytes.len() / 16) {
                assert!(
                    recode(&bytes[..end], DecodeMode::Lenient).is_err(),
                    "{name}: {end}"
                );
            }
            self.agrees_on_damage(id, &bytes, &recode);
        }
        self.checked.insert(name.to_owned());
    }

    fn agrees_on_damage(
        &mut self,
        id: TypeId,
        bytes: &[u8],
        recode: &impl Fn(&[u8], DecodeMode) -> Result<Vec<u8>, DecodeError>,
    ) {
        for mode in [DecodeMode::Strict, DecodeMode::Lenient] {
            let mut damaged = bytes.to_vec();
            let bit = self.random.below(8 * bytes.len() as u64) as usize;
            if let Some(byte) = damaged.get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
            }
            let mut input = Decoder::with(&damaged, mode, Limits::default());
            let value = self.interface.decode(id, &mut input);
            let expected = value.and_then(|value| input.finish().map(|()| value));
            match (expected, recode(&damaged, mode)) {
                (Ok(value), Ok(compiled)) => {
                    let interpreted = written(|out| self.interface.encode(id, &value, out));
                    assert_eq!(compiled, interpreted, "{damaged:?}");
                }
                (Err(_), Err(_)) => {}
                (interpreted, compiled) => panic!("{damaged:?}: {interpreted:?} {compiled:?}"),
            }
        }
    }

    /// No type of the interface was forgotten.
    fn is_complete(&self) {
        for def in &self.interface.schema().types {
            assert!(
                self.checked.contains(&def.name),
                "{} is not checked",
                def.name
            );
        }
    }
}

fn written(encode: impl FnOnce(&mut Encoder<'_>) -> Result<(), EncodeError>) -> Vec<u8> {
    let mut buffer = Buffer::default();
    encode(&mut Encoder::new(&mut buffer)).expect("the value can be sent");
    buffer.as_slice().to_vec()
}

/// A list that is used by value, as the interpreter takes types that are links.
mod bare {
    use tenon::wire::{DecodeError, Decoder, EncodeError, Encoder, Marshal};

    #[allow(clippy::ptr_arg)]
    pub fn encode<T: Marshal>(list: &Vec<T>, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
        out.put_bare_list(list)
    }

    pub fn decode<T: Marshal>(input: &mut Decoder<'_>) -> Result<Vec<T>, DecodeError> {
        input.get_bare_list()
    }
}

#[test]
fn compiled_and_interpreted_torture_agree() {
    let mut check = Check::of(&common::torture());
    check.moves("scalars", Marshal::encode, <torture::Scalars>::decode);
    check.moves(
        "small_scalars",
        Marshal::encode,
        <torture::SmallScalars>::decode,
    );
    check.moves(
        "temperature",
        Marshal::encode,
        <torture::Temperature>::decode,
    );
    check.moves("color", Marshal::encode, <torture::Color>::decode);
    check.moves("lonely", Marshal::encode, <torture::Lonely>::decode);
    check.moves(
        "fixed_opaques",
        Marshal::encode,
        <torture::FixedOpaques>::decode,
    );
    check.moves(
        "counted_opaques",
        Marshal::encode,
        <torture::CountedOpaques>::decode,
    );
    check.moves("strings", Marshal::encode, <torture::Strings>::decode);
    check.moves("point", Marshal::encode, <torture::Point>::decode);
    check.moves("line", Marshal::encode, <torture::Line>::decode);
    check.moves("drawing", Marshal::encode, <torture::Drawing>::decode);
    check.moves("holes", Marshal::encode, <torture::Holes>::decode);
    check.moves(
        "fixed_arrays",
        Marshal::encode,
        <torture::FixedArrays>::decode,
    );
    check.moves(
        "counted_arrays",
        Marshal::encode,
        <torture::CountedArrays>::decode,
    );
    check.moves(
        "small_arrays",
        Marshal::encode,
        <torture::SmallArrays>::decode,
    );
    check.moves("shade", Marshal::encode, <torture::Shade>::decode);
    check.moves("weather", Marshal::encode, <torture::Weather>::decode);
    check.moves("by_int", Marshal::encode, <torture::ByInt>::decode);
    check.moves("by_uint", Marshal::encode, <torture::ByUint>::decode);
    check.moves("by_bool", Marshal::encode, <torture::ByBool>::decode);
    check.moves(
        "nested_union",
        Marshal::encode,
        <torture::NestedUnion>::decode,
    );
    check.moves("optionals", Marshal::encode, <torture::Optionals>::decode);
    check.moves("node", bare::encode::<torture::Node>, bare::decode);
    check.moves("two_lists", Marshal::encode, <torture::TwoLists>::decode);
    check.moves("group", bare::encode::<torture::Group>, bare::decode);
    check.moves("tree", bare::encode::<torture::Tree>, bare::decode);
    check.moves("directory", Marshal::encode, <torture::Directory>::decode);
    check.moves("binary", Marshal::encode, <torture::Binary>::decode);
    check.moves(
        "expression_kind",
        Marshal::encode,
        <torture::ExpressionKind>::decode,
    );
    check.moves(
        "expression_body",
        Marshal::encode,
        <torture::ExpressionBody>::decode,
    );
    check.moves("expression", Marshal::encode, <torture::Expression>::decode);
    check.moves("everything", Marshal::encode, <torture::Everything>::decode);
    check.moves("number", torture::encode_number, torture::decode_number);
    check.moves(
        "renamed_number",
        torture::encode_renamed_number,
        torture::decode_renamed_number,
    );
    check.moves(
        "twice_renamed_number",
        torture::encode_twice_renamed_number,
        torture::decode_twice_renamed_number,
    );
    check.moves(
        "wide_number",
        torture::encode_wide_number,
        torture::decode_wide_number,
    );
    check.moves("flag", torture::encode_flag, torture::decode_flag);
    check.moves("real", torture::encode_real, torture::decode_real);
    check.moves("paint", torture::encode_paint, torture::decode_paint);
    check.moves("digest", torture::encode_digest, torture::decode_digest);
    check.moves("blob", torture::encode_blob, torture::decode_blob);
    check.moves(
        "short_blob",
        torture::encode_short_blob,
        torture::decode_short_blob,
    );
    check.moves("text", torture::encode_text, torture::decode_text);
    check.moves("label", torture::encode_label, torture::decode_label);
    check.moves("row", torture::encode_row, torture::decode_row);
    check.moves("matrix", torture::encode_matrix, torture::decode_matrix);
    check.moves("rows", torture::encode_rows, torture::decode_rows);
    check.moves(
        "list_of_ints",
        torture::encode_list_of_ints,
        torture::decode_list_of_ints,
    );
    check.moves("ragged", torture::encode_ragged, torture::decode_ragged);
    check.moves(
        "ragged_pair",
        torture::encode_ragged_pair,
        torture::decode_ragged_pair,
    );
    check.moves("polygon", torture::encode_polygon, torture::decode_polygon);
    check.moves(
        "two_lines",
        torture::encode_two_lines,
        torture::decode_two_lines,
    );
    check.moves("words", torture::encode_words, torture::decode_words);
    check.moves("labels", torture::encode_labels, torture::decode_labels);
    check.moves(
        "temperatures",
        torture::encode_temperatures,
        torture::decode_temperatures,
    );
    check.moves("reals", torture::encode_reals, torture::decode_reals);
    check.moves("hypers", torture::encode_hypers, torture::decode_hypers);
    check.moves("bools", torture::encode_bools, torture::decode_bools);
    check.moves("octets", torture::encode_octets, torture::decode_octets);
    check.moves(
        "thousand",
        torture::encode_thousand,
        torture::decode_thousand,
    );
    check.moves("shades", torture::encode_shades, torture::decode_shades);
    check.moves(
        "optional_int",
        torture::encode_optional_int,
        torture::decode_optional_int,
    );
    check.moves(
        "optional_point",
        torture::encode_optional_point,
        torture::decode_optional_point,
    );
    check.moves(
        "optional_text",
        torture::encode_optional_text,
        torture::decode_optional_text,
    );
    check.moves(
        "optional_shade",
        torture::encode_optional_shade,
        torture::decode_optional_shade,
    );
    check.moves(
        "node_list",
        torture::encode_node_list,
        torture::decode_node_list,
    );
    check.moves(
        "directories",
        torture::encode_directories,
        torture::decode_directories,
    );
    check.is_complete();
}

#[test]
fn compiled_and_interpreted_corner_cases_agree() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut check = Check::of(&folder.join("arrays.x"));
    check.moves("small", Marshal::encode, arrays::Small::decode);
    check.moves("long_arrays", Marshal::encode, arrays::LongArrays::decode);
    check.moves("counted", Marshal::encode, arrays::Counted::decode);
    check.moves("nothing", Marshal::encode, arrays::Nothing::decode);
    let mut check = Check::of(&folder.join("lists.x"));
    check.moves("dirlist", Marshal::encode, lists::Dirlist::decode);
    check.moves("listing", Marshal::encode, lists::Listing::decode);
    check.moves("ticks", bare::encode::<lists::Ticks>, bare::decode);
    let mut check = Check::of(&folder.join("recursion.x"));
    check.moves("expression", Marshal::encode, recursion::Expression::decode);
    check.moves("folder", Marshal::encode, recursion::Folder::decode);
    check.moves(
        "folder_ref",
        recursion::encode_folder_ref,
        recursion::decode_folder_ref,
    );
    let mut check = Check::of(&folder.join("in_place.x"));
    check.moves("chain", Marshal::encode, in_place::Chain::decode);
    check.moves("link", Marshal::encode, in_place::Link::decode);
    check.moves("term", Marshal::encode, in_place::Term::decode);
    check.moves("pair", Marshal::encode, in_place::Pair::decode);
    check.moves("group", Marshal::encode, in_place::Group::decode);
    check.moves("same", in_place::encode_same, in_place::decode_same);
    let mut check = Check::of(&folder.join("nested.x"));
    check.moves("book", Marshal::encode, nested::Book::decode);
    check.moves("shelf", Marshal::encode, nested::Shelf::decode);
    check.moves("ledger", Marshal::encode, nested::Ledger::decode);
    let mut check = Check::of(&folder.join("unions.x"));
    check.moves("total", Marshal::encode, unions::Total::decode);
    check.moves("partial", Marshal::encode, unions::Partial::decode);
    check.moves("covered", Marshal::encode, unions::Covered::decode);
    check.moves("by_int", Marshal::encode, unions::ByInt::decode);
    check.moves("by_uint", Marshal::encode, unions::ByUint::decode);
    check.moves("by_names", Marshal::encode, unions::ByNames::decode);
    check.moves("by_bool", Marshal::encode, unions::ByBool::decode);
    check.moves("only_default", Marshal::encode, unions::OnlyDefault::decode);
    check.moves("by_typedef", Marshal::encode, unions::ByTypedef::decode);
    let mut check = Check::of(&folder.join("names.x"));
    check.moves("fn", Marshal::encode, names::Fn::decode);
    check.moves("result", Marshal::encode, names::Result_::decode);
}

#[test]
fn compiled_and_interpreted_namespaces_agree() {
    use namespaces::{core_, shapes};
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut check = Check::of(&folder.join("namespaces.x"));
    check.moves("label", namespaces::encode_label, namespaces::decode_label);
    check.moves("color", Marshal::encode, namespaces::Color::decode);
    check.moves("shapes::color", Marshal::encode, shapes::Color::decode);
    check.moves("shapes::point", Marshal::encode, shapes::Point::decode);
    use shapes::solid;
    check.moves(
        "shapes::solid::polygon",
        Marshal::encode,
        solid::Polygon::decode,
    );
    check.moves("shapes::solid::face", Marshal::encode, solid::Face::decode);
    check.moves(
        "shapes::solid::faces",
        solid::encode_faces,
        solid::decode_faces,
    );
    check.moves(
        "core::wrapped_inside",
        Marshal::encode,
        core_::WrappedInside::decode,
    );
    check.moves("core::wrapped", Marshal::encode, core_::Wrapped::decode);
    check.is_complete();
    // `RED` is looked for where it is used.
    let polygon = solid::Polygon {
        fill: shapes::Color::Red,
        frame: namespaces::Color::Red,
        ..solid::Polygon::default()
    };
    let bytes = written(|out| solid::Face::Red(polygon).encode(out));
    assert_eq!(bytes, [1, 0, 1, 7].map(u32::to_be_bytes).concat());
}

#[test]
fn large_values_live_on_the_heap() {
    let value = arrays::Large::default();
    let bytes = written(|out| value.encode(out));
    assert_eq!(bytes.len(), 4 * 5000 * 2 + 5004 + 8 * 1000 + 20 * 300);
    assert_eq!(arrays::Large::decode(&mut Decoder::new(&bytes)), Ok(value));
    assert!(size_of::<arrays::Large>() < 64);
    assert!(size_of::<arrays::Reply>() < 64);
}

/// The promise of the documentation of an element's type.
#[test]
fn an_element_moves_alone_and_lists_by_cursors() {
    let entry = |fileid| lists::Entry {
        fileid,
        name: "x".into(),
    };
    let entries = vec![entry(1), entry(2)];
    let element = written(|out| entries[0].encode(out));
    let bare = written(|out| out.put_bare_list(&entries));
    let list = written(|out| out.put_list(&entries));
    assert_eq!(list, written(|out| lists::encode_entries(&entries, out)));
    assert_eq!((element.len(), bare.len(), list.len()), (16, 40, 44));
    // The list begins with an element, so that this is read alone, and the rest is left.
    let mut input = Decoder::new(&bare);
    assert_eq!(lists::Entry::decode(&mut input), Ok(entry(1)));
    assert_eq!(input.left(), 24);
    let read = Decoder::new(&bare).get_bare_list();
    assert_eq!(read, Ok(entries.clone()));
    assert_eq!(Decoder::new(&list).get_list(), Ok(entries));
}

#[test]
fn long_lists_need_no_stack() {
    let value = torture::TwoLists {
        first: (0..100_000)
            .map(|value| torture::Node {
                value,
                name: "n".into(),
            })
            .collect(),
        ..Default::default()
    };
    let worker = std::thread::Builder::new().stack_size(256 << 10);
    let moved = worker.spawn(move || {
        let bytes = written(|out| value.encode(out));
        assert_eq!(bytes.len(), 100_000 * 16 + 12);
        assert_eq!(
            torture::TwoLists::decode(&mut Decoder::new(&bytes)),
            Ok(value)
        );
    });
    moved
        .expect("a thread starts")
        .join()
        .expect("the list is moved");
}

fn nested(levels: usize) -> torture::Directory {
    let mut directory = torture::Directory::default();
    for _ in 1..levels {
        directory = torture::Directory {
            entries: vec![directory],
            ..Default::default()
        };
    }
    directory
}

#[test]
fn nesting_ends_at_the_limit() {
    let deepest = nested(128);
    let bytes = written(|out| deepest.encode(out));
    assert_eq!(
        torture::Directory::decode(&mut Decoder::new(&bytes)),
        Ok(deepest)
    );

    let mut buffer = Buffer::default();
    let error = nested(129)
        .encode(&mut Encoder::new(&mut buffer))
        .expect_err("too deep");
    assert_eq!(error.kind, EncodeErrorKind::TooDeep);
    let inner = [0, 0, 0, 0, 0, 0, 0, 1].repeat(100_000);
    let error = torture::Directory::decode(&mut Decoder::new(&inner)).expect_err("too deep");
    assert_eq!(error.kind, DecodeErrorKind::TooDeep);
    assert_eq!(error.field, "directory.entries");
}

#[test]
fn errors_name_the_field() {
    let error = torture::Line::decode(&mut Decoder::new(&[0; 12])).expect_err("too short");
    assert_eq!(
        error.to_string(),
        "line: 16 bytes needed, 12 left at byte 0"
    );
    let long = torture::Strings {
        up_to_three: "four".into(),
        ..Default::default()
    };
    let mut buffer = Buffer::default();
    let error = long
        .encode(&mut Encoder::new(&mut buffer))
        .expect_err("too long");
    assert_eq!(
        error.to_string(),
        "strings.up_to_three: length 4 is over the bound 3"
    );
    let error = torture::Color::decode(&mut Decoder::new(&[0, 0, 0, 4])).expect_err("no color");
    assert_eq!(error.kind, DecodeErrorKind::UnknownValue(4));
}

#[test]
fn a_default_arm_stands_for_no_other() {
    let mut buffer = Buffer::default();
    let false_default = torture::Weather::Default(torture::Temperature::Warm, 1.0);
    let error = false_default
        .encode(&mut Encoder::new(&mut buffer))
        .expect_err("refused");
    assert_eq!(error.kind, EncodeErrorKind::BadDiscriminant(25));
    let shade = torture::Weather::Default(torture::Temperature::Zero, 1.0);
    let bytes = written(|out| shade.encode(out));
    assert_eq!(
        torture::Weather::decode(&mut Decoder::new(&bytes)),
        Ok(shade)
    );
}

#[test]
fn names_that_rust_needs_are_free_to_use() {
    use names::Type;
    assert_eq!(Type::default() as i32, 0);
    assert_eq!(Type::OK, Type::Ok);
    assert_eq!((names::IF, names::IF_2), (1, 2));
}

/// Values within themselves, as many levels of them as `depth`.
fn within<T: Default>(depth: u32, around: fn(T) -> T) -> T {
    (1..depth).fold(T::default(), |inner, _| around(inner))
}

fn book(inner: nested::Book) -> nested::Book {
    nested::Book {
        left: Some(Box::new(inner)),
        ..nested::Book::default()
    }
}

fn ledger(inner: nested::Ledger) -> nested::Ledger {
    nested::Ledger {
        left: Some(Box::new(inner)),
        ..nested::Ledger::default()
    }
}

/// Runs on a stack of two mebibytes, as the threads of a server have, and in a build that is not optimised.
fn nests_on_a_thread<T: Default + Marshal + PartialEq + 'static>(around: fn(T) -> T) {
    let test = move || {
        let limits = Limits::default();
        let bytes = written(|out| within(limits.depth, around).encode(out));
        let read = |depth| {
            let limits = Limits { depth, ..limits };
            T::decode(&mut Decoder::with(&bytes, DecodeMode::Strict, limits))
        };
        let value = read(limits.depth).expect("it is no deeper than allowed");
        assert!(value == within(limits.depth, around));
        let refused = read(limits.depth - 1).map(drop);
        assert_eq!(
            refused.map_err(|error| error.kind),
            Err(DecodeErrorKind::TooDeep)
        );
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(test);
    let ended = thread.expect("a thread starts").join();
    ended.expect("nothing in it panics");
}

#[test]
fn the_deepest_value_fits_on_the_stack_of_a_thread() {
    nests_on_a_thread(book);
    assert!((976..1024).contains(&size_of::<nested::Ledger>()));
    nests_on_a_thread(ledger);
}

/// Neither types nor their views show the values of sensitive fields, wherever they stand.
#[test]
fn debug_hides_what_is_sensitive() {
    use sensitive::{Key, Login, Proof, Session, SessionView};
    use tenon::wire::View;

    let session = Session {
        by: Login {
            user: "ada".into(),
            password: "secret".into(),
            attempts: 7,
        },
        with: Proof::Token("secret".into()),
    };
    let shown = "Session { by: Login { user: \"ada\", attempts: 7, .. }, with: Proof { .. } }";
    assert_eq!(format!("{session:?}"), shown);
    assert_eq!(format!("{:?}", Key::default()), "Key { .. }");
    let mut buffer = Buffer::default();
    session.encode(&mut Encoder::new(&mut buffer)).unwrap();
    let view = SessionView::view(&mut Decoder::new(buffer.as_slice())).unwrap();
    let shown = format!("{view:?}");
    assert!(
        shown.contains("ada") && !shown.contains("secret"),
        "{shown}"
    );
}

/// Each use of what an interface advises against is warned of, and the stubs themselves are not: an expectation that is
/// not met, and a warning that is not expected, are errors here.
#[test]
fn uses_of_what_is_deprecated_are_warned_of() {
    use deprecated::{AtlasV1Calls, Color, Found, Place};

    fn fields(place: &Place) -> i32 {
        let _allowed = place.y;
        #[expect(deprecated)]
        place.x
    }

    #[expect(deprecated)]
    fn types(_: deprecated::Point, _: deprecated::Places, _: deprecated::AtlasV2Client) {}

    fn members() -> [Color; 3] {
        #[expect(deprecated)]
        let both = [Color::Blue, Color::SCARLET];
        [Color::Red, both[0], both[1]]
    }

    fn arms() -> (Found, bool) {
        #[expect(deprecated)]
        let red = Found::Red(Place::default());
        #[expect(deprecated)]
        let is_red = matches!(red, Found::Red(_));
        (red, is_red)
    }

    fn calls(atlas: &deprecated::AtlasV1Client, mock: &dyn AtlasV1Calls) {
        let _allowed = (atlas.find(1), mock.find(1));
        #[expect(deprecated)]
        let _look = atlas.look(1);
        #[expect(deprecated)]
        let _start = atlas.start_look(1);
        #[expect(deprecated)]
        let _mock = mock.look(1);
    }

    assert_eq!(fields(&Place::default()), 0);
    assert_eq!(members()[0] as i32, 1);
    assert!(arms().1);
    let _ = (types, calls);
}
