//! Texts and what becomes of them. What PostgreSQL 15 answers was asked of PostgreSQL 15.

mod accepted;
mod depth;
mod precedence;
mod refused;
mod shown;
mod soup;
