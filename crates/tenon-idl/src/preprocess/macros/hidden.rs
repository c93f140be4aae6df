//! Hide sets: the macros that a token was expanded from, which do not expand it again (C11 6.10.3.4).

use std::rc::Rc;

/// A set of macros by their numbers, in ascending order.
#[derive(Debug, Clone, Default)]
pub(super) struct HideSet(Option<Rc<[u32]>>);

impl HideSet {
    /// Returns whether the macro `id` is in the set.
    pub(super) fn has(&self, id: u32) -> bool {
        self.ids().binary_search(&id).is_ok()
    }

    /// Returns the number of macros in the set.
    pub(super) fn count(&self) -> usize {
        self.ids().len()
    }

    /// Returns the set with `id` added.
    pub(super) fn with(&self, id: u32) -> HideSet {
        self.and(&HideSet::of(vec![id]))
    }

    /// Returns the union of two sets.
    pub(super) fn and(&self, other: &HideSet) -> HideSet {
        if self.is_within(other) {
            return other.clone();
        }
        if other.is_within(self) {
            return self.clone();
        }
        let mut ids = [self.ids(), other.ids()].concat();
        ids.sort_unstable();
        ids.dedup();
        HideSet::of(ids)
    }

    /// Returns the intersection of two sets.
    pub(super) fn common(&self, other: &HideSet) -> HideSet {
        if self.is_within(other) {
            return self.clone();
        }
        let ids = self.ids().iter().copied();
        HideSet::of(ids.filter(|id| other.has(*id)).collect())
    }

    fn is_within(&self, other: &HideSet) -> bool {
        self.count() <= other.count() && self.ids().iter().all(|id| other.has(*id))
    }

    fn ids(&self) -> &[u32] {
        self.0.as_deref().unwrap_or_default()
    }

    fn of(ids: Vec<u32>) -> HideSet {
        HideSet((!ids.is_empty()).then(|| ids.into()))
    }
}
