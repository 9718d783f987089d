//! Devices of the operating system: files and block devices, by io_uring or by threads that block.

mod blocking;
pub mod file;
pub mod lock;
mod uring;
