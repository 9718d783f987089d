//! Statements that a session need not parse again. They are found by their text (the extended protocol's unnamed
//! statement is parsed each time it runs), or by their text without its literals (the simple protocol).
//!
//! 1. A statement is kept only if its meaning cannot change. These are BEGIN, COMMIT and ROLLBACK, and statements by
//!    key, which name the version of the catalogue that they were recognised for.
//! 2. At most [`MOST`] are kept; then all are dropped. (A client has a few shapes, or any number of them.)
//! 3. A text without its literals is run by key or not at all. The general way is given the text itself: to the planner
//!    a literal is not a parameter of the same value (`-10` is `-$1` there, and a number beside a bigint an integer).
use crate::by_key::Use;
use crate::plan::bind::Tree;
use crate::session::prepared::Prepared;
use crate::session::run_by_key::Ran;
use crate::session::{Outcome, Session};
use crate::statement::generic::Generics;
use crate::statement::kind::Kind;
use crate::{by_key, parse};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use terrace_engine::{Catalog, DataType, Datum, Result};
use terrace_grammar::{Options, ShapeKind, ShapeLiteral};

/// Statements kept of each kind.
const MOST: usize = 256;

/// Bytes of the longest text kept.
const LONGEST: usize = 4096;

/// Depth of the deepest statement that is kept: statements by key are not deeper.
const SHALLOW: u32 = 12;

/// By text without literals; `None`: texts of this shape must be parsed.
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
    fn still_means(&self, catalog: &Catalog, acting: &str) -> bool {
        match &*self.by_key.lock() {
            Some(by_key) => by_key.means(catalog.version(), acting),
            None => self.statement.as_ref().is_some_and(is_plain_control),
        }
    }
}

/// BEGIN, COMMIT, ROLLBACK and their like.
fn is_plain_control(tree: &Tree) -> bool {
    Kind::of(tree.statement()).is_plain_control()
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
            && prepared.still_means(&*self.catalog().await, &self.shared.settings.lock().acting());
        usable.then(|| prepared.clone())
    }

    /// A statement of the simple protocol whose shape was seen before, and its parameters; `None`: split and prepare
    /// the text.
    pub async fn prepare_text(&mut self, sql: &str) -> Option<(Arc<Prepared>, Vec<Datum>)> {
        let mut shape = std::mem::take(&mut self.shapes.buffer);
        let style = self.style();
        let found = style.over(pin!(self.find_shape(sql, &mut shape))).await;
        self.shapes.buffer = shape;
        found
    }

    /// Runs what [`Session::prepare_text`] has found. `None`: it was not run, and its text is the general way's
    /// (invariant 3).
    pub async fn execute_text(&mut self, found: &Arc<Prepared>, values: Vec<Datum>) -> Option<Result<Outcome>> {
        if values.is_empty() {
            return Some(self.execute(found, values).await);
        }
        let by_key = self.runs_by_key(found, &values)?;
        let style = self.style();
        // Boxed as in `execute`.
        match style.over(Box::pin(self.execute_by_key(found, by_key, &values))).await {
            Ran::Done(done) => Some(done),
            Ran::General(running) => {
                if let Some(running) = running {
                    running.begins_again();
                }
                None
            }
        }
    }

    async fn find_shape(&mut self, sql: &str, text: &mut String) -> Option<(Arc<Prepared>, Vec<Datum>)> {
        self.by_key.then_some(())?;
        let literals = literals(sql, text)?;
        let catalog = self.catalog().await;
        let acting = self.shared.settings.lock().acting();
        let known = self.shapes.known.get(text.as_str());
        let shape = match known {
            // A text that was not recognised is not tried again. With a later catalogue this is still correct, only
            // slow.
            Some(None) => return None,
            Some(Some(shape)) if shape.prepared.still_means(&catalog, &acting) => shape.clone(),
            _ => {
                let made = Shape::make(text, literals.len(), &catalog, &acting).map(Arc::new);
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

/// Writes a text without its literals to `shape`, and answers the literals. `None`: texts of this kind are not kept.
fn literals<'s>(sql: &'s str, shape: &mut String) -> Option<Vec<ShapeLiteral<'s>>> {
    if sql.len() > LONGEST {
        return None;
    }
    let sql = sql.trim_ascii();
    let sql = sql.strip_suffix(';').unwrap_or(sql).trim_ascii_end();
    let found = terrace_grammar::shape(sql, Options::default(), LONGEST, shape);
    let plain = found.whole && found.statements == 1 && found.parameters == 0;
    let known = |literal: &ShapeLiteral<'_>| literal.kind != ShapeKind::Other;
    (plain && found.literals.iter().all(known)).then_some(found.literals)
}

impl Shape {
    fn make(text: &str, literals: usize, catalog: &Catalog, acting: &Arc<str>) -> Option<Shape> {
        let parsed = parse::statement(text).ok()??;
        // A text with notices goes the general way, which sends them.
        parse::cut_names(text).is_empty().then_some(())?;
        (parsed.height <= SHALLOW).then_some(())?;
        let sql: Arc<str> = text.into();
        let tree = Tree::new(parsed, sql.clone());
        let depth = tree.depth().ok()?;
        let (mut uses, mut parameters, mut columns, mut by_key) = (vec![], vec![], None, None);
        if literals > 0 || !is_plain_control(&tree) {
            let recognised = by_key::recognise_literals(tree.statement(), catalog, literals)?;
            columns = recognised.0.columns();
            let permitted = recognised.0.permitted(acting, catalog)?;
            (by_key, uses, parameters) = (Some(Arc::new(permitted)), recognised.1, recognised.2);
        }
        let by_key = Mutex::new(by_key);
        let (statement, executes) = (Some(tree), None);
        let (entry, attached) = (OnceLock::new(), OnceLock::new());
        let (heavy, notices, generics) = (None, vec![], Generics::none());
        let prepared = Prepared {
            sql,
            parameters,
            columns,
            notices,
            statement,
            depth,
            by_key,
            generics,
            executes,
            heavy,
            entry,
            attached,
        };
        Some(Shape { prepared: Arc::new(prepared), uses })
    }

    fn values(&self, literals: &[ShapeLiteral<'_>]) -> Option<Vec<Datum>> {
        if literals.is_empty() {
            return Some(vec![]);
        }
        assert_eq!(self.uses.len(), literals.len(), "one text without literals, as many literals");
        let by_key = self.prepared.by_key.lock().clone()?;
        self.uses.iter().zip(literals).map(|(of, literal)| of.value(&by_key, literal)).collect()
    }
}
