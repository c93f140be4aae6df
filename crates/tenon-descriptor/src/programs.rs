//! Constants, programs and whole interfaces in bytes.

use tenon_schema::{Constant, ConstantValue, Procedure, Program, Schema, Version};
use tenon_wire::{DecodeError, Decoder, EncodeError, Encoder};

use crate::codec::{
    Described, get_name, get_number, get_text, put_name, put_number, put_text, unknown,
};
use crate::types::nowhere;

impl Described for ConstantValue {
    const BYTES_MIN: usize = 8;

    fn put(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
        match self {
            Self::Number(number) => {
                out.put(1_u32);
                put_number(*number, out)
            }
            Self::Text(text) => {
                out.put(2_u32);
                put_text(text, out)
            }
            Self::Unresolved(expression) => {
                out.put(3_u32);
                put_text(expression, out)
            }
        }
    }

    fn get(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let kind: u32 = input.get()?;
        Ok(match kind {
            1 => Self::Number(get_number(input)?),
            2 => Self::Text(get_text(input)?),
            3 => Self::Unresolved(get_text(input)?),
            _ => return Err(unknown(input, kind)),
        })
    }
}

impl Described for Constant {
    const BYTES_MIN: usize = 12;

    fn put(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
        put_name(&self.name, out)?;
        self.value.put(out)
    }

    fn get(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            name: get_name(input)?,
            doc: String::new(),
            origin: nowhere(),
            value: Described::get(input)?,
        })
    }
}

impl Described for Procedure {
    const BYTES_MIN: usize = 20;

    fn put(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
        put_name(&self.name, out)?;
        out.put(self.number);
        self.arguments.put(out)?;
        self.result.put(out)?;
        self.annotations.put(out)
    }

    fn get(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            name: get_name(input)?,
            doc: String::new(),
            number: input.get()?,
            arguments: Described::get(input)?,
            result: Described::get(input)?,
            annotations: Described::get(input)?,
        })
    }
}

impl Described for Version {
    const BYTES_MIN: usize = 16;

    fn put(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
        put_name(&self.name, out)?;
        out.put(self.number);
        self.procedures.put(out)?;
        self.annotations.put(out)
    }

    fn get(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            name: get_name(input)?,
            doc: String::new(),
            number: input.get()?,
            procedures: Described::get(input)?,
            annotations: Described::get(input)?,
        })
    }
}

impl Described for Program {
    const BYTES_MIN: usize = 12;

    fn put(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
        put_name(&self.name, out)?;
        out.put(self.number);
        self.versions.put(out)
    }

    fn get(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            name: get_name(input)?,
            doc: String::new(),
            origin: nowhere(),
            number: input.get()?,
            versions: Described::get(input)?,
        })
    }
}

/// What stands behind the format.
impl Described for Schema {
    const BYTES_MIN: usize = 12;

    fn put(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
        self.types.put(out)?;
        self.constants.put(out)?;
        self.programs.put(out)
    }

    fn get(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            types: Described::get(input)?,
            constants: Described::get(input)?,
            programs: Described::get(input)?,
            passthrough: Vec::new(),
        })
    }
}
