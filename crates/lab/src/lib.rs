//! Workloads on the engine itself, on emulated devices in virtual time, and the experiments made of them.
//!
//! In: device profiles, a seed, how many terminals for how long. Out: what was done in each window of time; the paper's
//! numbers beside it. May use every room but `server`; only the command line uses it.
//!
//! Every number that comes from here was produced in virtual time on emulated devices, and is labelled so.

pub mod block_cache;
pub mod experiment;
pub mod experiments;
pub mod heat;
pub mod machine;
mod random;
#[cfg(test)]
mod testing;
pub mod tpcb;
pub mod tpcc;
pub mod tpce;
pub mod tpch;
pub mod workload;
pub mod ycsb;
