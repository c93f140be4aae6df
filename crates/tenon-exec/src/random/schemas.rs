//! Random interfaces: types of every kind, nested in each other at random.

use tenon_schema::{
    Arm, Case, EnumMember, Field, FieldAnnotations, Length, MemberAnnotations, Origin, Schema,
    Type, TypeAnnotations, TypeDef, TypeId, TypeKind, Union,
};

use super::Random;

const TYPES: u32 = 12;

/// Every scalar; the last is the one that rpcgen does not know.
static SCALARS: [Type; 12] = [
    Type::Int,
    Type::Uint,
    Type::Hyper,
    Type::Uhyper,
    Type::Short,
    Type::Ushort,
    Type::Char,
    Type::Uchar,
    Type::Float,
    Type::Double,
    Type::Bool,
    Type::Quadruple,
];

/// Makes an interface without procedures, in which some types may have no finite value.
pub fn schema(random: &mut Random) -> Schema {
    SchemaGenerator {
        random,
        scalars: &SCALARS,
        enums: Vec::new(),
        is_for_c: false,
    }
    .schema()
}

/// Makes one that rpcgen and C support: no quadruple precision, no type without a size, no array of a type that
/// is declared later.
pub fn schema_for_c(random: &mut Random) -> Schema {
    SchemaGenerator {
        random,
        scalars: &SCALARS[..11],
        enums: Vec::new(),
        is_for_c: true,
    }
    .schema()
}

struct SchemaGenerator<'a> {
    random: &'a mut Random,
    scalars: &'static [Type],
    /// Those that there are so far, and their members.
    enums: Vec<(TypeId, Vec<EnumMember>)>,
    is_for_c: bool,
}

fn field(name: &str, ty: Type) -> Field {
    Field {
        name: name.to_owned(),
        doc: String::new(),
        annotations: FieldAnnotations::default(),
        ty,
    }
}

impl SchemaGenerator<'_> {
    fn schema(mut self) -> Schema {
        let types = (0..TYPES).map(|id| TypeDef {
            name: format!("type{id}"),
            doc: String::new(),
            origin: Origin::default(),
            annotations: TypeAnnotations::default(),
            kind: self.kind(id),
        });
        Schema {
            types: types.collect(),
            ..Schema::default()
        }
    }

    /// Fewest fields of a struct, and items of a fixed array.
    fn fewest(&self) -> u64 {
        self.is_for_c.into()
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    fn kind(&mut self, id: u32) -> TypeKind {
        match self.below(10) {
            0 => TypeKind::Enum(self.members(id)),
            1 => TypeKind::Typedef(self.by_value(id)),
            2..=3 => TypeKind::Union(self.union(id)),
            4 => self.link(id),
            5..=6 => TypeKind::Struct(self.numbers()),
            _ => TypeKind::Struct(self.fields(id)),
        }
    }

    fn members(&mut self, id: u32) -> Vec<EnumMember> {
        let members = (0..=self.below(4)).map(|member| EnumMember {
            name: format!("TYPE{id}_MEMBER{member}"),
            doc: String::new(),
            annotations: MemberAnnotations::default(),
            value: member as i32 * 3 - 2,
        });
        let members: Vec<_> = members.collect();
        self.enums.push((TypeId(id), members.clone()));
        members
    }

    fn fields(&mut self, id: u32) -> Vec<Field> {
        let count = self.fewest() + self.below(6 - self.fewest());
        let fields = (0..count).map(|at| field(&format!("field{at}"), self.anywhere(id)));
        fields.collect()
    }

    /// A few numbers of all widths, with holes between them and behind: what is moved field by field, or
    /// as a block, inside of others.
    fn numbers(&mut self) -> Vec<Field> {
        let fields = (0..=self.below(4)).map(|at| field(&format!("field{at}"), self.scalar()));
        fields.collect()
    }

    /// A struct that ends in a pointer to itself.
    fn link(&mut self, id: u32) -> TypeKind {
        let mut fields = self.fields(id);
        let next = Type::Optional(Box::new(Type::Named(TypeId(id))));
        fields.push(field("next", next));
        TypeKind::Struct(fields)
    }

    fn union(&mut self, id: u32) -> Union {
        let (discriminant_type, mut cases) = self.discriminant();
        let all = cases.len();
        cases.truncate(1 + self.below(4) as usize);
        let has_others = cases.len() < all;
        let arms = cases.into_iter().enumerate().map(|(at, case)| Arm {
            cases: vec![case],
            field: (self.below(4) > 0).then(|| field(&format!("arm{at}"), self.anywhere(id))),
        });
        let arms = arms.collect();
        let default = match self.below(4) {
            0 if has_others => Some(Some(field("other", self.anywhere(id)))),
            1 if has_others => Some(None),
            _ => None,
        };
        Union {
            discriminant: "on".to_owned(),
            discriminant_type,
            arms,
            default,
        }
    }

    /// A type that an arm can be chosen by, and five of its values or all that there are.
    fn discriminant(&mut self) -> (Type, Vec<Case>) {
        let ty = match self.below(8) {
            0 => Type::Bool,
            1 if !self.is_for_c => Type::Short,
            2 if !self.is_for_c => Type::Uchar,
            3 | 4 if !self.enums.is_empty() => return self.discriminating_enum(),
            5 | 6 => Type::Uint,
            _ => Type::Int,
        };
        let values: &[(&str, i32)] = match ty {
            Type::Bool => &[("FALSE", 0), ("TRUE", 1)],
            Type::Uchar => &[("0", 0), ("1", 1), ("9", 9), ("127", 127), ("200", 200)],
            Type::Uint => &[("4294967289", -7), ("0", 0), ("1", 1), ("9", 9), ("10", 10)],
            _ => &[("-7", -7), ("0", 0), ("1", 1), ("9", 9), ("10", 10)],
        };
        let cases = values.iter().map(|&(label, value)| Case {
            label: label.to_owned(),
            value,
        });
        (ty, cases.collect())
    }

    fn discriminating_enum(&mut self) -> (Type, Vec<Case>) {
        let which = self.below(self.enums.len() as u64) as usize;
        let (id, members) = &self.enums[which];
        let cases = members.iter().map(|member| Case {
            label: member.name.clone(),
            value: member.value,
        });
        (Type::Named(*id), cases.collect())
    }

    /// A type for a place where the type `id` may occur again.
    fn anywhere(&mut self, id: u32) -> Type {
        let any = Type::Named(TypeId(self.below(TYPES.into()) as u32));
        match self.below(8) {
            0 => Type::Optional(Box::new(any)),
            1 if !self.is_for_c => Type::Array(Box::new(any), Length::Counted(5)),
            1 if id > 0 => {
                let earlier = Type::Named(TypeId(self.below(id.into()) as u32));
                Type::Array(Box::new(earlier), Length::Counted(5))
            }
            _ => self.by_value(id),
        }
    }

    /// A type of which every value ends if those of the types before `id` do.
    fn by_value(&mut self, id: u32) -> Type {
        let item = match self.below(4) {
            0 if id > 0 => Type::Named(TypeId(self.below(id.into()) as u32)),
            1 => Type::Opaque(self.length()),
            2 => Type::String([3, u32::MAX][self.below(2) as usize]),
            _ => self.scalar(),
        };
        match self.below(6) {
            0 => Type::Array(Box::new(item), self.length()),
            1 => Type::Optional(Box::new(item)),
            _ => item,
        }
    }

    fn scalar(&mut self) -> Type {
        self.scalars[self.below(self.scalars.len() as u64) as usize].clone()
    }

    fn length(&mut self) -> Length {
        match self.below(3) {
            0 => Length::Fixed((self.fewest() + self.below(4 - self.fewest())) as u32),
            1 => Length::Counted(u32::MAX),
            _ => Length::Counted(self.below(9) as u32),
        }
    }
}
