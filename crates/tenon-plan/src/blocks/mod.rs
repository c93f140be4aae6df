//! What of a record could be moved in blocks, where a block is broken, why, and which order of
//! the fields would mend it. Nothing is rewritten here: this is what [`crate::explain_passes`]
//! tells people who write interfaces.
//!
//! Items belong to one block when they lie behind each other without a gap, in memory as C lays
//! it out and on the wire, and are swapped by the same number of bytes or not at all. So a block
//! is broken by a *hole* (bytes that only one of both sides has), by an *order* (another width
//! to swap by), by values that must be *looked at*, and by a part that *varies* in size. Where the
//! wire has the sender's order, an order breaks blocks for a peer of the other one only.

mod words;

use tenon_schema::{Schema, TypeKind};

use crate::graph;
use crate::item::Scalar;
use crate::layout::Layout;
use crate::memory::{self, Memory};
use crate::op::{Body, Count, Op, Plans};
use crate::representation::{Order, Representation};

/// Most fields of a record whose better order is spelt out.
const SPELT_OUT: usize = 16;

/// The blocks of all types of an interface.
pub(crate) struct Blocks<'a> {
    schema: &'a Schema,
    representation: Representation,
    memory: Memory<'a>,
    /// Of each type that is one block as a whole, what it consists of.
    types: Vec<Option<Run>>,
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
    /// What it is, and what its contents are if those are one block.
    Varies(&'static str, Option<Unit>),
}

/// Operations that are one block, or one that is part of none.
struct Piece<'a> {
    first: String,
    last: String,
    what: Fit<'a>,
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
    pub fn new(schema: &'a Schema, plans: &Plans) -> Self {
        let mut blocks = Self {
            schema,
            representation: plans.representation,
            memory: Memory::new(schema),
            types: vec![None; schema.types.len()],
        };
        for id in graph::components(schema).order.into_iter().flatten() {
            let plan = plans.of_type(id);
            blocks.types[id.0 as usize] = blocks.of_body(&plan.body);
        }
        blocks
    }

    /// What there is to say about the plan called `head`: nothing of an enum or a union.
    pub fn text(&self, head: &str, layout: Layout<'a>, body: &Body) -> Option<String> {
        let pieces = self.pieces(layout, body);
        if pieces.is_empty() || matches!(layout, Layout::Definition(_)) {
            return None;
        }
        let lines = pieces.iter().map(|piece| format!("    {piece}\n"));
        let mend = self.mend(layout, body, pieces.len());
        Some(format!(
            "blocks of {head}\n{}{mend}",
            lines.collect::<String>()
        ))
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
            Op::PutArray { scalar, count, .. } => Ok(self.of_scalar(*scalar)?.times(*count)),
            Op::Copy { bytes, .. } => {
                let bytes = u64::from(*bytes);
                match self.representation.padded(bytes) - bytes {
                    0 => Ok(Run::of(Unit::One, bytes)),
                    over => Err(Alone::Padded(over)),
                }
            }
            Op::CopyCounted { text: true, .. } => Err(Alone::Varies("a string", Some(Unit::One))),
            Op::CopyCounted { .. } => Err(Alone::Varies("opaque bytes", Some(Unit::One))),
            Op::PutCounted { scalar, .. } => Err(array(self.of_scalar(*scalar).ok())),
            Op::Loop { count, body, .. } => match (count, self.of_body(body)) {
                (Count::Fixed(count), Some(element)) => Ok(element.times(*count)),
                (Count::Fixed(_), None) => Err(Alone::Inside(self.called(body))),
                (Count::Counted(_), element) => Err(array(element)),
            },
            Op::Call { plan, .. } => {
                let called = self.schema.type_def(*plan);
                let alone = match called.kind {
                    TypeKind::Union(_) => Alone::Varies("a union", None),
                    _ => Alone::Inside(Some(&called.name)),
                };
                self.types[plan.0 as usize].ok_or(alone)
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

    fn called(&self, body: &Body) -> Option<&'a str> {
        match body.as_slice() {
            [Op::Call { plan, .. }] => Some(&self.schema.type_def(*plan).name),
            _ => None,
        }
    }

    fn pieces(&self, layout: Layout<'a>, body: &Body) -> Vec<Piece<'a>> {
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
    fn start(&self, layout: Layout<'a>, starts: &[u64], path: &[u32]) -> u64 {
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

    /// A better order of the fields, if there is one.
    fn mend(&self, layout: Layout<'a>, body: &Body, pieces: usize) -> String {
        let Some(fields) = layout.fields(self.schema) else {
            return String::new();
        };
        let mut groups = self.groups(body);
        groups.sort_by_key(|group| group.rank());
        let better = count_pieces(&groups);
        let is_new = groups.windows(2).any(|pair| pair[0].field > pair[1].field);
        if better >= pieces || !is_new {
            return String::new();
        }
        let order = match groups.len() {
            0..=SPELT_OUT => {
                let name = |group: &Group<'_>| fields[group.field as usize].name.as_str();
                groups.iter().map(name).collect::<Vec<_>>().join(", ")
            }
            _ => "of 8 bytes, of 4, opaque, of other fixed size, varying".to_owned(),
        };
        let peers = match self.is_of_sender() {
            true => " for a peer of the other order",
            false => "",
        };
        format!(
            "    {better} pieces, not {pieces},{peers} if a new version had the order: {order}\n"
        )
    }

    /// The operations of each field.
    fn groups(&self, body: &Body) -> Vec<Group<'a>> {
        let mut groups: Vec<Group<'a>> = Vec::new();
        for op in items(body) {
            let Some(field) = op.place().and_then(|place| place.0.first().copied()) else {
                continue;
            };
            match groups.last_mut() {
                Some(group) if group.field == field => group.fits.push(self.fit(op)),
                _ => groups.push(Group {
                    field,
                    fits: vec![self.fit(op)],
                }),
            }
        }
        groups
    }
}

/// A field of a record and how its items fit.
struct Group<'a> {
    field: u32,
    fits: Vec<Fit<'a>>,
}

impl Group<'_> {
    /// What all of the field is swapped by.
    fn unit(&self) -> Option<Unit> {
        let mut units = self.fits.iter().map(|fit| fit.ok().map(|run| run.unit));
        let first = units.next()??;
        units.all(|unit| unit == Some(first)).then_some(first)
    }

    /// Where the field lies best: with those that are swapped as it is, and what varies last.
    fn rank(&self) -> (bool, bool, Option<Unit>) {
        let varies = |fit: &Fit<'_>| matches!(fit, Err(Alone::Varies(..)));
        let unit = self.unit();
        (self.fits.iter().any(varies), unit.is_none(), unit)
    }
}

/// How many pieces fields are in this order, which leaves no hole between those of one unit.
fn count_pieces(groups: &[Group<'_>]) -> usize {
    let inside = groups.iter().map(|group| {
        let pairs = group.fits.windows(2);
        1 + pairs.filter(|pair| !is_one_block(pair[0], pair[1])).count()
    });
    let is_joined = |pair: &&[Group<'_>]| {
        pair[0]
            .unit()
            .is_some_and(|unit| Some(unit) == pair[1].unit())
    };
    inside.sum::<usize>() - groups.windows(2).filter(is_joined).count()
}

/// The operations that move something.
fn items(body: &Body) -> impl Iterator<Item = &Op> {
    body.iter().filter(|op| op.place().is_some())
}

fn array(element: Option<Run>) -> Alone<'static> {
    Alone::Varies("an array", element.map(|run| run.unit))
}

fn is_one_block(one: Fit<'_>, next: Fit<'_>) -> bool {
    matches!((one, next), (Ok(one), Ok(next)) if one.unit == next.unit)
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
