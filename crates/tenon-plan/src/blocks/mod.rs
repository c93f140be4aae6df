//! Finds the parts of a record that could be moved in blocks, the points at which a block is broken,
//! the reasons, and the order of the fields that would mend it. Nothing is rewritten here: this is
//! what [`crate::explain_passes`] tells authors of interfaces.
//!
//! Items belong to one block when they lie behind each other without a gap, in memory as C lays
//! it out and on the wire, and are swapped by the same number of bytes or not at all. So a block
//! is broken by a *hole* (bytes that only one of both sides has), by an *order* (another width
//! to swap by), by values that must be *looked at*, by a part that *varies* in size, and by an array
//! that has memory of its own. Where the wire has the sender's order, an order breaks blocks for a
//! peer of the other one only. A struct that has no hole at all is moved at once though it consists
//! of several blocks (`passes/merge_blocks.rs`).

mod mend;
mod words;

use tenon_schema::{Procedure, Schema, TypeId, TypeKind};

use crate::blittable::{ARRAY_MAX, BlittableTypes};
use crate::graph;
use crate::item::{Place, Scalar};
use crate::layout::Layout;
use crate::links::is_link;
use crate::memory::{self, MemoryLayouts};
use crate::op::{Body, Count, Op, Plans};
use crate::representation::{Order, Representation};
use crate::reserved::{FixedItem, FixedKind};

/// Most items of a nested struct that are shown one by one.
const OPENED: usize = 16;

/// The blocks of all types of an interface.
pub(crate) struct BlockAnalysis<'a> {
    schema: &'a Schema,
    representation: Representation,
    memory: MemoryLayouts<'a>,
    blittables: BlittableTypes<'a>,
    /// Of each type that is one block as a whole, what it consists of.
    types: Vec<Option<UniformRun>>,
    /// Of each struct that is shown inside of others, its items.
    small: Vec<Option<Body>>,
}

/// Items that are moved in the same way, behind each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct UniformRun {
    unit: SwapWidth,
    units: u64,
}

/// Bytes that are swapped together. In the order in which fields lie best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SwapWidth {
    Eight,
    Four,
    Two,
    /// Bytes that stay as they are.
    One,
}

/// The run of a block that an operation makes, or the reason that it makes none.
type Fit<'a> = Result<UniformRun, NoBlockReason<'a>>;

/// Why an item is part of no block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NoBlockReason<'a> {
    /// The wire has so many bytes more behind it.
    Padded(u64),
    /// So many bytes of memory are a word on the wire.
    Widened(u64),
    LookedAt,
    /// It, or its element, is of this type (or one without a name), which is no single block.
    Inside(Option<&'a str>),
    External,
    /// An array with memory of its own, of such items.
    Large(SwapWidth),
    /// Its kind, and the width of its contents if those are one block.
    Varies(&'static str, Option<SwapWidth>),
}

/// Operations that are one block, or one that is part of none.
struct RecordSegment<'a> {
    first: String,
    last: String,
    what: Fit<'a>,
    /// Its end in memory, if it is a block.
    end: u64,
    /// Why it is not one block with the piece before it, if both are blocks.
    broken: Option<BlockBreak>,
}

enum BlockBreak {
    /// So many bytes of memory lie between them.
    Hole(u64),
    /// It is swapped in another way than this.
    Order(SwapWidth),
    /// The same, if the peer is one of the other order; if not, nothing is swapped.
    OtherOrder(SwapWidth),
}

impl<'a> BlockAnalysis<'a> {
    /// Of plans with a call for each struct and union.
    pub fn new(schema: &'a Schema, plans: &Plans) -> Self {
        let mut blocks = Self {
            schema,
            representation: plans.representation,
            memory: MemoryLayouts::new(schema),
            blittables: BlittableTypes::new(schema, plans.representation),
            types: vec![None; schema.types.len()],
            small: vec![None; schema.types.len()],
        };
        for id in graph::components(schema).order.into_iter().flatten() {
            let plan = plans.of_type(id);
            blocks.types[id.0 as usize] = blocks.of_body(&plan.body);
            blocks.small[id.0 as usize] = blocks.of_small(id, &plan.body);
        }
        blocks
    }

    /// Returns the report about a named type: none about an enum or a union.
    pub fn of_type(&self, id: TypeId, body: &Body) -> Option<String> {
        let def = self.schema.type_def(id);
        let is_struct = matches!(def.kind, TypeKind::Struct(_)) && !is_link(self.schema, id);
        let subject = AnalyzedRecord {
            layout: Layout::of_type(self.schema, id),
            body: &self.opened(body),
            is_struct,
        };
        self.text(&def.name, &subject)
    }

    /// Returns the report about the arguments of a procedure.
    pub fn of_arguments(&self, procedure: &'a Procedure, body: &Body) -> Option<String> {
        let subject = AnalyzedRecord {
            layout: Layout::Record(&procedure.arguments),
            body: &self.opened(body),
            is_struct: false,
        };
        self.text(&format!("the arguments of {}", procedure.name), &subject)
    }

    fn text(&self, head: &str, subject: &AnalyzedRecord<'_>) -> Option<String> {
        let pieces = self.pieces(subject);
        if pieces.is_empty() || matches!(subject.layout, Layout::Definition(_)) {
            return None;
        }
        let mut text = format!("blocks of {head}\n");
        for piece in &pieces {
            text += &format!("    {piece}\n");
        }
        if self.is_whole(subject) && pieces.len() > 1 {
            text += "    all of it is moved at once for all that, as it has no hole\n";
        }
        if let Some(bytes) = self.hole_behind(subject, &pieces) {
            let bytes = words::bytes(bytes);
            text += &format!("    behind it a hole of {bytes} in memory: no block with its like\n");
        }
        Some(text + &self.mend(subject, pieces.len()))
    }

    /// Returns whether `merge_blocks` makes one block of all, of whatever widths.
    fn is_whole(&self, subject: &AnalyzedRecord<'_>) -> bool {
        let fields = subject.layout.fields(self.schema);
        let whole = fields.and_then(|fields| self.blittables.of_fields(fields));
        subject.is_struct && whole.is_some()
    }

    /// Bytes behind the last item of a struct that consists of blocks, if there are any.
    fn hole_behind(
        &self,
        subject: &AnalyzedRecord<'_>,
        pieces: &[RecordSegment<'_>],
    ) -> Option<u64> {
        let fields = subject.layout.fields(self.schema)?;
        let all_blocks = subject.is_struct && pieces.iter().all(|piece| piece.what.is_ok());
        let hole = self.memory.of_fields(fields).bytes - pieces.last()?.end;
        (all_blocks && hole > 0).then_some(hole)
    }

    /// The whole body as one block.
    fn of_body(&self, body: &Body) -> Option<UniformRun> {
        let mut runs = items(body).map(|op| self.fit(op).ok());
        let first = runs.next()??;
        runs.try_fold(first, |whole, run| whole.then(run?))
    }

    fn fit(&self, op: &Op) -> Fit<'a> {
        match op {
            Op::Reserve(block) => match block.only() {
                Some(item) => self.fit_fixed(item),
                // Blocks of several items are made later.
                None => Err(NoBlockReason::Inside(None)),
            },
            Op::CopyCounted { text: true, .. } => {
                Err(NoBlockReason::Varies("a string", Some(SwapWidth::One)))
            }
            Op::CopyCounted { .. } => {
                Err(NoBlockReason::Varies("opaque bytes", Some(SwapWidth::One)))
            }
            Op::PutCounted { scalar, .. } => Err(array(self.of_scalar(*scalar).ok())),
            Op::Loop {
                place, count, body, ..
            } => match (count, self.of_body(body)) {
                (Count::Fixed(count), Some(element)) => array_at(place, element.times(*count)),
                (Count::Fixed(_), None) => Err(self.elements(body)),
                (Count::Counted(_), element) => Err(array(element)),
            },
            Op::Call { place, plan } => {
                let called = self.schema.type_def(*plan);
                let whole = self.types[plan.0 as usize];
                match (&called.kind, whole) {
                    (TypeKind::Typedef(_), Some(run)) => array_at(place, run),
                    (_, Some(run)) => Ok(run),
                    (TypeKind::Union(_), None) => Err(NoBlockReason::Varies("a union", None)),
                    (_, None) => Err(NoBlockReason::Inside(Some(&called.name))),
                }
            }
            Op::Switch { .. } => Err(NoBlockReason::Varies("a union", None)),
            Op::Optional { .. } => Err(NoBlockReason::Varies("optional data", None)),
            Op::List { .. } => Err(NoBlockReason::Varies("a linked list", None)),
            Op::BlitCounted { .. } | Op::PutElements { .. } => Err(array(None)),
            Op::External { .. } | Op::Align { .. } => Err(NoBlockReason::External),
        }
    }

    fn fit_fixed(&self, item: &FixedItem) -> Fit<'a> {
        let place = &item.place;
        match &item.kind {
            FixedKind::Put { scalar } => self.of_scalar(*scalar),
            FixedKind::PutArray { scalar, count } => {
                array_at(place, self.of_scalar(*scalar)?.times(*count))
            }
            FixedKind::Copy { bytes } => {
                let bytes = u64::from(*bytes);
                match self.representation.padded(bytes) - bytes {
                    0 => array_at(place, UniformRun::of(SwapWidth::One, bytes)),
                    over => Err(NoBlockReason::Padded(over)),
                }
            }
            FixedKind::Blit { .. } => Err(NoBlockReason::Inside(None)),
        }
    }

    fn of_scalar(&self, scalar: Scalar) -> Fit<'a> {
        let memory = memory::of_scalar(scalar).bytes;
        let unit = match (scalar, memory) {
            (Scalar::Bool | Scalar::Enum(_), _) => return Err(NoBlockReason::LookedAt),
            (Scalar::F128, _) => return Ok(UniformRun::of(SwapWidth::One, memory)),
            (_, 8) => SwapWidth::Eight,
            (_, 4) => SwapWidth::Four,
            (_, 2) => SwapWidth::Two,
            _ => SwapWidth::One,
        };
        match u64::from(self.representation.bytes(scalar)) == memory {
            true => Ok(UniformRun::of(unit, 1)),
            false => Err(NoBlockReason::Widened(memory)),
        }
    }

    /// The operations that move something, those of small structs that are no block as a whole among them.
    fn opened(&self, body: &Body) -> Body {
        let small = |op: &Op| match op {
            Op::Call { place, plan } => Some((place.clone(), self.small[plan.0 as usize].clone()?)),
            _ => None,
        };
        let open = |op: &Op| match small(op) {
            Some((place, mut inner)) => {
                for at in inner.iter_mut().filter_map(place_mut) {
                    *at = place.then(at);
                }
                inner
            }
            None => vec![op.clone()],
        };
        items(body).flat_map(open).collect()
    }

    /// The items of a struct that is no block, if they are few and of fixed size.
    fn of_small(&self, id: TypeId, body: &Body) -> Option<Body> {
        let is_struct = matches!(self.schema.type_def(id).kind, TypeKind::Struct(_));
        let is_block = self.types[id.0 as usize].is_some();
        let inner = (is_struct && !is_block).then(|| self.opened(body))?;
        let is_fixed = |op: &Op| matches!(op, Op::Reserve(_));
        (inner.len() <= OPENED && inner.iter().all(is_fixed)).then_some(inner)
    }

    /// Why elements are no block.
    fn elements(&self, body: &Body) -> NoBlockReason<'a> {
        match body.as_slice() {
            [Op::Call { plan, .. }] => {
                let called = self.schema.type_def(*plan);
                match called.kind {
                    TypeKind::Union(_) => NoBlockReason::Varies("unions", None),
                    _ => NoBlockReason::Inside(Some(&called.name)),
                }
            }
            _ => NoBlockReason::Inside(None),
        }
    }

    fn pieces(&self, subject: &AnalyzedRecord<'_>) -> Vec<RecordSegment<'a>> {
        let (layout, body) = (subject.layout, subject.body);
        let starts = self
            .memory
            .offsets(layout.fields(self.schema).unwrap_or_default());
        let mut pieces: Vec<RecordSegment<'a>> = Vec::new();
        let mut end = 0;
        for (op, place) in body.iter().filter_map(|op| Some((op, place_of(op)?))) {
            let (what, start) = (self.fit(op), self.start(layout, &starts, &place.0));
            let name = match layout.path(self.schema, place) {
                path if path.is_empty() => "it".to_owned(),
                path => path,
            };
            let broken = match (pieces.last_mut(), what) {
                (Some(piece), Ok(run)) => match piece.join(run, start.saturating_sub(end)) {
                    Ok(()) => {
                        piece.last = name;
                        end = start.saturating_add(run.bytes());
                        piece.end = end;
                        continue;
                    }
                    Err(Some(BlockBreak::Order(unit))) if self.is_of_sender() => {
                        Some(BlockBreak::OtherOrder(unit))
                    }
                    Err(broken) => broken,
                },
                _ => None,
            };
            end = what.map_or(start, |run| start.saturating_add(run.bytes()));
            pieces.push(RecordSegment {
                first: name.clone(),
                last: name,
                what,
                end,
                broken,
            });
        }
        pieces
    }

    /// Returns whether equal peers swap nothing.
    fn is_of_sender(&self) -> bool {
        self.representation.order == Order::Sender
    }

    /// Returns the offset in memory of the item behind these fields.
    fn start(&self, layout: Layout<'_>, starts: &[u64], path: &[u32]) -> u64 {
        let outer = path.first().and_then(|first| starts.get(*first as usize));
        let inner = (1..path.len()).filter_map(|depth| {
            let fields = layout
                .along(self.schema, &path[..depth])?
                .fields(self.schema)?;
            let starts = self.memory.offsets(fields);
            starts.get(path[depth] as usize).copied()
        });
        outer
            .into_iter()
            .copied()
            .chain(inner)
            .fold(0, u64::saturating_add)
    }
}

/// A record, a struct or the arguments of a procedure, that is analyzed for blocks.
struct AnalyzedRecord<'s> {
    layout: Layout<'s>,
    body: &'s Body,
    /// True if it is a struct, of which arrays may consist, and not the arguments of a procedure.
    is_struct: bool,
}

/// The operations that move something.
fn items(body: &Body) -> impl Iterator<Item = &Op> {
    body.iter().filter(|op| place_of(op).is_some())
}

/// The place of what an operation moves. Blocks have one item yet, or are a hole.
fn place_of(op: &Op) -> Option<&Place> {
    match op {
        Op::Reserve(block) => block.items().next().map(|item| &item.place),
        op => op.place(),
    }
}

fn place_mut(op: &mut Op) -> Option<&mut Place> {
    match op {
        Op::Reserve(block) => block.items_mut().next().map(|item| &mut item.place),
        op => op.place_mut(),
    }
}

fn array(element: Option<UniformRun>) -> NoBlockReason<'static> {
    NoBlockReason::Varies("an array", element.map(|run| run.unit))
}

/// An array of fixed length, or a part of it: a large one has memory of its own inside of something else.
fn array_at<'a>(place: &Place, run: UniformRun) -> Fit<'a> {
    let is_large = run.bytes() > ARRAY_MAX && !place.0.is_empty();
    match is_large {
        true => Err(NoBlockReason::Large(run.unit)),
        false => Ok(run),
    }
}

impl UniformRun {
    fn of(unit: SwapWidth, units: u64) -> Self {
        Self { unit, units }
    }

    fn bytes(self) -> u64 {
        self.units.saturating_mul(self.unit.bytes())
    }

    fn times(self, count: u32) -> Self {
        Self::of(self.unit, self.units.saturating_mul(count.into()))
    }

    /// Both, if they are one block.
    fn then(self, next: Self) -> Option<Self> {
        let both = Self::of(self.unit, self.units.saturating_add(next.units));
        (self.unit == next.unit).then_some(both)
    }
}

impl SwapWidth {
    fn bytes(self) -> u64 {
        match self {
            Self::Eight => 8,
            Self::Four => 4,
            Self::Two => 2,
            Self::One => 1,
        }
    }
}

impl RecordSegment<'_> {
    /// Makes the piece longer, or says why that cannot be if it is a block.
    fn join(&mut self, run: UniformRun, hole: u64) -> Result<(), Option<BlockBreak>> {
        let Ok(so_far) = self.what else {
            return Err(None);
        };
        if hole > 0 {
            return Err(Some(BlockBreak::Hole(hole)));
        }
        let both = so_far
            .then(run)
            .ok_or(Some(BlockBreak::Order(so_far.unit)))?;
        self.what = Ok(both);
        Ok(())
    }
}
