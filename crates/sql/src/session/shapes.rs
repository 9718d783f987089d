//! Statements that a session need not parse again. They are found by their text (the extended protocol's unnamed
//! statement is parsed each time it runs), or by their text without its literals (the simple protocol).
//!
//! 1. A statement is kept only if its meaning cannot change: statements by key, which name the version of the catalogue
//!    that they were recognised for, and BEGIN, COMMIT and ROLLBACK.
//! 2. At most [`MOST`] are kept; then all are dropped. (A client has a few shapes, or any number of them.)
use crate::by_key::{Literal, Use};
use crate::plan::refusals;
use crate::session::Session;
use crate::session::prepared::Prepared;
use crate::stack::on_stack;
use crate::{by_key, parse};
use datafusion::sql::sqlparser::ast::Statement;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use terrace_engine::{Catalog, DataType, Datum};

/// Statements kept of each kind.
const MOST: usize = 256;

/// Bytes of the longest text kept.
const LONGEST: usize = 4096;

/// Depth of the deepest kept: what is by key has no more.
const SHALLOW: usize = 12;

/// By text without literals; `None`: parsing it anew is the way.
#[derive(Default)]
pub(crate) struct Shapes {
    known: FxHashMap<String, Option<Arc<Shape>>>,
    /// Reused for each text's shape.
    buffer: String,
}

struct Shape {
    prepared: Arc<Prepared>,
    /// What the literals are for.
    uses: Vec<Use>,
}

/// By text, with the types that the client stated.
#[derive(Default)]
pub(crate) struct Parsed(FxHashMap<String, (Vec<Option<DataType>>, Arc<Prepared>)>);

impl Prepared {
    /// Invariant 1.
    fn still_means(&self, catalog: &Catalog) -> bool {
        match &*self.by_key.lock() {
            Some(by_key) => by_key.means(catalog.version()),
            None => self.statement.as_ref().is_some_and(is_plain_control),
        }
    }
}

/// BEGIN, COMMIT, ROLLBACK and their like.
fn is_plain_control(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::StartTransaction { .. } | Statement::Commit { .. } | Statement::Rollback { savepoint: None, .. }
    )
}

impl Parsed {
    pub(crate) fn remember(&mut self, prepared: &Arc<Prepared>, types: &[Option<DataType>]) {
        let control = prepared.statement.as_ref().is_some_and(is_plain_control);
        if prepared.sql.len() > LONGEST || !(prepared.is_by_key() || control) {
            return;
        }
        if self.0.len() >= MOST {
            self.0.clear();
        }
        self.0.insert(prepared.sql.to_string(), (types.to_vec(), prepared.clone()));
        assert!(self.0.len() <= MOST, "invariant 2");
    }
}

impl Session {
    /// The statement, where it was parsed before.
    pub(crate) async fn known(&self, sql: &str, types: &[Option<DataType>]) -> Option<Arc<Prepared>> {
        let (stated, prepared) = self.parsed.0.get(sql)?;
        let usable = stated == types
            && self.shared.block() != crate::transaction::Block::Failed
            && prepared.still_means(&*self.catalog().await);
        usable.then(|| prepared.clone())
    }

    /// A statement of the simple protocol whose shape was seen before, and its parameters; `None`: split and prepare
    /// the text.
    pub async fn prepare_text(&mut self, sql: &str) -> Option<(Arc<Prepared>, Vec<Datum>)> {
        let mut shape = std::mem::take(&mut self.shapes.buffer);
        let zone = self.zone();
        let found = zone.over(pin!(self.find_shape(sql, &mut shape))).await;
        self.shapes.buffer = shape;
        found
    }

    async fn find_shape(&mut self, sql: &str, text: &mut String) -> Option<(Arc<Prepared>, Vec<Datum>)> {
        self.by_key.then_some(())?;
        let literals = by_key::normalise(sql, text)?;
        let catalog = self.catalog().await;
        let known = self.shapes.known.get(text.as_str());
        let shape = match known {
            // What was not recognised is not tried again: in another catalogue it is still right, only slow.
            Some(None) => return None,
            Some(Some(shape)) if shape.prepared.still_means(&catalog) => shape.clone(),
            _ => {
                let made = Shape::make(text, literals.len(), &catalog).map(Arc::new);
                if self.shapes.known.len() >= MOST {
                    self.shapes.known.clear();
                }
                self.shapes.known.insert(text.clone(), made.clone());
                assert!(self.shapes.known.len() <= MOST, "invariant 2");
                made?
            }
        };
        let values = shape.values(&literals)?;
        Some((shape.prepared.clone(), values))
    }
}

impl Shape {
    fn make(text: &str, literals: usize, catalog: &Catalog) -> Option<Shape> {
        let (tokens, depth) = parse::tokens(text).ok()?;
        (depth <= SHALLOW).then_some(())?;
        let statement = on_stack(depth, || {
            let mut statement = parse::parse_tokens(tokens).ok()??;
            refusals::prepare(&mut statement).ok()?;
            Some(statement)
        })?;
        let (mut uses, mut parameters, mut columns, mut by_key) = (vec![], vec![], None, None);
        if literals > 0 || !is_plain_control(&statement) {
            let recognised = by_key::recognise_literals(&statement, catalog, literals)?;
            columns = recognised.0.columns();
            (by_key, uses, parameters) = (Some(Arc::new(recognised.0)), recognised.1, recognised.2);
        }
        let by_key = Mutex::new(by_key);
        let sql = text.into();
        let (statement, executes) = (Some(statement), None);
        let (entry, attached) = (OnceLock::new(), OnceLock::new());
        let arrays = Default::default();
        let (heavy, notices) = (None, vec![]);
        let prepared = Prepared {
            tree: None,
            sql,
            parameters,
            arrays,
            columns,
            notices,
            statement,
            depth,
            by_key,
            executes,
            heavy,
            entry,
            attached,
        };
        Some(Shape { prepared: Arc::new(prepared), uses })
    }

    fn values(&self, literals: &[Literal<'_>]) -> Option<Vec<Datum>> {
        if literals.is_empty() {
            return Some(vec![]);
        }
        assert_eq!(self.uses.len(), literals.len(), "one text without literals, as many literals");
        let by_key = self.prepared.by_key.lock().clone()?;
        self.uses.iter().zip(literals).map(|(of, literal)| of.value(&by_key, literal)).collect()
    }
}
