//! A statement that was parsed, and described to its client.
use crate::by_key::ByKey;
use crate::observe::Entry;
use crate::plan::bind::Tree;
use crate::session::heavy::Heavy;
use crate::statement::generic::Generics;
use crate::statement::kind::Kind;
use datafusion::arrow::datatypes::SchemaRef;
use parking_lot::Mutex;
use std::any::Any;
use std::sync::{Arc, OnceLock};
use terrace_engine::{DataType, EngineError};
use terrace_grammar::statement::{Direction, Fetch, Statement};

/// A parsed (and, where it is a query, planned) statement with parameters.
pub struct Prepared {
    pub sql: Arc<str>,
    /// Inferred or given.
    pub parameters: Vec<DataType>,
    /// Result columns, `None` where it returns no rows.
    pub columns: Option<SchemaRef>,
    /// Notices about its text. They are sent each time that it runs in the simple protocol, or is prepared.
    pub notices: Vec<EngineError>,
    /// `None`: the text held no statement.
    pub(crate) statement: Option<Tree>,
    /// A bound on its tree's depth.
    pub(crate) depth: usize,
    /// If it is a statement on one row by its key: what was recognised, for one version of the catalogue.
    pub(crate) by_key: Mutex<Option<Arc<ByKey>>>,
    /// If it is none: plans of it that run again.
    pub(crate) generics: Generics,
    /// If it is EXECUTE: the statement that it runs.
    pub(crate) executes: Option<Arc<Prepared>>,
    /// The memory of its tree, if that is much.
    pub(crate) heavy: Option<Heavy>,
    /// Where its runs are counted.
    pub(crate) entry: OnceLock<Arc<Entry>>,
    /// A place where the sender of its rows keeps what it needs.
    pub attached: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Prepared {
    /// Whether it is a statement on one row by its key, which runs without DataFusion.
    pub fn is_by_key(&self) -> bool {
        self.by_key.lock().is_some()
    }

    /// Of MOVE forward: the cursor, and over how many rows.
    pub fn moves(&self) -> Option<(&str, usize)> {
        match self.statement.as_ref()?.statement() {
            Statement::Fetch(Fetch { moves: true, direction: Direction::Forward(count @ 0..), cursor, .. }) => {
                Some((&cursor.name, usize::try_from(*count).ok()?))
            }
            _ => None,
        }
    }

    /// The command tag of rows, to which their count is added: of `EXPLAIN` and `SHOW` nothing is.
    pub fn tag(&self, rows: u64) -> String {
        if let Some(inner) = &self.executes {
            return inner.tag(rows);
        }
        match &self.statement {
            Some(tree) => Kind::of(tree.statement()).tag_of_rows(rows),
            None => format!("SELECT {rows}"),
        }
    }
}
