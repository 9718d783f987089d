//! Tests of the whole engine.
mod cancel;
mod crash;
mod extremes;
