//! Interfaces that the lowering refuses, each with its reason, and near neighbours it takes.

use tenon_plan::{LowerError, Representation, WireSize, lower};
use tenon_schema::{
    Arm, Case, Field, FieldAnnotations, Length, Origin, Schema, Type, TypeAnnotations, TypeDef,
    TypeId, TypeKind, Union,
};

fn schema(kinds: Vec<TypeKind>) -> Schema {
    let def = |(id, kind)| TypeDef {
        name: format!("t{id}"),
        doc: String::new(),
        origin: Origin::default(),
        annotations: TypeAnnotations::default(),
        kind,
    };
    Schema {
        types: kinds.into_iter().enumerate().map(def).collect(),
        ..Schema::default()
    }
}

fn field(ty: Type) -> Field {
    Field {
        name: "f".to_owned(),
        doc: String::new(),
        annotations: FieldAnnotations::default(),
        ty,
    }
}

fn named(id: u32) -> Type {
    Type::Named(TypeId(id))
}

fn structure(fields: &[Type]) -> TypeKind {
    TypeKind::Struct(fields.iter().cloned().map(field).collect())
}

fn union_of(discriminant_type: Type, held: Type) -> TypeKind {
    TypeKind::Union(Union {
        discriminant: "d".to_owned(),
        discriminant_type,
        arms: vec![Arm {
            cases: vec![Case {
                label: "0".to_owned(),
                value: 0,
            }],
            field: Some(field(held)),
        }],
        default: None,
    })
}

fn endless(id: u32) -> LowerError {
    LowerError::Endless(format!("t{id}"))
}

#[test]
fn a_struct_that_holds_itself_by_value_has_no_end() {
    let held = structure(&[Type::Int, named(0)]);
    assert_eq!(
        lower(&schema(vec![held]), Representation::XDR),
        Err(endless(0))
    );
    let held = structure(&[named(0), Type::Optional(Box::new(named(0)))]);
    assert_eq!(
        lower(&schema(vec![held]), Representation::XDR),
        Err(endless(0))
    );
}

#[test]
fn a_union_whose_every_arm_holds_itself_has_no_end() {
    assert_eq!(
        lower(
            &schema(vec![union_of(Type::Int, named(0))]),
            Representation::XDR
        ),
        Err(endless(0))
    );
}

#[test]
fn a_pointer_or_a_counted_array_ends_the_recursion() {
    let pointer = structure(&[Type::Optional(Box::new(named(0))), Type::Int]);
    let array = structure(&[Type::Array(Box::new(named(1)), Length::Counted(u32::MAX))]);
    let plans = lower(&schema(vec![pointer, array]), Representation::XDR).unwrap();
    let size = |min| WireSize { min, max: None };
    assert_eq!(plans.types[0].size, size(8));
    assert_eq!(plans.types[1].size, size(4));
    assert!(plans.types.iter().all(|plan| plan.recursive));
}

#[test]
fn typedefs_that_lead_only_to_each_other_are_refused() {
    let array = TypeKind::Typedef(Type::Array(Box::new(named(1)), Length::Counted(9)));
    let pointer = TypeKind::Typedef(Type::Optional(Box::new(named(0))));
    let refused = lower(&schema(vec![array, pointer]), Representation::XDR).unwrap_err();
    assert!(matches!(refused, LowerError::Endless(_)), "{refused}");
}

#[test]
fn types_nest_64_deep_and_no_deeper() {
    let chain = |depth: u32| {
        let last = std::iter::once(structure(&[Type::Int]));
        let others = (0..depth - 1).map(|id| structure(&[named(id)]));
        schema(last.chain(others).collect())
    };
    assert!(lower(&chain(64), Representation::XDR).is_ok());
    assert_eq!(
        lower(&chain(65), Representation::XDR),
        Err(LowerError::TooDeep("t64".to_owned()))
    );
    assert!(lower(&chain(100_000), Representation::XDR).is_err());
}

#[test]
fn arrays_nest_8_deep_and_no_deeper_even_in_a_recursive_type() {
    let chain = |depth: u32| {
        let last = structure(&[named(depth), Type::Int]);
        let array = |id| Type::Array(Box::new(named(id)), Length::Counted(9));
        let typedefs = (0..depth).map(|id| TypeKind::Typedef(array(id)));
        schema(std::iter::once(last).chain(typedefs).collect())
    };
    assert!(lower(&chain(8), Representation::XDR).is_ok());
    for depth in [9, 100_000] {
        let refused = lower(&chain(depth), Representation::XDR).unwrap_err();
        assert!(
            matches!(refused, LowerError::TooDeepInPlace(_)),
            "{refused}"
        );
    }
}

#[test]
fn a_fixed_item_of_more_than_a_gibibyte_is_refused() {
    let opaque = |bytes| schema(vec![structure(&[Type::Opaque(Length::Fixed(bytes))])]);
    assert!(lower(&opaque(1 << 30), Representation::XDR).is_ok());
    let refused = lower(&opaque((1 << 30) + 1), Representation::XDR);
    assert_eq!(
        refused,
        Err(LowerError::TooLarge("t0".to_owned(), (1 << 30) + 4))
    );
    let quadruples = Type::Array(Box::new(Type::Quadruple), Length::Fixed(u32::MAX));
    assert!(lower(&schema(vec![structure(&[quadruples])]), Representation::XDR).is_err());
}

#[test]
fn a_value_of_more_items_without_bytes_than_a_message_pays_for_is_refused() {
    let nothing = || structure(&[Type::Array(Box::new(Type::Int), Length::Fixed(0))]);
    let of = |id, length| Type::Array(Box::new(named(id)), length);
    let fixed = |count| TypeKind::Typedef(of(0, Length::Fixed(count)));
    let lower = |kinds| lower(&schema(kinds), Representation::XDR).map(drop);
    let refused = |name: &str, items| Err(LowerError::TooManyNothings(name.to_owned(), items));
    for leaf in [
        nothing(),
        structure(&[]),
        structure(&[Type::Opaque(Length::Fixed(0))]),
    ] {
        assert_eq!(lower(vec![leaf.clone(), fixed(1 << 16)]), Ok(()));
        assert_eq!(
            lower(vec![leaf.clone(), fixed(65_537)]),
            refused("t1", 65_537)
        );
        assert_eq!(
            lower(vec![leaf.clone(), fixed(u32::MAX)]),
            refused("t1", u32::MAX.into())
        );
        let double = (0..60).map(|id| structure(&[named(id), named(id)]));
        let doubled = [leaf.clone()].into_iter().chain(double).collect();
        assert_eq!(lower(doubled), refused("t17", 1 << 17));
        let counted = TypeKind::Typedef(of(1, Length::Counted(u32::MAX)));
        assert_eq!(lower(vec![leaf, fixed(1 << 16), counted]), Ok(()));
    }
    let behind = Type::Optional(Box::new(of(0, Length::Fixed(u32::MAX))));
    let behind = structure(&[Type::Int, behind]);
    assert_eq!(
        lower(vec![nothing(), behind]),
        refused("t1", u32::MAX.into())
    );
    let arm = union_of(Type::Int, of(0, Length::Fixed(u32::MAX)));
    assert_eq!(lower(vec![nothing(), arm]), refused("t1", u32::MAX.into()));
}

#[test]
fn only_words_select_an_arm() {
    let refused = lower(
        &schema(vec![union_of(Type::Hyper, Type::Int)]),
        Representation::XDR,
    );
    assert_eq!(refused, Err(LowerError::Discriminant("t0".to_owned())));
    assert!(
        lower(
            &schema(vec![union_of(Type::Bool, Type::Int)]),
            Representation::XDR
        )
        .is_ok()
    );
}
