//! What a body still has to move, and what its reserved blocks still have room for.

use tenon_schema::Schema;

use super::Problem;
use crate::item::Place;
use crate::layout::Layout;
use crate::op::Op;
use crate::representation::Representation;
use crate::size::Sizes;

/// The items that are still to come. A struct may be moved as a whole or field by field.
pub(super) struct Expected<'a> {
    schema: &'a Schema,
    sizes: &'a Sizes<'a>,
    /// The next one last.
    items: Vec<Item<'a>>,
}

enum Item<'a> {
    At(Place, Layout<'a>),
    /// Behind the last field of a struct of fixed size, which is a multiple of this.
    End(u32),
}

impl<'a> Expected<'a> {
    pub fn new(schema: &'a Schema, sizes: &'a Sizes<'a>, layout: Layout<'a>) -> Self {
        Self {
            schema,
            sizes,
            items: vec![Item::At(Place::it(), layout)],
        }
    }

    /// What the next position is a multiple of by the structs that have ended since the last item.
    pub fn ended(&mut self) -> u32 {
        let mut ended = 1;
        while let Some(Item::End(align)) = self.items.last() {
            ended = ended.max(*align);
            self.items.pop();
        }
        ended
    }

    /// What is at `place`, if that comes next, and what its position is a multiple of by the structs
    /// that begin with it.
    pub fn take(&mut self, place: &Place) -> Option<(Layout<'a>, u32)> {
        let mut align = 1;
        loop {
            align = align.max(match self.items.pop()? {
                Item::End(align) => align,
                Item::At(at, layout) if at == *place => return Some((layout, align)),
                Item::At(at, layout) => self.open(&at, layout)?,
            });
        }
    }

    /// The first item that was not taken. What has no fields needs no operation.
    pub fn next(&mut self) -> Option<Place> {
        self.items.drain(..).rev().find_map(|item| match item {
            Item::At(place, layout) if layout.fields(self.schema) != Some(&[]) => Some(place),
            Item::At(..) | Item::End(_) => None,
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
        self.items.extend(end.map(|extent| Item::End(extent.align)));
        let positions = (0..fields.len()).rev();
        self.items
            .extend(positions.zip(fields.iter().rev()).map(|(position, field)| {
                let place = place.then(&Place::field(position));
                Item::At(place, Layout::Use(&field.ty))
            }));
        Some(align)
    }
}

/// The struct inside a record whose fields are being moved.
#[derive(Default)]
pub(super) struct Opened {
    /// Its position in the record.
    position: Option<u32>,
    /// Whether its latest item lies in the present block.
    pub in_block: bool,
}

impl Opened {
    pub fn take(&mut self, op: &Op, place: &Place) -> Result<(), Problem> {
        let position = match place.0.as_slice() {
            [] | [_] => None,
            [position, ..] => Some(*position),
        };
        let in_block = op.is_fixed();
        if position.is_some() && position == self.position && !(in_block && self.in_block) {
            return Err(Problem::Split);
        }
        *self = Self { position, in_block };
        Ok(())
    }
}

/// The latest reserved block.
#[derive(Default)]
pub(super) struct Block {
    bytes: u64,
    filled: u64,
}

impl Block {
    pub fn of(bytes: u64) -> Self {
        Self { bytes, filled: 0 }
    }

    /// Opens a block, takes an item into it, or closes it in front of an operation that makes its
    /// own check.
    pub fn take(&mut self, op: &Op, representation: &Representation) -> Result<(), Problem> {
        if let Op::Reserve { bytes } = op {
            self.close()?;
            *self = Self::of(u64::from(*bytes));
            return Ok(());
        }
        let Some((offset, bytes)) = op.fixed(representation) else {
            return self.close();
        };
        if u64::from(offset) != self.filled || self.filled + bytes > self.bytes {
            return Err(Problem::Offset);
        }
        self.filled += bytes;
        Ok(())
    }

    pub fn close(&mut self) -> Result<(), Problem> {
        if self.filled != self.bytes {
            return Err(Problem::Gap);
        }
        *self = Self::default();
        Ok(())
    }
}
