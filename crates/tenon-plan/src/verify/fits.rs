//! Checks that an operation fits the type of the item that it moves.

use tenon_schema::{Field, Length, Type, TypeId, TypeKind, Union};

use super::{PlanVerifier, VerifyError, VerifyErrorKind};
use crate::item::{Blittable, Scalar};
use crate::layout::Layout;
use crate::links::{is_link, linked_list};
use crate::op::{Arm, Count, ElementSize, Op};
use crate::position::MessagePosition;
use crate::representation::WireExtent;
use crate::reserved::{FixedKind, ReservedBlock};

impl<'a> PlanVerifier<'a> {
    /// Holds an operation against the type of the item it moves.
    pub(super) fn item(
        &self,
        op: &Op,
        item: Layout<'_>,
        at: &str,
        position: MessagePosition,
    ) -> Result<(), VerifyError> {
        let fits = match item {
            Layout::Nothing | Layout::Record(_) => false,
            Layout::Use(ty) => {
                self.fits(op, ty, at, position)? && !matches!(op, Op::External { .. })
            }
            Layout::Definition(id) => {
                self.fits(op, &Type::Named(id), at, position)? && !matches!(op, Op::Call { .. })
            }
        };
        match fits {
            true => Ok(()),
            false => Err(self.error(at, VerifyErrorKind::Type)),
        }
    }

    /// Returns whether an item of a block fits the type of what it moves.
    pub(super) fn fits_fixed(&self, kind: &FixedKind, item: Layout<'_>) -> bool {
        match item {
            Layout::Nothing => false,
            Layout::Record(fields) => self.is_whole_record(kind, fields),
            Layout::Use(ty) => self.is_fixed(kind, ty),
            Layout::Definition(id) => self.is_fixed(kind, &Type::Named(id)),
        }
    }

    fn is_whole_record(&self, kind: &FixedKind, fields: &[Field]) -> bool {
        match kind {
            FixedKind::Blit { item, count: 1 } => {
                self.blittables.of_fields(fields).as_ref() == Some(item)
            }
            _ => false,
        }
    }

    fn is_fixed(&self, kind: &FixedKind, ty: &Type) -> bool {
        let resolved = self.schema.resolve(ty);
        match kind {
            FixedKind::Put { scalar } => self.is_scalar(ty, *scalar),
            FixedKind::PutArray { scalar, count } => {
                self.is_array_of(resolved, *scalar, Length::Fixed(*count))
            }
            FixedKind::Copy { bytes } => *resolved == Type::Opaque(Length::Fixed(*bytes)),
            FixedKind::Blit { item, count } => self.is_blittable(ty, item, *count),
        }
    }

    fn fits(
        &self,
        op: &Op,
        ty: &Type,
        at: &str,
        position: MessagePosition,
    ) -> Result<bool, VerifyError> {
        let inside = position.inside(op, self.sizes);
        let resolved = self.schema.resolve(ty);
        let is = |expected: Type| *resolved == expected;
        Ok(match op {
            Op::Reserve(_) | Op::Align { .. } => false,
            Op::BlitCounted { item, bound, .. } => {
                self.is_array_where(resolved, Length::Counted(*bound), |element| {
                    self.blittables.of(element).as_ref() == Some(item)
                })
            }
            Op::PutElements {
                count,
                align,
                element,
                ..
            } => self.is_loop_of_blocks(resolved, *count, *align, element)?,
            Op::PutCounted { scalar, bound, .. } => {
                self.is_array_of(resolved, *scalar, Length::Counted(*bound))
            }
            Op::CopyCounted { bound, text, .. } => match text {
                true => is(Type::String(*bound)),
                false => is(Type::Opaque(Length::Counted(*bound))),
            },
            Op::Loop {
                count,
                element,
                body,
                ..
            } => self.is_loop(resolved, (*count, *element), body, at, inside)?,
            Op::Switch {
                discriminant,
                arms,
                default,
                ..
            } => self.is_switch(resolved, *discriminant, (arms, default.as_deref()), inside)?,
            Op::Optional { body, .. } => self.is_optional(ty, resolved, body, inside)?,
            Op::List {
                first_bare,
                element,
                ..
            } => linked_list(self.schema, ty)
                .is_some_and(|list| (list.element, list.first_bare) == (*element, *first_bare)),
            Op::Call { plan, .. } => is(Type::Named(*plan)) && self.is_called(*plan),
            Op::External { ty, .. } => {
                is(Type::Named(*ty)) && self.schema.type_def(*ty).kind == TypeKind::External
            }
        })
    }

    fn is_scalar(&self, ty: &Type, scalar: Scalar) -> bool {
        Scalar::of(self.schema, ty) == Some(scalar)
    }

    fn is_array_of(&self, ty: &Type, scalar: Scalar, length: Length) -> bool {
        self.is_array_where(ty, length, |element| self.is_scalar(element, scalar))
    }

    fn is_array_where(&self, ty: &Type, length: Length, is: impl FnOnce(&Type) -> bool) -> bool {
        matches!(ty, Type::Array(element, of) if *of == length && is(element))
    }

    /// A value as a whole, or the elements of a fixed array.
    fn is_blittable(&self, ty: &Type, item: &Blittable, count: u32) -> bool {
        let of = |ty: &Type| self.blittables.of(ty).as_ref() == Some(item);
        match self.schema.resolve(ty) {
            Type::Array(element, length) => *length == Length::Fixed(count) && of(element),
            _ => count == 1 && of(ty),
        }
    }

    fn is_called(&self, id: TypeId) -> bool {
        match self.schema.type_def(id).kind {
            TypeKind::Struct(_) | TypeKind::Union(_) | TypeKind::External => {
                !is_link(self.schema, id)
            }
            TypeKind::Enum(_) | TypeKind::Typedef(_) => false,
        }
    }

    fn is_loop(
        &self,
        ty: &Type,
        (count, element): (Count, ElementSize),
        body: &[Op],
        at: &str,
        inside: MessagePosition,
    ) -> Result<bool, VerifyError> {
        let Type::Array(of, length) = ty else {
            return Ok(false);
        };
        if element != self.sizes.element(of) {
            return Err(self.error(at, VerifyErrorKind::Element));
        }
        self.body(body, Layout::Use(of), inside)?;
        Ok(*length == length_of(count))
    }

    fn is_loop_of_blocks(
        &self,
        ty: &Type,
        count: Count,
        align: u32,
        element: &ReservedBlock,
    ) -> Result<bool, VerifyError> {
        let Type::Array(of, length) = ty else {
            return Ok(false);
        };
        self.element(element, Layout::Use(of), MessagePosition::aligned(align))?;
        let extent = WireExtent {
            bytes: element.bytes.into(),
            align,
        };
        Ok(*length == length_of(count) && self.sizes.fixed(of) == Some(extent))
    }

    fn is_optional(
        &self,
        ty: &Type,
        resolved: &Type,
        body: &[Op],
        inside: MessagePosition,
    ) -> Result<bool, VerifyError> {
        let Type::Optional(to) = resolved else {
            return Ok(false);
        };
        self.body(body, Layout::Use(to), inside)?;
        Ok(linked_list(self.schema, ty).is_none())
    }

    fn is_switch(
        &self,
        ty: &Type,
        discriminant: Scalar,
        (arms, default): (&[Arm], Option<&[Op]>),
        inside: MessagePosition,
    ) -> Result<bool, VerifyError> {
        let Some(union) = self.union(ty) else {
            return Ok(false);
        };
        if arms.len() != union.arms.len() || default.is_some() != union.default.is_some() {
            return Ok(false);
        }
        for (arm, of) in arms.iter().zip(&union.arms) {
            let cases = of.cases.iter().map(|case| &case.value);
            if !arm.values.iter().eq(cases) {
                return Ok(false);
            }
            self.arm(&arm.body, of.field.as_ref(), inside)?;
        }
        if let (Some(body), Some(of)) = (default, &union.default) {
            self.arm(body, of.as_ref(), inside)?;
        }
        Ok(
            discriminant.is_discriminant()
                && self.is_scalar(&union.discriminant_type, discriminant),
        )
    }

    fn union(&self, ty: &Type) -> Option<&'a Union> {
        let Type::Named(id) = ty else { return None };
        match &self.schema.type_def(*id).kind {
            TypeKind::Union(union) => Some(union),
            _ => None,
        }
    }

    fn arm(
        &self,
        body: &[Op],
        field: Option<&Field>,
        inside: MessagePosition,
    ) -> Result<(), VerifyError> {
        self.body(body, Layout::of_arm(field), inside)
    }
}

fn length_of(count: Count) -> Length {
    match count {
        Count::Fixed(count) => Length::Fixed(count),
        Count::Counted(bound) => Length::Counted(bound),
    }
}
