//! From a statement's tree to a plan that can run.
//!
//! Queries and changes of rows are bound from their own trees by [`bind`]. The older way, by DataFusion's SQL planner
//! from another parser's tree, is there for tests that compare the two, until it goes.
//!
//! The order of a query on that older way: [`refusals`] refuses what nobody would carry out and names the result
//! columns; [`rules`] writes out the names of columns where DataFusion's scopes are not PostgreSQL's; [`planner`]
//! hands the tree to DataFusion, with [`operators`] in the place of its operators; [`resolve`] and [`choosers`]
//! give literals and results PostgreSQL's types; [`semantics`] puts PostgreSQL's casts in; [`key_ranges`] turns
//! conditions into ranges of an index; [`scan`] reads them.
//!
//! 1. A plan holds no transaction: scans find it in the task's [`crate::transaction::StatementContext`].
//! 2. What would give another answer than PostgreSQL's is refused while the query is planned, not while it runs.
pub(crate) mod bind;
pub(crate) mod choosers;
pub(crate) mod comparable;
pub(crate) mod key_ranges;
pub(crate) mod naming;
pub(crate) mod operators;
pub(crate) mod pieces;
pub(crate) mod planner;
pub(crate) mod refusals;
pub(crate) mod resolve;
pub(crate) mod rules;
pub(crate) mod scan;
pub(crate) mod semantics;
pub(crate) mod sequence_relations;
pub(crate) mod yielding;
