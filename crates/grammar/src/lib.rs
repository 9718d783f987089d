//! SQL's grammar: from a text to statements.
//!
//! The grammar is that of PostgreSQL 15. What PostgreSQL refuses for its syntax is refused here with the same SQLSTATE,
//! message and place.
//!
//! This crate knows no other crate of Terrace: no catalogue, no types, no plans.

mod error;
mod keyword;
mod lexer;
mod parser;
mod shape;
pub mod statement;
mod words;

pub use error::SyntaxError;
pub use keyword::{Listed, keywords, quoted};
pub use lexer::Options;
pub use parser::{Parsed, parse};
pub use shape::{Shape, ShapeKind, ShapeLiteral, shape};
pub use words::{Cut, cut, cut_names, name_of, statement_end, token_end, within_quotes, without_parens};
