//! Single items.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};
use tenon_plan::{Blittable, Scalar};

use super::emit::{FunctionEmitter, MemoryOperand};

impl FunctionEmitter<'_, '_> {
    /// As [`CompilationInput::plain`](super::given::CompilationInput::plain).
    pub fn plain(&self, scalar: Scalar) -> Option<Blittable> {
        self.given.plain(scalar)
    }

    /// Writes an item and returns it as a word; a longer one, as it is.
    pub fn put(&mut self, scalar: Scalar, from: MemoryOperand, to: MemoryOperand) -> Value {
        let item = self.load(self.memory_type(scalar), from);
        let word = match scalar {
            Scalar::F128 => {
                self.store(item, to);
                return item;
            }
            Scalar::I32 | Scalar::U32 | Scalar::F32 => item,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => item,
            Scalar::I16 | Scalar::I8 => self.builder.ins().sextend(types::I32, item),
            Scalar::U16 | Scalar::U8 => self.builder.ins().uextend(types::I32, item),
            Scalar::Bool => {
                let is_true = self.builder.ins().icmp_imm(IntCC::NotEqual, item, 0);
                self.builder.ins().uextend(types::I32, is_true)
            }
            Scalar::Enum(id) => {
                self.check_member(id, item);
                item
            }
        };
        self.put_word(scalar, word, to);
        word
    }

    /// Writes a number as long as the representation has it.
    pub fn put_word(&mut self, scalar: Scalar, word: Value, to: MemoryOperand) {
        let number = match self.wire_bytes(scalar) {
            1 => self.builder.ins().ireduce(types::I8, word),
            2 => self.builder.ins().ireduce(types::I16, word),
            _ => word,
        };
        let number = self.ordered(number);
        self.store(number, to);
    }

    /// Reads an item to memory and returns it as a word; a longer one, as it is.
    pub fn get(&mut self, scalar: Scalar, from: MemoryOperand, to: MemoryOperand) -> Value {
        if scalar == Scalar::F128 {
            let item = self.load(types::I128, from);
            self.store(item, to);
            return item;
        }
        let (item, word) = self.get_word(scalar, from);
        self.store(item, to);
        word
    }

    /// An item as it is in memory, and as a word.
    fn get_word(&mut self, scalar: Scalar, from: MemoryOperand) -> (Value, Value) {
        let number = self.load(self.wire_type(scalar), from);
        let number = self.ordered(number);
        match scalar {
            Scalar::I16 | Scalar::U16 | Scalar::I8 | Scalar::U8 => self.small(scalar, number),
            Scalar::Bool => {
                let truth = self.truth(number);
                let item = match self.memory_type(scalar) {
                    types::I8 => self.builder.ins().ireduce(types::I8, truth),
                    _ => truth,
                };
                (item, truth)
            }
            Scalar::Enum(id) => {
                self.check_member(id, number);
                (number, number)
            }
            Scalar::I32 | Scalar::U32 | Scalar::F32 => (number, number),
            Scalar::I64 | Scalar::U64 | Scalar::F64 | Scalar::F128 => (number, number),
        }
    }

    /// Reads a discriminant. An enum is not checked, as its arms tell its values from each other.
    pub fn get_discriminant(
        &mut self,
        scalar: Scalar,
        from: MemoryOperand,
        to: MemoryOperand,
    ) -> Value {
        match scalar {
            Scalar::Enum(_) => self.get(Scalar::I32, from, to),
            scalar => self.get(scalar, from, to),
        }
    }

    /// As [`get_discriminant`](Self::get_discriminant), the other way.
    pub fn put_discriminant(
        &mut self,
        scalar: Scalar,
        from: MemoryOperand,
        to: MemoryOperand,
    ) -> Value {
        match scalar {
            Scalar::Enum(_) => self.put(Scalar::I32, from, to),
            scalar => self.put(scalar, from, to),
        }
    }

    /// Returns 0 or 1 for a flag. Other values are refused in strict mode.
    pub fn truth(&mut self, number: Value) -> Value {
        let wide = self.builder.ins().uextend(types::I64, number);
        let rest = self.builder.ins().ushr_imm(wide, 1);
        self.checks.strictly.push(rest);
        let is_true = self.builder.ins().icmp_imm(IntCC::NotEqual, number, 0);
        self.builder.ins().uextend(types::I32, is_true)
    }

    /// A small integer as it is in memory, and as a word.
    fn small(&mut self, scalar: Scalar, number: Value) -> (Value, Value) {
        let in_word = self.wire_bytes(scalar) == 4;
        let item = match in_word {
            true => {
                let small = self.memory_type(scalar);
                self.builder.ins().ireduce(small, number)
            }
            false => number,
        };
        let word = match scalar {
            Scalar::I16 | Scalar::I8 => self.builder.ins().sextend(types::I32, item),
            _ => self.builder.ins().uextend(types::I32, item),
        };
        if in_word {
            let lost = self.builder.ins().bxor(word, number);
            let lost = self.builder.ins().uextend(types::I64, lost);
            self.checks.strictly.push(lost);
        }
        (item, word)
    }

    pub fn wire_type(&self, scalar: Scalar) -> Type {
        match self.wire_bytes(scalar) {
            1 => types::I8,
            2 => types::I16,
            4 => types::I32,
            8 => types::I64,
            _ => types::I128,
        }
    }

    /// Type of a scalar in memory.
    fn memory_type(&self, scalar: Scalar) -> Type {
        match self.memory_bytes(scalar) {
            1 => types::I8,
            2 => types::I16,
            4 => types::I32,
            8 => types::I64,
            _ => types::I128,
        }
    }

    /// Bytes of a scalar in memory.
    pub fn memory_bytes(&self, scalar: Scalar) -> u64 {
        self.given.scalar_bytes(scalar)
    }
}
