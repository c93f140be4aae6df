//! What stands in the place of values of parts that features leave out.
//!
//! Code that uses a part is the same whether the part is built: it holds an `If…<T>`, which is `T` where the part is
//! built, and otherwise a type without values. So the compiler knows then that the code is never reached, and makes
//! nothing of it.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// A value of a part that was left out, of which there are none.
#[derive(Debug)]
pub struct LeftOut<T> {
    never: Infallible,
    of: PhantomData<T>,
}

impl<T> Clone for LeftOut<T> {
    fn clone(&self) -> Self {
        match self.never {}
    }
}

impl<T> Deref for LeftOut<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        match self.never {}
    }
}

impl<T> DerefMut for LeftOut<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        match self.never {}
    }
}

/// Declares the type of what is held of a part, by its feature, and the function that makes one of a `T`.
#[doc(hidden)]
#[macro_export]
macro_rules! part {
    ($feature:literal, $type:ident, $make:ident) => {
        #[doc = concat!("A `T`, or no value at all without the feature `", $feature, "`.")]
        #[cfg(feature = $feature)]
        pub type $type<T> = T;
        #[doc = concat!("A `T`, or no value at all without the feature `", $feature, "`.")]
        #[cfg(not(feature = $feature))]
        pub type $type<T> = $crate::left_out::LeftOut<T>;

        #[doc = concat!("Returns `value`, as one of a part that needs the feature `", $feature, "`.")]
        ///
        /// # Panics
        /// The feature is left out.
        #[cfg(feature = $feature)]
        #[inline(always)]
        pub fn $make<T>(value: T) -> $type<T> {
            value
        }
        #[doc = concat!("Panics, as the feature `", $feature, "` is left out.")]
        #[cfg(not(feature = $feature))]
        #[cold]
        pub fn $make<T>(_: T) -> $type<T> {
            unreachable!(concat!("addresses that need the feature `", $feature, "` were refused"))
        }
    };
}

part!("exchange", IfExchange, if_exchange);
part!("onc", IfOnc, if_onc);
part!("lean", IfLean, if_lean);
