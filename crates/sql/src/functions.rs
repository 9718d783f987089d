//! The functions, operators and casts that queries call: what each takes, and its kernel over Arrow arrays.
//!
//! A scalar function is a line in the table of [`builtin`]; an aggregate is in [`aggregates`]. Which of several
//! functions a call means, and of which types, is decided while the query is planned ([`crate::plan`]).
//!
//! 1. A kernel answers what PostgreSQL 15 answers, with its errors, or refuses (0A000).
//! 2. A kernel asks before it makes a large value, and looks whether its statement was cancelled ([`crate::memory`]).
pub(crate) mod advisory;
pub(crate) mod aggregates;
pub(crate) mod arithmetic;
pub(crate) mod arrays;
pub(crate) mod bits;
pub(crate) mod bounded;
pub(crate) mod builtin;
pub(crate) mod calendar;
pub(crate) mod chars;
pub(crate) mod compared;
pub(crate) mod convert;
pub(crate) mod date_time;
pub(crate) mod domains;
pub(crate) mod enums;
pub(crate) mod framed;
pub(crate) mod interval;
pub(crate) mod json;
pub(crate) mod nulls;
pub(crate) mod ordered;
pub(crate) mod random;
pub(crate) mod rows;
pub(crate) mod series;
pub(crate) mod sleep;
pub(crate) mod to_char;
pub(crate) mod windows;
