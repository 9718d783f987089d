//! Texts and what becomes of them. What PostgreSQL 15 answers was asked of PostgreSQL 15.

mod accepted;
mod definitions;
mod depth;
mod precedence;
mod refused;
mod sessions;
mod shape;
mod shown;
mod soup;
mod words;
