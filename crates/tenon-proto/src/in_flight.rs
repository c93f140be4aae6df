//! Calls in flight, each found by its number without a search.

/// The calls in flight on one connection.
///
/// A call lives in the slot that the low bits of its number name. The next number is the next one with a free slot, so
/// no number in flight is ever taken, numbers ascend, none comes again before all others have, and an answer finds its
/// call at once.
#[derive(Debug)]
pub(crate) struct InFlight<T> {
    slots: Vec<Option<(u32, T)>>,
    count: usize,
    next: u32,
}

/// Slots at first, a power of two.
const SLOTS_FIRST: usize = 16;

fn empty_slots<T>(count: usize) -> Vec<Option<(u32, T)>> {
    std::iter::repeat_with(|| None).take(count).collect()
}

impl<T> InFlight<T> {
    /// None in flight; `seed` is the first number.
    pub(crate) fn new(seed: u32) -> Self {
        Self {
            slots: empty_slots(SLOTS_FIRST),
            count: 0,
            next: seed,
        }
    }

    /// Puts a call in flight and gives it its number.
    #[inline(always)]
    pub(crate) fn insert(&mut self, call: T) -> u32 {
        if self.count * 2 >= self.slots.len() {
            self.grow();
        }
        let number = self.skip_number();
        let slot = self.slot_of(number);
        self.slots[slot] = Some((number, call));
        self.count += 1;
        number
    }

    /// Returns a number that no call in flight has, and none that follows will have.
    #[inline(always)]
    pub(crate) fn skip_number(&mut self) -> u32 {
        while self.slots[self.slot_of(self.next)].is_some() {
            self.next = self.next.wrapping_add(1);
        }
        let number = self.next;
        self.next = number.wrapping_add(1);
        number
    }

    /// Returns a number that is behind those of all calls so far.
    pub(crate) fn next_number(&self) -> u32 {
        self.next
    }

    /// Returns how many there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        match &self.slots[self.slot_of(number)] {
            Some((taken, call)) if *taken == number => Some(call),
            _ => None,
        }
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        let slot = self.slot_of(number);
        match &mut self.slots[slot] {
            Some((taken, call)) if *taken == number => Some(call),
            _ => None,
        }
    }

    /// Ends a call.
    #[inline]
    pub(crate) fn take(&mut self, number: u32) -> Option<T> {
        self.take_if(number, |_| true)
    }

    /// Ends a call, if it is the one that is meant.
    #[inline]
    pub(crate) fn take_if(&mut self, number: u32, is_meant: impl FnOnce(&T) -> bool) -> Option<T> {
        let slot = self.slot_of(number);
        let (_, call) =
            self.slots[slot].take_if(|(taken, call)| *taken == number && is_meant(call))?;
        self.count -= 1;
        Some(call)
    }

    /// Ends all calls. None is in flight any more, even before the iterator has come to it.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = (u32, T)> + use<T> {
        self.count = 0;
        let calls = std::mem::replace(&mut self.slots, empty_slots(SLOTS_FIRST));
        calls.into_iter().flatten()
    }

    /// The calls in flight and their numbers, in no order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (u32, &T)> {
        let slots = self.slots.iter().flatten();
        slots.map(|(number, call)| (*number, call))
    }

    /// The numbers in flight, in no order.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.slots.iter().flatten().map(|(number, _)| *number)
    }

    #[inline]
    fn slot_of(&self, number: u32) -> usize {
        number as usize & (self.slots.len() - 1)
    }

    /// Doubles the slots. Two calls that had different slots have different slots again.
    #[cold]
    fn grow(&mut self) {
        let doubled = empty_slots(self.slots.len() * 2);
        let calls = std::mem::replace(&mut self.slots, doubled);
        for (number, call) in calls.into_iter().flatten() {
            let slot = self.slot_of(number);
            self.slots[slot] = Some((number, call));
        }
    }
}
