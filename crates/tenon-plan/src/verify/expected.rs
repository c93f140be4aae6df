//! Items that a body still has to move.

use tenon_schema::Schema;

use super::VerifyErrorKind;
use crate::item::Place;
use crate::layout::Layout;
use crate::size::Sizes;

/// The items that are still to come. A struct may be moved as a whole or field by field.
pub(super) struct ExpectedItems<'a> {
    schema: &'a Schema,
    sizes: &'a Sizes<'a>,
    /// The next one last.
    items: Vec<ExpectedItem<'a>>,
}

enum ExpectedItem<'a> {
    At(Place, Layout<'a>),
    /// Behind the last field of a struct of fixed size, which is a multiple of this.
    End(u32),
}

impl<'a> ExpectedItems<'a> {
    pub fn new(schema: &'a Schema, sizes: &'a Sizes<'a>, layout: Layout<'a>) -> Self {
        Self {
            schema,
            sizes,
            items: vec![ExpectedItem::At(Place::it(), layout)],
        }
    }

    /// Returns the alignment of the next position by the structs that have ended since the last item.
    pub fn ended(&mut self) -> u32 {
        let mut ended = 1;
        while let Some(ExpectedItem::End(align)) = self.items.last() {
            ended = ended.max(*align);
            self.items.pop();
        }
        ended
    }

    /// Takes the item at `place`, if that comes next; returns it and the alignment of its position by the structs
    /// that begin with it.
    pub fn take(&mut self, place: &Place) -> Option<(Layout<'a>, u32)> {
        let mut align = 1;
        loop {
            align = align.max(match self.items.pop()? {
                ExpectedItem::End(align) => align,
                ExpectedItem::At(at, layout) if at == *place => return Some((layout, align)),
                ExpectedItem::At(at, layout) => self.open(&at, layout)?,
            });
        }
    }

    /// The first item that was not taken. What has no fields needs no operation.
    pub fn next(&mut self) -> Option<Place> {
        self.items.drain(..).rev().find_map(|item| match item {
            ExpectedItem::At(place, layout) if layout.fields(self.schema) != Some(&[]) => {
                Some(place)
            }
            ExpectedItem::At(..) | ExpectedItem::End(_) => None,
        })
    }

    /// Has the fields of an item come next, if it has any, and says what its position is a multiple
    /// of. Where the body begins and ends as a whole is not looked at here.
    fn open(&mut self, place: &Place, layout: Layout<'a>) -> Option<u32> {
        let fields = layout.fields(self.schema)?;
        let (align, end) = match layout {
            Layout::Use(ty) => (self.sizes.align(ty), self.sizes.fixed(ty)),
            Layout::Nothing | Layout::Record(_) | Layout::Definition(_) => (1, None),
        };
        self.items
            .extend(end.map(|extent| ExpectedItem::End(extent.align)));
        let positions = (0..fields.len()).rev();
        self.items
            .extend(positions.zip(fields.iter().rev()).map(|(position, field)| {
                let place = place.then(&Place::field(position));
                ExpectedItem::At(place, Layout::Use(&field.ty))
            }));
        Some(align)
    }
}

/// The struct inside a record that is moved field by field.
#[derive(Default)]
pub(super) struct OpenStruct {
    /// Its position in the record.
    position: Option<u32>,
    /// True if its latest item lies in the present block.
    pub in_block: bool,
}

impl OpenStruct {
    /// Takes an item at `place`, which lies in the present block or in none.
    pub fn take(&mut self, place: &Place, in_block: bool) -> Result<(), VerifyErrorKind> {
        let position = match place.0.as_slice() {
            [] | [_] => None,
            [position, ..] => Some(*position),
        };
        if position.is_some() && position == self.position && !(in_block && self.in_block) {
            return Err(VerifyErrorKind::Split);
        }
        *self = Self { position, in_block };
        Ok(())
    }
}
