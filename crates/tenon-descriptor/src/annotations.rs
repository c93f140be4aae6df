//! Annotations in bytes: those that are there, in ascending order of their kinds.

use tenon_schema::{
    DefaultValue, FieldAnnotations, MemberAnnotations, ProcedureAnnotations, Streams,
    TypeAnnotations, TypeId, VersionAnnotations,
};
use tenon_wire::{DecodeError, Decoder, EncodeError, Encoder};

use crate::codec::{
    Described, UNBOUNDED, get_name, get_number, get_text, put_name, put_number, put_text, unknown,
};

/// The most annotations of one part: one of each kind.
const KINDS: u32 = 9;

/// One annotation: `desc_annotation`.
enum Annotation {
    Deprecated(String),
    Alias(Vec<String>),
    Sensitive,
    DefaultValue(DefaultValue),
    DefaultMember,
    Idempotent,
    Raises(Vec<TypeId>),
    Stream(Streams),
}

impl Annotation {
    fn kind(&self) -> u32 {
        match self {
            Self::Deprecated(_) => 1,
            Self::Alias(_) => 2,
            Self::Sensitive => 3,
            Self::DefaultValue(DefaultValue::Number(_)) => 4,
            Self::DefaultValue(DefaultValue::Text(_)) => 5,
            Self::DefaultMember => 6,
            Self::Idempotent => 7,
            Self::Raises(_) => 8,
            Self::Stream(_) => 9,
        }
    }

    fn put(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
        out.put(self.kind());
        match self {
            Self::Deprecated(reason) => put_text(reason, out)?,
            Self::Alias(names) => out.put_vec(names, UNBOUNDED, |name, out| put_name(name, out))?,
            Self::DefaultValue(DefaultValue::Number(number)) => put_number(*number, out)?,
            Self::DefaultValue(DefaultValue::Text(text)) => put_text(text, out)?,
            Self::Raises(types) => types.put(out)?,
            Self::Stream(streams) => {
                out.put(u32::from(streams.arguments) + 2 * u32::from(streams.result));
            }
            Self::Sensitive | Self::DefaultMember | Self::Idempotent => {}
        }
        Ok(())
    }

    fn get(kind: u32, input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(match kind {
            1 => Self::Deprecated(get_text(input)?),
            2 => Self::Alias(input.get_vec(UNBOUNDED, 4, get_name)?),
            3 => Self::Sensitive,
            4 => Self::DefaultValue(DefaultValue::Number(get_number(input)?)),
            5 => Self::DefaultValue(DefaultValue::Text(get_text(input)?)),
            6 => Self::DefaultMember,
            7 => Self::Idempotent,
            8 => Self::Raises(Described::get(input)?),
            9 => Self::Stream(get_streams(input)?),
            _ => return Err(unknown(input, kind)),
        })
    }
}

fn get_streams(input: &mut Decoder<'_>) -> Result<Streams, DecodeError> {
    let directions: u32 = input.get()?;
    match directions {
        1..=3 => Ok(Streams {
            arguments: directions & 1 != 0,
            result: directions & 2 != 0,
        }),
        _ => Err(unknown(input, directions)),
    }
}

impl Described for TypeId {
    const BYTES_MIN: usize = 4;

    fn put(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
        out.put(self.0);
        Ok(())
    }

    fn get(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        input.get().map(Self)
    }
}

/// The annotations of a kind of part.
trait AnnotationSet: Default {
    /// Returns them in ascending order of their kinds.
    fn all(&self) -> Vec<Annotation>;

    /// Takes one in; false if there is no such annotation of this part.
    fn accept(&mut self, annotation: Annotation) -> bool;
}

fn put_all(set: &impl AnnotationSet, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
    out.put_vec(&set.all(), KINDS, Annotation::put)
}

fn get_all<S: AnnotationSet>(input: &mut Decoder<'_>) -> Result<S, DecodeError> {
    let mut set = S::default();
    let mut last = 0;
    for _ in 0..input.count(KINDS, 4)? {
        let kind: u32 = input.get()?;
        let misplaced = unknown(input, kind);
        let is_next = kind > last;
        if !is_next || !set.accept(Annotation::get(kind, input)?) {
            return Err(misplaced);
        }
        last = kind;
    }
    Ok(set)
}

/// Gives a kind of annotations their bytes.
macro_rules! described {
    ($($set:ty),*) => {$(
        impl Described for $set {
            const BYTES_MIN: usize = 4;

            fn put(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError> {
                put_all(self, out)
            }

            fn get(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
                get_all(input)
            }
        }
    )*};
}

described!(
    TypeAnnotations,
    FieldAnnotations,
    MemberAnnotations,
    VersionAnnotations,
    ProcedureAnnotations
);

impl AnnotationSet for TypeAnnotations {
    fn all(&self) -> Vec<Annotation> {
        let all = [deprecated(&self.deprecated), alias(&self.aliases)];
        all.into_iter().flatten().collect()
    }

    fn accept(&mut self, annotation: Annotation) -> bool {
        match annotation {
            Annotation::Deprecated(reason) => self.deprecated = Some(reason),
            Annotation::Alias(names) => self.aliases = names,
            _ => return false,
        }
        true
    }
}

impl AnnotationSet for FieldAnnotations {
    fn all(&self) -> Vec<Annotation> {
        let all = [
            deprecated(&self.deprecated),
            alias(&self.aliases),
            self.sensitive.then_some(Annotation::Sensitive),
            self.default.clone().map(Annotation::DefaultValue),
        ];
        all.into_iter().flatten().collect()
    }

    fn accept(&mut self, annotation: Annotation) -> bool {
        match annotation {
            Annotation::Deprecated(reason) => self.deprecated = Some(reason),
            Annotation::Alias(names) => self.aliases = names,
            Annotation::Sensitive => self.sensitive = true,
            // There is one default, whatever its kind.
            Annotation::DefaultValue(_) if self.default.is_some() => return false,
            Annotation::DefaultValue(value) => self.default = Some(value),
            _ => return false,
        }
        true
    }
}

impl AnnotationSet for MemberAnnotations {
    fn all(&self) -> Vec<Annotation> {
        let all = [
            deprecated(&self.deprecated),
            alias(&self.aliases),
            self.is_default.then_some(Annotation::DefaultMember),
        ];
        all.into_iter().flatten().collect()
    }

    fn accept(&mut self, annotation: Annotation) -> bool {
        match annotation {
            Annotation::Deprecated(reason) => self.deprecated = Some(reason),
            Annotation::Alias(names) => self.aliases = names,
            Annotation::DefaultMember => self.is_default = true,
            _ => return false,
        }
        true
    }
}

impl AnnotationSet for VersionAnnotations {
    fn all(&self) -> Vec<Annotation> {
        deprecated(&self.deprecated).into_iter().collect()
    }

    fn accept(&mut self, annotation: Annotation) -> bool {
        let Annotation::Deprecated(reason) = annotation else {
            return false;
        };
        self.deprecated = Some(reason);
        true
    }
}

impl AnnotationSet for ProcedureAnnotations {
    fn all(&self) -> Vec<Annotation> {
        let raises = !self.raises.is_empty();
        let streams = self.streams != Streams::default();
        let all = [
            deprecated(&self.deprecated),
            self.idempotent.then_some(Annotation::Idempotent),
            raises.then(|| Annotation::Raises(self.raises.clone())),
            streams.then_some(Annotation::Stream(self.streams)),
        ];
        all.into_iter().flatten().collect()
    }

    fn accept(&mut self, annotation: Annotation) -> bool {
        match annotation {
            Annotation::Deprecated(reason) => self.deprecated = Some(reason),
            Annotation::Idempotent => self.idempotent = true,
            Annotation::Raises(types) => self.raises = types,
            Annotation::Stream(streams) => self.streams = streams,
            _ => return false,
        }
        true
    }
}

fn deprecated(reason: &Option<String>) -> Option<Annotation> {
    reason.clone().map(Annotation::Deprecated)
}

fn alias(names: &[String]) -> Option<Annotation> {
    (!names.is_empty()).then(|| Annotation::Alias(names.to_vec()))
}
