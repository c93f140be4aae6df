//! The stubs of `greeter.x`.

tenon::stubs!(
    /// What a visitor and the greeter have to say to each other.
    pub mod greeter;
);
