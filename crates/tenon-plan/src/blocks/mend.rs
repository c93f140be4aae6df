//! Finds the order of the fields that makes fewer blocks, or one of all. It is tried: what is said of it is what would
//! be said of a record with this order of its fields.

use tenon_schema::Field;

use super::{
    AnalyzedRecord, BlockAnalysis, Fit, NoBlockReason, SwapWidth, items, place_mut, place_of,
};
use crate::layout::Layout;
use crate::op::Body;

/// Most fields of a record for which a better order is spelt out.
const SPELT_OUT: usize = 16;

impl<'a> BlockAnalysis<'a> {
    /// A better order of the fields, if there is one.
    pub(super) fn mend(&self, subject: &AnalyzedRecord<'_>, pieces: usize) -> String {
        let Some(fields) = subject.layout.fields(self.schema) else {
            return String::new();
        };
        let mut groups = self.groups(subject.body);
        groups.sort_by_key(|group| group.rank());
        let is_new = groups.windows(2).any(|pair| pair[0].field > pair[1].field);
        if !is_new || groups.len() != fields.len() {
            return String::new();
        }
        let ordered = groups
            .iter()
            .map(|group| fields[group.field as usize].clone());
        let ordered: Vec<Field> = ordered.collect();
        let body = groups.iter().zip(0..).flat_map(|(group, position)| {
            let mut ops = group.ops.clone();
            let places = ops.iter_mut().filter_map(place_mut);
            places.for_each(|place| place.0[0] = position);
            ops
        });
        let mended = AnalyzedRecord {
            layout: Layout::Record(&ordered),
            body: &body.collect(),
            is_struct: subject.is_struct,
        };
        let better = self.pieces(&mended).len();
        let peers = match self.is_of_sender() {
            true => " for a peer of the other order",
            false => "",
        };
        let gain = match self.is_whole(&mended) && !self.is_whole(subject) {
            true => "moved at once, without a hole,".to_owned(),
            false if better < pieces => format!("{better} pieces, not {pieces},{peers}"),
            false => return String::new(),
        };
        let order = match groups.len() {
            0..=SPELT_OUT => {
                let names = ordered.iter().map(|field| field.name.as_str());
                names.collect::<Vec<_>>().join(", ")
            }
            _ => "of 8 bytes, of 4, opaque, of other fixed size, varying".to_owned(),
        };
        format!("    {gain} if a new version had the order: {order}\n")
    }

    /// The operations of each field.
    fn groups(&self, body: &Body) -> Vec<FieldGroup<'a>> {
        let mut groups: Vec<FieldGroup<'a>> = Vec::new();
        for op in items(body) {
            let Some(field) = place_of(op).and_then(|place| place.0.first().copied()) else {
                continue;
            };
            if groups.last().is_none_or(|group| group.field != field) {
                let (ops, fits) = Default::default();
                groups.push(FieldGroup { field, ops, fits });
            }
            if let Some(group) = groups.last_mut() {
                group.ops.push(op.clone());
                group.fits.push(self.fit(op));
            }
        }
        groups
    }
}

/// A field of a record and how its items fit.
struct FieldGroup<'a> {
    field: u32,
    ops: Body,
    fits: Vec<Fit<'a>>,
}

impl FieldGroup<'_> {
    /// Returns the width that all of the field is swapped by, if it is one.
    fn unit(&self) -> Option<SwapWidth> {
        let mut units = self.fits.iter().map(|fit| fit.ok().map(|run| run.unit));
        let first = units.next()??;
        units.all(|unit| unit == Some(first)).then_some(first)
    }

    /// Returns the sort key of the field's best place: with those that are swapped as it is, and what varies last.
    fn rank(&self) -> (bool, bool, Option<SwapWidth>) {
        let varies = |fit: &Fit<'_>| matches!(fit, Err(NoBlockReason::Varies(..)));
        let unit = self.unit();
        (self.fits.iter().any(varies), unit.is_none(), unit)
    }
}
