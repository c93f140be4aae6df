//! What a body still has to move, and what its reserved blocks still have room for.

use tenon_schema::Schema;

use super::Problem;
use crate::item::Place;
use crate::layout::Layout;
use crate::op::Op;
use crate::representation::Representation;

/// The items that are still to come. A struct may be moved as a whole or field by field.
pub(super) struct Expected<'a> {
    schema: &'a Schema,
    /// The next one last.
    items: Vec<(Place, Layout<'a>)>,
}

impl<'a> Expected<'a> {
    pub fn new(schema: &'a Schema, layout: Layout<'a>) -> Self {
        Self {
            schema,
            items: vec![(Place::it(), layout)],
        }
    }

    /// What is at `place`, if that comes next.
    pub fn take(&mut self, place: &Place) -> Option<Layout<'a>> {
        while self.items.last()?.0 != *place {
            self.open().then_some(())?;
        }
        self.items.pop().map(|(_, layout)| layout)
    }

    /// The first item that was not taken. What has no fields needs no operation.
    pub fn next(&mut self) -> Option<Place> {
        while self.items.last()?.1.fields(self.schema) == Some(&[]) {
            self.items.pop();
        }
        self.items.pop().map(|(place, _)| place)
    }

    /// Puts the fields of the next item in its stead, if it has any.
    fn open(&mut self) -> bool {
        let Some((place, fields)) = self
            .items
            .last()
            .and_then(|(place, layout)| Some((place.clone(), layout.fields(self.schema)?)))
        else {
            return false;
        };
        self.items.pop();
        let positions = (0..fields.len() as u32).rev();
        self.items
            .extend(positions.zip(fields.iter().rev()).map(|(position, field)| {
                let mut place = place.clone();
                place.0.push(position);
                (place, Layout::Use(&field.ty))
            }));
        true
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
