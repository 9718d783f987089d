//! Tests of statements and sessions, without a server. They are one program, because each program of tests links the
//! whole of the planner.
#![allow(clippy::disallowed_methods, reason = "tests run on tokio")]

mod advisory;
mod common;
mod concurrency;
mod explain;
mod foreign_keys;
mod fuzz;
mod generic;
mod key_joins;
mod partitioning;
mod places;
mod statements;
mod user_views;
mod views;
