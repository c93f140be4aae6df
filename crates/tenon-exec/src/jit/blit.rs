//! Blocks: items that lie in memory as on the wire, but for the order of the bytes of each number.

use cranelift_codegen::ir::{InstBuilder, Value, types};
use tenon_plan::{Blittable, Run};
use tenon_wire::kernels::Bits;

use super::emit::{FunctionEmitter, MemoryOperand};
use super::given::MarshalDirection;
use super::helpers::COPY;

/// Most bytes that are moved without a call.
const MAX_INLINE: u64 = 128;

/// Bytes of a vector that every processor has.
const VECTOR: usize = 16;

/// Numbers at an offset in the value of a body, and at one in its block on the wire.
#[derive(Debug, Clone)]
struct CopySegment {
    memory: u64,
    wire: u64,
    item: Vec<Run>,
}

/// The plain items of a block: neighbours on both sides are moved together.
#[derive(Debug)]
pub(super) struct CoalescedCopies {
    swapped: bool,
    pieces: Vec<CopySegment>,
    arrays: Vec<ArrayCopy>,
}

/// Many items of several runs of numbers that change their byte order. Unrolled code would be as long as the array.
#[derive(Debug)]
struct ArrayCopy {
    memory: u64,
    wire: u64,
    item: Blittable,
    count: u32,
}

impl CoalescedCopies {
    /// Starts without items; `swapped` says whether the order of the bytes of a number changes.
    pub fn none(swapped: bool) -> Self {
        Self {
            swapped,
            pieces: Vec::new(),
            arrays: Vec::new(),
        }
    }

    /// Adds `count` items at these offsets from the value of the body and from the block.
    pub fn add(&mut self, memory: u64, wire: u64, item: &Blittable, count: u32) {
        if let [run] = item.runs.as_slice() {
            let units = run.units.saturating_mul(count);
            return self.add_run(memory, wire, Run { units, ..*run });
        }
        let bytes = item.bytes() * u64::from(count);
        if !self.swapped {
            // No plan has a block of more.
            let units = u32::try_from(bytes).unwrap_or(u32::MAX);
            return self.add_run(memory, wire, Run { unit: 1, units });
        }
        if count > 1 && bytes > MAX_INLINE {
            let item = item.clone();
            return self.arrays.push(ArrayCopy {
                memory,
                wire,
                item,
                count,
            });
        }
        for index in 0..u64::from(count) {
            let mut distance = index * item.bytes();
            for run in &item.runs {
                self.add_run(memory + distance, wire + distance, *run);
                distance += bytes_of(run);
            }
        }
    }

    fn add_run(&mut self, memory: u64, wire: u64, run: Run) {
        if let Some(last) = self.pieces.last_mut() {
            let bytes: u64 = last.item.iter().map(bytes_of).sum();
            if (last.memory + bytes, last.wire + bytes) == (memory, wire) {
                match last.item.last_mut() {
                    Some(end) if end.unit == run.unit => end.units += run.units,
                    _ => last.item.push(run),
                }
                return;
            }
        }
        self.pieces.push(CopySegment {
            memory,
            wire,
            item: vec![run],
        });
    }
}

impl FunctionEmitter<'_, '_> {
    /// Moves the plain items of a block.
    pub fn blit_plain(&mut self, plain: CoalescedCopies, it: MemoryOperand, block: MemoryOperand) {
        for piece in plain.pieces {
            self.blit(&piece.item, it.plus(piece.memory), block.plus(piece.wire));
        }
        for array in plain.arrays {
            let firsts = [it.plus(array.memory), block.plus(array.wire)];
            let steps = [array.item.bytes(); 2];
            self.each(array.count, firsts, steps, |this, [memory, wire]| {
                this.blit(&array.item.runs, memory, wire);
            });
        }
    }

    /// Moves `count` items of `all` bytes, which are no constants, between `memory` and `wire`.
    pub fn blit_counted(
        &mut self,
        item: &Blittable,
        (count, all): (Value, Value),
        memory: MemoryOperand,
        wire: MemoryOperand,
    ) {
        let bytes = item.bytes();
        let unit = match self.way.swapped() {
            true => item.unit(),
            false => Some(1),
        };
        match unit {
            Some(unit) => self.blit_many(unit, all, memory, wire),
            None => self.each_of(count, [memory, wire], [bytes; 2], |this, [memory, wire]| {
                this.blit(&item.runs, memory, wire);
            }),
        }
    }

    /// Moves the numbers of `runs` between `memory` and `wire`.
    fn blit(&mut self, runs: &[Run], memory: MemoryOperand, wire: MemoryOperand) {
        let bytes: u64 = runs.iter().map(bytes_of).sum();
        if bytes <= MAX_INLINE {
            return self.blit_few(runs, memory, wire);
        }
        if !self.way.swapped() {
            let bytes = self.word(bytes);
            return self.blit_many(1, bytes, memory, wire);
        }
        let mut at = 0;
        for run in runs {
            let bytes = bytes_of(run);
            let (memory, wire) = (memory.plus(at), wire.plus(at));
            match bytes {
                0..=MAX_INLINE => self.blit_few(&[*run], memory, wire),
                _ => {
                    let bytes = self.word(bytes);
                    self.blit_many(run.unit, bytes, memory, wire);
                }
            }
            at += bytes;
        }
    }

    /// Moves many numbers of one size, by the kernel that the stubs use.
    fn blit_many(&mut self, unit: u32, bytes: Value, memory: MemoryOperand, wire: MemoryOperand) {
        let (from, to) = self.direct(memory, wire);
        let arguments = [self.address(from), self.address(to), bytes];
        let chosen = match unit {
            2 if self.way.swapped() => <u16 as Bits>::chosen(),
            4 if self.way.swapped() => <u32 as Bits>::chosen(),
            8 if self.way.swapped() => <u64 as Bits>::chosen(),
            _ => return self.call_mover(COPY.address, false, &arguments),
        };
        self.call_mover(chosen.cell().cast(), true, &arguments);
    }

    fn direct(&self, memory: MemoryOperand, wire: MemoryOperand) -> (MemoryOperand, MemoryOperand) {
        match self.way {
            MarshalDirection::Encode { .. } => (memory, wire),
            MarshalDirection::Decode { .. } => (wire, memory),
        }
    }

    /// Moves a few numbers without a call: vectors where they hold whole numbers.
    fn blit_few(&mut self, runs: &[Run], memory: MemoryOperand, wire: MemoryOperand) {
        let (from, to) = self.direct(memory, wire);
        let numbers = NumberSequence::of(runs, self.way.swapped());
        let mut at = 0;
        while let Some(step) = numbers.step(at) {
            let (start, bytes) = (step.start, step.bytes);
            let (from, to) = (from.plus(start as u64), to.plus(start as u64));
            match bytes {
                VECTOR => self.blit_vector(&numbers.sources(start), from, to),
                _ => self.blit_number(bytes, numbers.unit(start), from, to),
            }
            at = start + bytes;
        }
    }

    fn blit_vector(&mut self, sources: &[u8; VECTOR], from: MemoryOperand, to: MemoryOperand) {
        let mut value = self.load(types::I8X16, from);
        let is_same = sources
            .iter()
            .enumerate()
            .all(|(at, byte)| at == usize::from(*byte));
        if !is_same {
            let mask = sources.as_slice().into();
            let mask = self.builder.func.dfg.immediates.push(mask);
            value = self.builder.ins().shuffle(value, value, mask);
        }
        self.store(value, to);
    }

    /// Moves so many bytes, which are one number of `unit` bytes or two of 4.
    fn blit_number(&mut self, bytes: usize, unit: usize, from: MemoryOperand, to: MemoryOperand) {
        let ty = match bytes {
            8 => types::I64,
            4 => types::I32,
            2 => types::I16,
            _ => types::I8,
        };
        let mut value = self.load(ty, from);
        if unit > 1 {
            value = self.builder.ins().bswap(value);
        }
        if (bytes, unit) == (8, 4) {
            value = self.builder.ins().rotl_imm(value, 32);
        }
        self.store(value, to);
    }
}

fn bytes_of(run: &Run) -> u64 {
    u64::from(run.unit) * u64::from(run.units)
}

/// A few numbers one behind the other, byte by byte.
struct NumberSequence {
    /// Of each byte, where its number begins and how long that is.
    bytes: Vec<(usize, usize)>,
}

/// Bytes that are moved by one load and one store.
struct CopyStep {
    start: usize,
    bytes: usize,
}

impl NumberSequence {
    /// Makes the sequence; numbers that are not swapped are taken for so many bytes.
    fn of(runs: &[Run], swapped: bool) -> Self {
        let mut bytes = Vec::new();
        for run in runs {
            let unit = if swapped { run.unit as usize } else { 1 };
            for _ in 0..bytes_of(run) as usize / unit {
                let start = bytes.len();
                bytes.extend(std::iter::repeat_n((start, unit), unit));
            }
        }
        Self { bytes }
    }

    fn unit(&self, at: usize) -> usize {
        self.bytes[at].1
    }

    /// Returns whether a number begins there, or all have ended.
    fn is_boundary(&self, at: usize) -> bool {
        self.bytes.get(at).is_none_or(|(start, _)| *start == at)
    }

    /// The bytes to move next if everything before `at` is moved. They may begin before `at`.
    fn step(&self, at: usize) -> Option<CopyStep> {
        let end = self.bytes.len();
        let unit = self.bytes.get(at)?.1;
        let is_little = cfg!(target_endian = "little");
        let is_vector = |start: usize| is_little && self.is_boundary(start);
        if at + VECTOR <= end && is_vector(at + VECTOR) {
            return Some(CopyStep {
                start: at,
                bytes: VECTOR,
            });
        }
        if at + VECTOR > end && at + VECTOR / 2 < end && end >= VECTOR && is_vector(end - VECTOR) {
            let start = end - VECTOR;
            return Some(CopyStep {
                start,
                bytes: VECTOR,
            });
        }
        // As many bytes as one number, or as several that need no change.
        let alike = self.bytes[at..]
            .iter()
            .take_while(|(_, other)| *other == unit);
        let alike = alike.count();
        let bytes = match unit {
            1 => [8, 4, 2]
                .into_iter()
                .find(|bytes| *bytes <= alike)
                .unwrap_or(1),
            4 if alike >= 8 => 8,
            unit => unit,
        };
        Some(CopyStep { start: at, bytes })
    }

    /// Index of the source byte of each byte of the vector at `start`.
    fn sources(&self, start: usize) -> [u8; VECTOR] {
        std::array::from_fn(|at| {
            let (number, unit) = self.bytes[start + at];
            (2 * number + unit - 1 - (start + at) - start) as u8
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Carries the steps out on bytes that are their own positions.
    fn moved(runs: &[Run], swapped: bool) -> Vec<u8> {
        let numbers = NumberSequence::of(runs, swapped);
        let length = numbers.bytes.len();
        let mut to = vec![0xff; length];
        let mut at = 0;
        while let Some(CopyStep { start, bytes }) = numbers.step(at) {
            assert!(start <= at && start + bytes > at && start + bytes <= length);
            let from: Vec<u8> = (start as u8..).take(bytes).collect();
            match bytes {
                VECTOR => {
                    let sources = numbers.sources(start);
                    let moved = sources.map(|source| from[usize::from(source)]);
                    to[start..start + VECTOR].copy_from_slice(&moved);
                }
                _ => {
                    let unit = numbers.unit(start);
                    let swapped = from.chunks(unit).flat_map(|number| number.iter().rev());
                    to.splice(start..start + bytes, swapped.copied());
                }
            }
            at = start + bytes;
        }
        to
    }

    #[test]
    fn a_long_array_is_not_spelt_out() {
        let runs = [(8, 1), (4, 2)].map(|(unit, units)| Run { unit, units });
        let item = Blittable {
            runs: runs.to_vec(),
        };
        for swapped in [false, true] {
            let mut plain = CoalescedCopies::none(swapped);
            for count in [1, 3, 100_000, 8] {
                plain.add(0, 0, &item, count);
            }
            let runs: usize = plain.pieces.iter().map(|piece| piece.item.len()).sum();
            assert!(runs + plain.arrays.len() < 32, "{runs}");
        }
    }

    #[test]
    fn steps_move_every_number() {
        let units = [1, 2, 4, 8];
        for first in units {
            for second in units {
                for count in 0..20 {
                    let runs = [(first, count), (second, 3), (first, 1)];
                    let runs = runs.map(|(unit, units)| Run { unit, units });
                    let bytes: u64 = runs.iter().map(bytes_of).sum();
                    let plain: Vec<u8> = (0..bytes as u8).collect();
                    assert_eq!(moved(&runs, false), plain);
                    let mut swapped = Vec::new();
                    for run in runs {
                        for _ in 0..run.units {
                            let at = swapped.len() as u8;
                            swapped.extend((at..at + run.unit as u8).rev());
                        }
                    }
                    assert_eq!(moved(&runs, true), swapped);
                }
            }
        }
    }
}
