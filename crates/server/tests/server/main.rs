//! Tests of the server by its clients. They are one program, because each program of tests links the whole of Terrace.
#![allow(clippy::disallowed_methods, reason = "tests with files, on tokio")]

mod auth;
mod clients;
mod common;
mod copy;
mod files;
mod fuzz;
mod hermitage;
mod limits;
mod metrics;
mod notifications;
mod psql;
mod slt;
mod wire;
