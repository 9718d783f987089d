//! Devices for tests and experiments: memory that crashes, fails and is slow as a disk, an SSD or a network volume is.

pub mod emulate;
pub mod fault;
pub mod image;
pub mod latency;
pub mod memory;
pub mod trace;
