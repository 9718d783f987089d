//! Tests of the whole engine.
mod cancel;
pub(crate) mod crash;
mod extremes;
mod opening;
