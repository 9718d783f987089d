//! The commands of the binary, one file each.

pub(crate) mod check;
pub(crate) mod copies;
pub(crate) mod inspect;
pub(crate) mod lab;
pub(crate) mod memory;
pub(crate) mod quickstart;
pub(crate) mod remote;
pub(crate) mod report;
pub(crate) mod restart;
pub(crate) mod serve;
pub(crate) mod shell;
pub(crate) mod stop;
pub(crate) mod top;
pub(crate) mod workload;
