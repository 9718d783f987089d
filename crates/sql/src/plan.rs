//! From a statement's tree to a plan that can run.
//!
//! The order of a query: [`planner`] has it bound from its tree by [`bind`], where [`operators`] plan what stands
//! beside each other, and [`resolve`] and [`choosers`] give literals and results PostgreSQL's types; [`semantics`] puts
//! PostgreSQL's casts in; the [`rules`] keep DataFusion's optimizer from other answers than PostgreSQL's;
//! [`key_ranges`] turns conditions into ranges of an index; [`scan`] reads them; [`key_joins`] has joins look for keys.
//!
//! 1. A plan holds no transaction: scans find it in the task's [`crate::transaction::StatementContext`].
//! 2. What would give another answer than PostgreSQL's is refused while the query is planned, not while it runs.
pub(crate) mod apply;
pub(crate) mod bind;
pub(crate) mod choosers;
pub(crate) mod comparable;
pub(crate) mod first_rows;
pub(crate) mod generic;
pub(crate) mod guarded;
pub(crate) mod key_joins;
pub(crate) mod key_ranges;
pub(crate) mod naming;
pub(crate) mod operators;
pub(crate) mod origins;
pub(crate) mod pieces;
pub(crate) mod planner;
pub(crate) mod resolve;
pub(crate) mod returned;
pub(crate) mod rules;
pub(crate) mod scan;
pub(crate) mod semantics;
pub(crate) mod sequence_relations;
pub(crate) mod waiting_last;
pub(crate) mod yielding;
