//! Workloads on the engine itself, on emulated devices in virtual time.
//!
//! In: device profiles, a seed, how many terminals for how long. Out: what was done in each window of time. May use every room but `server`;
//! nothing uses it.
//!
//! Every number that comes from here was produced in virtual time on emulated devices, and is labelled so.

pub mod machine;
pub mod tpcb;
pub mod tpcc;
pub mod workload;
