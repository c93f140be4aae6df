//! A real value fills in the variables of an equation.

use tenon_exec::Value;
use tenon_plan::Place;
use tenon_plan::cost::{Choice, Shape, Variable};

/// A value, or nothing where there is none.
#[derive(Debug, Clone, Copy)]
pub struct KnownValue<'a>(Option<&'a Value>);

impl<'a> KnownValue<'a> {
    /// All that is to be known of a value.
    pub fn new(value: &'a Value) -> Self {
        Self(Some(value))
    }

    fn items(self) -> &'a [Value] {
        match self.0 {
            Some(Value::Array(items) | Value::Struct(items)) => items,
            _ => &[],
        }
    }
}

impl Shape for KnownValue<'_> {
    const IS_ALIKE: bool = false;

    fn at(self, place: &Place) -> Self {
        place.0.iter().fold(self, |at, position| {
            Self(at.items().get(*position as usize))
        })
    }

    fn length(self, _: &Variable) -> u64 {
        match self.0 {
            Some(Value::Array(items)) => items.len() as u64,
            Some(Value::Opaque(bytes)) => bytes.len() as u64,
            Some(Value::String(text)) => text.len() as u64,
            _ => 0,
        }
    }

    fn elements(self, _: &Variable, _: Option<u32>) -> impl Iterator<Item = (u64, Self)> {
        self.items().iter().map(|item| (1, Self(Some(item))))
    }

    fn held(self, _: &Variable) -> Option<Self> {
        match self.0 {
            Some(Value::Optional(Some(held))) => Some(Self(Some(held))),
            _ => None,
        }
    }

    fn arm(self, of: &Choice) -> (Option<usize>, Self) {
        let Some(Value::Union(union)) = self.0 else {
            return (None, Self(None));
        };
        let selects = |(values, _, _): &(Vec<i32>, _, _)| values.contains(&union.discriminant);
        let arm = of.arms.iter().position(selects);
        (arm, Self(Some(&union.value)))
    }

    fn entered(self, _: u32) -> Self {
        self
    }
}
