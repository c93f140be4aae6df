//! Messages that do not pay for the memory that they take: which types have such is known, and it is
//! those of which messages are refused.

use crate::support;
use crate::support::schema;
use tenon_exec::{Interface, amplifying_types};
use tenon_plan::Representation as Form;
use tenon_wire::{DecodeErrorKind, DecodeMode, Decoder, Lean, Limits, Native, Representation, Xdr};

/// The types and procedures of an interface that are found, with how much one item lacks.
fn found(text: &str, form: Form) -> Vec<(String, u64)> {
    let found = amplifying_types(&schema(text), form).into_iter();
    found.map(|found| (found.name, found.bytes)).collect()
}

/// The error for a message of `name`, if there is one.
fn refused<R: Representation>(
    text: &str,
    form: Form,
    name: &str,
    bytes: &[u8],
) -> Option<DecodeErrorKind> {
    let interface = Interface::with_representation(schema(text), form).expect("types that end");
    let id = interface.schema().find_type(name).expect("it is there");
    let message = interface.message(id).expect("a layout");
    let mut input = Decoder::<R>::over(bytes, DecodeMode::Strict, Limits::default());
    message.decode(&mut input).err().map(|error| error.kind)
}

/// A count and as many words.
fn counted(count: u32, of: u32) -> Vec<u8> {
    let words = std::iter::once(count).chain((0..count).map(|_| of));
    words.flat_map(u32::to_be_bytes).collect()
}

#[test]
fn a_union_is_found_when_its_largest_arm_is_not_paid_for_by_its_smallest() {
    let of = |bytes: u32| {
        format!(
            "union u switch (int k) {{ case 0: opaque x[{bytes}]; default: void; }}; typedef u us<>;"
        )
    };
    let many = counted(100_000, 1);
    // 4 bytes pay for 256, of which the discriminant takes 4.
    assert_eq!(found(&of(252), Form::XDR), []);
    assert_eq!(refused::<Xdr>(&of(252), Form::XDR, "us", &many), None);
    assert_eq!(found(&of(253), Form::XDR), [("us".to_owned(), 4)]);
    let too_much = Some(DecodeErrorKind::TooMuchMemory);
    assert_eq!(refused::<Xdr>(&of(253), Form::XDR, "us", &many), too_much);
    assert_eq!(
        refused::<Xdr>(&of(253), Form::XDR, "us", &many[..4 + 4]),
        Some(DecodeErrorKind::Truncated {
            needed: 400_000,
            left: 4
        })
    );
    let few = counted(10_000, 1);
    assert_eq!(refused::<Xdr>(&of(253), Form::XDR, "us", &few), None);
}

#[test]
fn a_smaller_message_pays_for_less() {
    let text =
        "union u switch (bool k) { case TRUE: opaque x[100]; case FALSE: void; }; typedef u us<>;";
    assert_eq!(found(text, Form::XDR), []);
    assert_eq!(found(text, Form::LEAN), [("us".to_owned(), 104 - 64)]);
    let many = |count: u32| [count.to_ne_bytes().to_vec(), vec![0; count as usize]].concat();
    let refused = |count| refused::<Lean<Native>>(text, Form::LEAN, "us", &many(count));
    assert_eq!(refused(1000), None);
    assert_eq!(refused(10_000), Some(DecodeErrorKind::TooMuchMemory));
}

#[test]
fn whatever_repeats_such_a_union_is_found() {
    let text = "
        union big switch (int k) { case 0: opaque block[4096]; default: void; };
        typedef big all<>;
        typedef big few<17>;
        typedef big some<18>;
        struct one { big it; };
        struct list { big it; list *next; };
        struct pointer { big *to; };
        typedef pointer pointers<>;
        typedef all alls<>;
        typedef one row[18];
        struct tree { big it; tree *left; tree *right; };
        struct small { int it; string s<>; small *left; small *right; };
        typedef small smalls<>;
        program P { version V { void F(big<>) = 1; } = 1; } = 9;";
    let text = text.replace("F(big<>)", "F(pointers)");
    let names: Vec<String> = found(&text, Form::XDR)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["all", "some", "list", "pointers", "tree"]);
    let refused = |name, count| refused::<Xdr>(&text, Form::XDR, name, &counted(count, 1));
    assert_eq!(refused("few", 17), None);
    assert_eq!(refused("some", 17), None);
    assert_eq!(refused("some", 18), Some(DecodeErrorKind::TooMuchMemory));
}

#[test]
fn interfaces_of_people_have_none() {
    for interface in support::interfaces() {
        for form in [Form::XDR, Form::LEAN] {
            assert_eq!(amplifying_types(interface.schema(), form), []);
        }
    }
}
