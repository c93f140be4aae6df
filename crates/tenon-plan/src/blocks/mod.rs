//! What of a record could be moved in blocks, where a block is broken, why, and which order of
//! the fields would mend it. Nothing is rewritten here: this is what [`crate::explain_passes`]
//! tells people who write interfaces.
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

use crate::blittable::{ARRAY_MAX, Blittables};
use crate::graph;
use crate::item::{Place, Scalar};
use crate::layout::Layout;
use crate::links::is_link;
use crate::memory::{self, Memory};
use crate::op::{Body, Count, Op, Plans};
use crate::representation::{Order, Representation};

/// Most items of a struct inside of another whose own are shown.
const OPENED: usize = 16;

/// The blocks of all types of an interface.
pub(crate) struct Blocks<'a> {
    schema: &'a Schema,
    representation: Representation,
    memory: Memory<'a>,
    blittables: Blittables<'a>,
    /// Of each type that is one block as a whole, what it consists of.
    types: Vec<Option<Run>>,
    /// Of each struct that is shown inside of others, its items.
    small: Vec<Option<Body>>,
}

/// Items that are moved in the same way, behind each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    unit: Unit,
    units: u64,
}

/// What is swapped at once. In the order in which fields lie best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Unit {
    Eight,
    Four,
    Two,
    /// Bytes that stay as they are.
    One,
}

/// How an operation fits into a block, or why not.
type Fit<'a> = Result<Run, Alone<'a>>;

/// Why an item is part of no block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alone<'a> {
    /// The wire has so many bytes more behind it.
    Padded(u64),
    /// So many bytes of memory are a word on the wire.
    Widened(u64),
    LookedAt,
    /// It, or its element, is of this type (or one without a name), which is no single block.
    Inside(Option<&'a str>),
    External,
    /// An array with memory of its own, of such items.
    Large(Unit),
    /// What it is, and what its contents are if those are one block.
    Varies(&'static str, Option<Unit>),
}

/// Operations that are one block, or one that is part of none.
struct Piece<'a> {
    first: String,
    last: String,
    what: Fit<'a>,
    /// Where in memory it ends, if it is a block.
    end: u64,
    /// Why it is not one block with the piece before it, if both are blocks.
    broken: Option<Broken>,
}

enum Broken {
    /// So many bytes of memory lie between them.
    Hole(u64),
    /// It is swapped in another way than this.
    Order(Unit),
    /// The same, if the peer is one of the other order; if not, nothing is swapped.
    OtherOrder(Unit),
}

impl<'a> Blocks<'a> {
    /// Of plans with a call for each struct and union.
    pub fn new(schema: &'a Schema, plans: &Plans) -> Self {
        let mut blocks = Self {
            schema,
            representation: plans.representation,
            memory: Memory::new(schema),
            blittables: Blittables::new(schema, plans.representation),
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

    /// What there is to say about a named type: nothing about an enum or a union.
    pub fn of_type(&self, id: TypeId, body: &Body) -> Option<String> {
        let def = self.schema.type_def(id);
        let is_struct = matches!(def.kind, TypeKind::Struct(_)) && !is_link(self.schema, id);
        let subject = Subject {
            layout: Layout::of_type(self.schema, id),
            body: &self.opened(body),
            is_struct,
        };
        self.text(&def.name, &subject)
    }

    /// What there is to say about the arguments of a procedure.
    pub fn of_arguments(&self, procedure: &'a Procedure, body: &Body) -> Option<String> {
        let subject = Subject {
            layout: Layout::Record(&procedure.arguments),
            body: &self.opened(body),
            is_struct: false,
        };
        self.text(&format!("the arguments of {}", procedure.name), &subject)
    }

    fn text(&self, head: &str, subject: &Subject<'_>) -> Option<String> {
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

    /// Whether `merge_blocks` makes one block of all, of whatever widths.
    fn is_whole(&self, subject: &Subject<'_>) -> bool {
        let fields = subject.layout.fields(self.schema);
        let whole = fields.and_then(|fields| self.blittables.of_fields(fields));
        subject.is_struct && whole.is_some()
    }

    /// Bytes behind the last item of a struct that consists of blocks, if there are any.
    fn hole_behind(&self, subject: &Subject<'_>, pieces: &[Piece<'_>]) -> Option<u64> {
        let fields = subject.layout.fields(self.schema)?;
        let all_blocks = subject.is_struct && pieces.iter().all(|piece| piece.what.is_ok());
        let hole = self.memory.of_fields(fields).bytes - pieces.last()?.end;
        (all_blocks && hole > 0).then_some(hole)
    }

    /// The whole body as one block.
    fn of_body(&self, body: &Body) -> Option<Run> {
        let mut runs = items(body).map(|op| self.fit(op).ok());
        let first = runs.next()??;
        runs.try_fold(first, |whole, run| whole.then(run?))
    }

    fn fit(&self, op: &Op) -> Fit<'a> {
        match op {
            Op::Put { scalar, .. } => self.of_scalar(*scalar),
            Op::PutArray {
                place,
                scalar,
                count,
                ..
            } => array_at(place, self.of_scalar(*scalar)?.times(*count)),
            Op::Copy { place, bytes, .. } => {
                let bytes = u64::from(*bytes);
                match self.representation.padded(bytes) - bytes {
                    0 => array_at(place, Run::of(Unit::One, bytes)),
                    over => Err(Alone::Padded(over)),
                }
            }
            Op::CopyCounted { text: true, .. } => Err(Alone::Varies("a string", Some(Unit::One))),
            Op::CopyCounted { .. } => Err(Alone::Varies("opaque bytes", Some(Unit::One))),
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
                    (TypeKind::Union(_), None) => Err(Alone::Varies("a union", None)),
                    (_, None) => Err(Alone::Inside(Some(&called.name))),
                }
            }
            Op::Switch { .. } => Err(Alone::Varies("a union", None)),
            Op::Optional { .. } => Err(Alone::Varies("optional data", None)),
            Op::List { .. } => Err(Alone::Varies("a linked list", None)),
            Op::Blit { .. } | Op::BlitCounted { .. } | Op::PutElements { .. } => {
                unreachable!("plans are looked at before blocks are merged")
            }
            Op::External { .. } | Op::Reserve { .. } | Op::Align { .. } | Op::Zero { .. } => {
                Err(Alone::External)
            }
        }
    }

    fn of_scalar(&self, scalar: Scalar) -> Fit<'a> {
        let memory = memory::of_scalar(scalar).bytes;
        let unit = match (scalar, memory) {
            (Scalar::Bool | Scalar::Enum(_), _) => return Err(Alone::LookedAt),
            (Scalar::F128, _) => return Ok(Run::of(Unit::One, memory)),
            (_, 8) => Unit::Eight,
            (_, 4) => Unit::Four,
            (_, 2) => Unit::Two,
            _ => Unit::One,
        };
        match u64::from(self.representation.bytes(scalar)) == memory {
            true => Ok(Run::of(unit, 1)),
            false => Err(Alone::Widened(memory)),
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
                for at in inner.iter_mut().filter_map(Op::place_mut) {
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
        (inner.len() <= OPENED && inner.iter().all(Op::is_fixed)).then_some(inner)
    }

    /// Why elements are no block.
    fn elements(&self, body: &Body) -> Alone<'a> {
        match body.as_slice() {
            [Op::Call { plan, .. }] => {
                let called = self.schema.type_def(*plan);
                match called.kind {
                    TypeKind::Union(_) => Alone::Varies("unions", None),
                    _ => Alone::Inside(Some(&called.name)),
                }
            }
            _ => Alone::Inside(None),
        }
    }

    fn pieces(&self, subject: &Subject<'_>) -> Vec<Piece<'a>> {
        let (layout, body) = (subject.layout, subject.body);
        let starts = self
            .memory
            .offsets(layout.fields(self.schema).unwrap_or_default());
        let mut pieces: Vec<Piece<'a>> = Vec::new();
        let mut end = 0;
        for (op, place) in body.iter().filter_map(|op| Some((op, op.place()?))) {
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
                    Err(Some(Broken::Order(unit))) if self.is_of_sender() => {
                        Some(Broken::OtherOrder(unit))
                    }
                    Err(broken) => broken,
                },
                _ => None,
            };
            end = what.map_or(start, |run| start.saturating_add(run.bytes()));
            pieces.push(Piece {
                first: name.clone(),
                last: name,
                what,
                end,
                broken,
            });
        }
        pieces
    }

    /// Whether equal peers swap nothing.
    fn is_of_sender(&self) -> bool {
        self.representation.order == Order::Sender
    }

    /// Where in memory the item behind these fields begins.
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

/// What is looked at.
struct Subject<'s> {
    layout: Layout<'s>,
    body: &'s Body,
    /// Whether it is a struct, of which arrays may consist, and not the arguments of a procedure.
    is_struct: bool,
}

/// The operations that move something.
fn items(body: &Body) -> impl Iterator<Item = &Op> {
    body.iter().filter(|op| op.place().is_some())
}

fn array(element: Option<Run>) -> Alone<'static> {
    Alone::Varies("an array", element.map(|run| run.unit))
}

/// An array of fixed length, or a part of it: a large one has memory of its own inside of something else.
fn array_at<'a>(place: &Place, run: Run) -> Fit<'a> {
    let is_large = run.bytes() > ARRAY_MAX && !place.0.is_empty();
    match is_large {
        true => Err(Alone::Large(run.unit)),
        false => Ok(run),
    }
}

impl Run {
    fn of(unit: Unit, units: u64) -> Self {
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

impl Unit {
    fn bytes(self) -> u64 {
        match self {
            Self::Eight => 8,
            Self::Four => 4,
            Self::Two => 2,
            Self::One => 1,
        }
    }
}

impl Piece<'_> {
    /// Makes the piece longer, or says why that cannot be if it is a block.
    fn join(&mut self, run: Run, hole: u64) -> Result<(), Option<Broken>> {
        let Ok(so_far) = self.what else {
            return Err(None);
        };
        if hole > 0 {
            return Err(Some(Broken::Hole(hole)));
        }
        let both = so_far.then(run).ok_or(Some(Broken::Order(so_far.unit)))?;
        self.what = Ok(both);
        Ok(())
    }
}
