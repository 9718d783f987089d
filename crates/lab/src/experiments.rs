//! The experiments there are.

mod block_cache;
pub mod case;
mod do3_others;
mod do3_readahead;
mod do3_tpcc;
mod do3_tpce;
mod do3_tpch;
mod do4;
mod own;
mod sharp;
mod ycsb;

use crate::experiment::Experiment;

/// In the order of `terrace lab list`.
pub fn all() -> Vec<Experiment> {
    [
        do3_tpcc::EXPERIMENTS,
        do3_tpce::EXPERIMENTS,
        do3_tpch::EXPERIMENTS,
        do3_readahead::EXPERIMENTS,
        do3_others::EXPERIMENTS,
        do4::EXPERIMENTS,
        own::EXPERIMENTS,
        block_cache::EXPERIMENTS,
        ycsb::EXPERIMENTS,
    ]
    .concat()
}

/// By its name, or why not.
pub fn named(id: &str) -> Result<Experiment, String> {
    let found = all().into_iter().find(|experiment| experiment.id == id);
    found.ok_or_else(|| {
        let ids: Vec<_> = all().iter().map(|experiment| experiment.id).collect();
        format!("there is no experiment {id:?}; there are {}", ids.join(", "))
    })
}

#[cfg(test)]
mod tests;
