//! Tests of the program and of the library. They are one program, because each program of tests links the whole of
//! Terrace.
#![allow(clippy::disallowed_methods, reason = "tests of files and processes")]

mod backup;
mod cli;
mod common;
mod embed;
mod output;
mod scan;
mod spill;
mod tier;
