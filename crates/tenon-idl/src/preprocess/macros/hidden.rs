//! The macros that a word came out of: it does not stand for them again (C11 6.10.3.4).

use std::rc::Rc;

/// Macros by their numbers, in ascending order.
#[derive(Debug, Clone, Default)]
pub(super) struct Hidden(Option<Rc<[u32]>>);

impl Hidden {
    /// Whether the macro `id` is among them.
    pub(super) fn has(&self, id: u32) -> bool {
        self.ids().binary_search(&id).is_ok()
    }

    /// How many they are.
    pub(super) fn count(&self) -> usize {
        self.ids().len()
    }

    /// These and `id`.
    pub(super) fn with(&self, id: u32) -> Hidden {
        self.and(&Hidden::of(vec![id]))
    }

    /// Those of either.
    pub(super) fn and(&self, other: &Hidden) -> Hidden {
        if self.is_within(other) {
            return other.clone();
        }
        if other.is_within(self) {
            return self.clone();
        }
        let mut ids = [self.ids(), other.ids()].concat();
        ids.sort_unstable();
        ids.dedup();
        Hidden::of(ids)
    }

    /// Those of both.
    pub(super) fn common(&self, other: &Hidden) -> Hidden {
        if self.is_within(other) {
            return self.clone();
        }
        let ids = self.ids().iter().copied();
        Hidden::of(ids.filter(|id| other.has(*id)).collect())
    }

    fn is_within(&self, other: &Hidden) -> bool {
        self.count() <= other.count() && self.ids().iter().all(|id| other.has(*id))
    }

    fn ids(&self) -> &[u32] {
        self.0.as_deref().unwrap_or_default()
    }

    fn of(ids: Vec<u32>) -> Hidden {
        Hidden((!ids.is_empty()).then(|| ids.into()))
    }
}
