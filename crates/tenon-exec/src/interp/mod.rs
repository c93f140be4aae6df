//! The interpreter: walks a plan over a [`Value`].

mod decode;
mod encode;

use tenon_plan::{Layout, Op, Place, Plan, links};
use tenon_schema::{EnumMember, TypeId, TypeKind};
use tenon_wire::{DecodeError, Decoder, EncodeError, Encoder};

use crate::{Interface, Value};

impl Interface {
    /// Appends a value of a named type; of a linked list the whole list.
    ///
    /// # Errors
    /// The value is not one of this type; `type.field` says which part. What was appended is to
    /// be dropped.
    ///
    /// # Panics
    /// If `id` is not of this interface.
    pub fn encode(
        &self,
        id: TypeId,
        value: &Value,
        out: &mut Encoder<'_>,
    ) -> Result<(), EncodeError> {
        let frame = self.frame(id);
        match links::is_link(self.schema(), id) {
            true => frame
                .encode_list(value, true, out)
                .map_err(|error| encode::named(error, || Some(frame.name.to_owned()))),
            false => frame.encode(value, out),
        }
    }

    /// Reads a value of a named type; of a linked list the whole list.
    ///
    /// # Errors
    /// The bytes are not a value of this type; `type.field` and the offset say where.
    ///
    /// # Panics
    /// If `id` is not of this interface.
    pub fn decode(&self, id: TypeId, input: &mut Decoder<'_>) -> Result<Value, DecodeError> {
        let frame = self.frame(id);
        match links::is_link(self.schema(), id) {
            true => frame
                .decode_list(true, input)
                .map_err(|error| decode::named(error, || Some(frame.name.to_owned()))),
            false => frame.decode(input),
        }
    }

    fn frame(&self, id: TypeId) -> Frame<'_> {
        Frame {
            interface: self,
            name: &self.schema().type_def(id).name,
            plan: self.plans().of_type(id),
            layout: Layout::of_type(self.schema(), id),
        }
    }
}

/// A plan that is run, and what is needed to speak about it.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub interface: &'a Interface,
    /// The type or procedure.
    pub name: &'a str,
    pub plan: &'a Plan,
    /// What `it` is.
    pub layout: Layout<'a>,
}

impl<'a> Frame<'a> {
    fn of(self, id: TypeId) -> Self {
        self.interface.frame(id)
    }

    /// What is at `place` of `layout`.
    fn at(self, layout: Layout<'a>, place: &Place) -> Layout<'a> {
        let at = layout.at(self.interface.schema(), place);
        at.unwrap_or(Layout::Nothing)
    }

    /// How many fields the struct behind these fields has in memory.
    fn field_count(self, layout: Layout<'a>, path: &[u32]) -> usize {
        let schema = self.interface.schema();
        let fields = layout.along(schema, path).and_then(|at| at.fields(schema));
        fields.map_or(0, <[_]>::len)
    }

    /// What the array or pointer at `place` holds.
    fn element(self, layout: Layout<'a>, place: &Place) -> Layout<'a> {
        let element = self.at(layout, place).element(self.interface.schema());
        element.unwrap_or(Layout::Nothing)
    }

    /// What an arm of the union at `place` holds; without a position, its default arm.
    fn arm(self, layout: Layout<'a>, place: &Place, position: Option<usize>) -> Layout<'a> {
        let union = self.at(layout, place).union(self.interface.schema());
        let field = union.and_then(|union| match position {
            Some(position) => union.arms.get(position)?.field.as_ref(),
            None => union.default.as_ref()?.as_ref(),
        });
        Layout::of_arm(field)
    }

    /// `type.field` of what `op` moves; nothing if that is no field, so that whoever is outside
    /// knows more.
    fn name_of(self, layout: Layout<'a>, op: &Op) -> Option<String> {
        let path = layout.path(self.interface.schema(), op.place()?);
        (!path.is_empty()).then(|| format!("{}.{path}", self.name))
    }

    fn is_member(self, id: TypeId, value: i32) -> bool {
        let is = |member: &EnumMember| member.value == value;
        match &self.interface.schema().type_def(id).kind {
            TypeKind::Enum(members) => members.iter().any(is),
            _ => false,
        }
    }
}

/// Splits off the items of the block that has just been reserved.
fn split_block(ops: &[Op]) -> (&[Op], &[Op]) {
    let inside = ops.iter().take_while(|op| op.is_fixed()).count();
    ops.split_at(inside)
}
