//! SQL's grammar: from a text to statements.
//!
//! The grammar is that of PostgreSQL 15. What PostgreSQL refuses for its syntax is refused here with the same SQLSTATE,
//! message and place.
//!
//! This crate knows no other crate of Terrace: no catalogue, no types, no plans.

pub mod statement;
