//! From the tree of a query to DataFusion's logical plan, as PostgreSQL reads the query: names, joins, grouping,
//! windows and orders are bound here, and DataFusion meets columns whose names cannot be mistaken.
//!
//! 1. No two columns of a plan are called the same: what a query computes is called by its title and a number, with a
//!    NUL between them ([`naming`]); a relation whose name another one has got is told from it in the same way. No name
//!    a user can write contains a NUL.
//! 2. The titles that a client is shown travel beside the plan ([`Bound`]). What stands before the NUL is the title
//!    too, for those who show a plan's schema.
//! 3. A name is resolved once, by its place in the text ([`scope`]).
//! 4. What no arm takes is [`Fault::Unsupported`] and never passed over: it is refused (0A000).
//! 5. AND, OR and UNION are flat until they are bound; then they are halved again and again.
//! 6. An expression's type is settled when it is bound ([`types`]), by the same rules that settle whole plans.
//!
//! Rooms: [`bounds`], [`query`] (WITH, sets, LIMIT), [`select`] with [`group`], [`windows`] and [`unnest`], [`from`],
//! [`views`], [`through`], [`reads`], [`scope`], [`expr`] with [`rows`], [`types`], [`call`], [`json`], [`sequences`],
//! [`effects`], [`subquery`] with [`memberships`], [`system`] for the system's relations and types, and
//! [`over`] for expressions outside of queries.
mod arrays;
mod beside;
pub(crate) mod bounds;
mod call;
mod composites;
mod effects;
mod expr;
mod frames;
mod from;
mod group;
mod group_queries;
mod hints;
mod json;
mod json_parts;
mod limit;
mod memberships;
mod named;
mod outer_aggregates;
pub(crate) mod over;
mod procedures;
mod query;
pub(crate) mod reads;
mod records;
mod rows;
mod scope;
mod select;
mod sequences;
mod sets;
mod starts;
mod subquery;
mod system;
mod through;
mod types;
mod unnest;
mod untold;
mod untyped;
mod views;
mod windows;
mod within_group;

use crate::error::from_datafusion;
use crate::parse::depth::{OF_DEFAULT, depth};
use crate::parse::sequence_calls::Call;
use crate::plan::naming::{self, shown};
use crate::plan::origins::{self, Origins};
use crate::plan::planner::Planner;
use datafusion::common::DataFusionError;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{Expr, LogicalPlan};
use scope::Ctes;
pub(crate) use sequences::Place;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
pub(crate) use system::system_oid;
use terrace_engine::types::Style;
use terrace_engine::{DataType, EngineError, Table};
use terrace_grammar::Parsed;
use terrace_grammar::statement::{self as tree, At, ExprKind, Literal, Query, Statement};
pub(crate) use views::{Defined, define};

/// Why a query was not bound.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It is wrong, or Terrace cannot carry it out. The place is a byte of the text.
    Wrong { error: Box<EngineError>, at: Option<At> },
    /// No arm takes it (invariant 4).
    Unsupported(&'static str),
}

pub(crate) type Result<T> = std::result::Result<T, Fault>;

fn wrong<T>(at: At, state: &'static str, message: impl Into<String>) -> Result<T> {
    fail(at, EngineError::new(state, message))
}

fn fail<T>(at: At, error: EngineError) -> Result<T> {
    Err(Fault::Wrong { error: Box::new(error), at: Some(at) })
}

fn unsupported<T>(what: &'static str) -> Result<T> {
    Err(Fault::Unsupported(what))
}

impl Fault {
    /// As it is told to the client. `text`: what places are places of.
    pub(crate) fn error(self, text: Option<&str>) -> EngineError {
        match (self, text) {
            (Fault::Wrong { error, at: Some(at) }, Some(text)) if error.position.is_none() => {
                error.at(text, at as usize)
            }
            (Fault::Wrong { error, .. }, _) => *error,
            (Fault::Unsupported(what), _) => crate::error::unsupported(what),
        }
    }
}

impl From<DataFusionError> for Fault {
    fn from(error: DataFusionError) -> Fault {
        Fault::Wrong { error: Box::new(from_datafusion(error)), at: None }
    }
}

impl From<EngineError> for Fault {
    fn from(error: EngineError) -> Fault {
        Fault::Wrong { error: Box::new(error), at: None }
    }
}

/// Says where what failed stands.
trait Placed<T> {
    /// What is wrong with a value that is computed (class 22) stands nowhere.
    fn at(self, at: At) -> Result<T>;

    /// Of a constant that is read as a value.
    fn at_value(self, at: At) -> Result<T>;

    /// What is wrong with a value stands at the constant in quotes among these.
    fn at_value_of(self, args: &[&tree::Expr]) -> Result<T>
    where
        Self: Sized,
    {
        let text = args.iter().find(|arg| matches!(arg.kind, ExprKind::Literal(Literal::Text(_))));
        match text {
            Some(text) => self.at_value(text.at),
            None => self.at_nowhere(),
        }
    }

    fn at_nowhere(self) -> Result<T>;
}

impl<T, E: Into<Fault>> Placed<T> for std::result::Result<T, E> {
    fn at(self, at: At) -> Result<T> {
        self.map_err(|error| match error.into() {
            Fault::Wrong { error, at: None } if !is_of_value(&error) => Fault::Wrong { error, at: Some(at) },
            fault => fault,
        })
    }

    fn at_value(self, at: At) -> Result<T> {
        self.map_err(|error| match error.into() {
            Fault::Wrong { error, at: None } if is_of_value(&error) => Fault::Wrong { error, at: Some(at) },
            fault => fault,
        })
    }

    fn at_nowhere(self) -> Result<T> {
        self.map_err(Into::into)
    }
}

fn is_of_value(error: &EngineError) -> bool {
    error.state.0.starts_with("22")
}

/// A statement as it was parsed, with its text.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    parsed: Arc<Parsed>,
    text: Arc<str>,
    /// It is the statement within a PREPARE.
    prepared: bool,
    /// What was made of it.
    made: Option<Arc<Statement>>,
    style: Style,
}

impl Tree {
    pub(crate) fn new(parsed: Parsed, text: Arc<str>) -> Tree {
        Tree { parsed: Arc::new(parsed), text, prepared: false, made: None, style: Style::current() }
    }

    /// The statement that a PREPARE keeps.
    pub(crate) fn of_prepared(&self) -> Option<Tree> {
        let prepares = matches!(self.parsed.statement(), Statement::Prepare(_)) && !self.prepared;
        prepares.then(|| Tree { prepared: true, ..self.clone() })
    }

    /// The same text, of which another statement was made.
    pub(crate) fn made(&self, statement: Statement) -> Tree {
        Tree { made: Some(Arc::new(statement)), ..self.clone() }
    }

    pub(crate) fn statement(&self) -> &Statement {
        if let Some(made) = &self.made {
            return made;
        }
        match self.parsed.statement() {
            Statement::Prepare(prepare) if self.prepared => &prepare.statement,
            statement => statement,
        }
    }

    /// Where the statement stands in the text.
    pub(crate) fn place(&self) -> Range<At> {
        match self.parsed.statement() {
            Statement::Prepare(prepare) if self.prepared => prepare.place.clone(),
            _ => self.parsed.range.start as At..self.parsed.range.end as At,
        }
    }

    /// The time zone of when it was parsed: its constants are read in it, however late it runs.
    pub(crate) fn style(&self) -> Style {
        self.style
    }

    /// What places in the tree are places of.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// A bound on the levels of the statement, and of the defaults that it may evaluate.
    pub(crate) fn depth(&self) -> terrace_engine::Result<usize> {
        let own = depth(&self.parsed)?;
        Ok(match self.statement() {
            Statement::Insert(_) | Statement::Update(_) | Statement::Copy(_) | Statement::Explain(_) => {
                own + OF_DEFAULT
            }
            _ => own,
        })
    }
}

/// A query that is bound.
pub(crate) struct Bound {
    pub(crate) plan: LogicalPlan,
    /// Of its columns, by position.
    pub(crate) titles: Vec<String>,
}

impl Bound {
    fn new(plan: LogicalPlan, titles: Vec<String>) -> Bound {
        let fields = plan.schema().fields();
        assert_eq!(fields.len(), titles.len(), "every column has a title (invariant 2)");
        let called = fields.iter().zip(&titles).all(|(field, title)| shown(field.name()) == title);
        assert!(called, "a column's name begins with its title (invariant 2)");
        Bound { plan, titles }
    }
}

/// A query that is bound, and the user's tables that it reads.
pub(crate) struct Whole {
    pub(crate) bound: Bound,
    pub(crate) tables: Vec<Arc<Table>>,
    /// Where its columns come from.
    pub(crate) origins: Origins,
    /// What of these, and of views, it names.
    pub(crate) reads: Vec<reads::Read>,
    /// It reads a relation of the system.
    pub(crate) of_system: bool,
    /// The functions of sequences that it calls, in the order of their places.
    pub(crate) calls: Vec<(Place, Call)>,
}

/// Binds a query. `types`: of its parameters, as far as they are known.
pub(crate) fn bind(planner: &Planner<'_>, query: &Query, types: &[Option<DataType>]) -> Result<Whole> {
    let query = &*sequences::without_rows(query);
    settled(planner, types, |binder| {
        binder.note_calls(query);
        binder.query(query, None, &Ctes::none())
    })
}

/// Binds once, and again where a parameter's type was learnt too late.
fn settled(
    planner: &Planner<'_>,
    types: &[Option<DataType>],
    bind: impl Fn(&Binder<'_>) -> Result<Bound>,
) -> Result<Whole> {
    let mut known = types.to_vec();
    loop {
        let binder = Binder::new(planner, known);
        let bound = bind(&binder)?;
        binder.note_parameters(&bound.plan)?;
        binder.refuse_untold(true)?;
        if binder.effects.get() {
            effects::refuse_conditional(&bound.plan)?;
            effects::refuse_unread(&bound.plan)?;
        }
        let origins = origins::of(&bound.plan, &binder.origins.borrow());
        let Binder { types, tables, reads, mistaken, of_system, calls, .. } = binder;
        if !mistaken.get() {
            let mut calls = calls.into_inner();
            // What is bound twice is called once.
            calls.sort_by_key(|(place, _)| *place);
            calls.dedup_by_key(|(place, _)| *place);
            let (tables, reads) = (tables.into_inner(), reads.into_all());
            return Ok(Whole { bound, tables, origins, reads, of_system: of_system.get(), calls });
        }
        // A parameter's type was told by what stands behind another of its places: that one is bound again.
        known = types.into_inner();
    }
}

/// What is known while one query is bound.
struct Binder<'b> {
    planner: &'b Planner<'b>,
    /// How many columns have been named.
    named: Cell<usize>,
    /// Names that relations have got.
    relations: RefCell<BTreeSet<String>>,
    /// Of parameters, the first at 0.
    types: RefCell<Vec<Option<DataType>>>,
    /// Parameters that were bound without a type.
    open: RefCell<BTreeSet<usize>>,
    /// Whether one of them has got a type since.
    mistaken: Cell<bool>,
    /// Those of which was asked whether they are NULL before they had a type; whether a clause before was bound.
    untold: RefCell<BTreeMap<usize, bool>>,
    tables: RefCell<Vec<Arc<Table>>>,
    /// Tables and views, by their names in the plan, with what their columns are.
    origins: RefCell<origins::Relations>,
    reads: reads::Reads,
    /// Whether a relation of the system was named.
    of_system: Cell<bool>,
    /// Functions of sequences, and where.
    calls: RefCell<Vec<(Place, Call)>>,
    /// Where they are called once.
    called_once: RefCell<BTreeSet<Place>>,
    /// Of which text places are: 0 is the statement's, and the others are defaults'.
    text: Cell<usize>,
    texts: Cell<usize>,
    bounds: bounds::Bounds,
    views: views::Views,
    /// Whether a function was called for what it does ([`effects`]).
    effects: Cell<bool>,
}

impl<'b> Binder<'b> {
    fn new(planner: &'b Planner<'b>, types: Vec<Option<DataType>>) -> Binder<'b> {
        Binder {
            planner,
            named: Cell::new(0),
            relations: RefCell::default(),
            types: RefCell::new(types),
            open: RefCell::default(),
            mistaken: Cell::new(false),
            untold: RefCell::default(),
            tables: RefCell::default(),
            origins: RefCell::default(),
            reads: reads::Reads::default(),
            of_system: Cell::new(false),
            calls: RefCell::default(),
            called_once: RefCell::default(),
            text: Cell::new(0),
            texts: Cell::new(0),
            bounds: bounds::Bounds::default(),
            views: views::Views::default(),
            effects: Cell::new(false),
        }
    }

    fn number(&self) -> usize {
        let number = self.named.get();
        self.named.set(number + 1);
        number
    }

    /// The name of a column that is computed (invariant 1).
    fn column_name(&self, title: &str) -> String {
        naming::numbered(title, self.number())
    }

    /// The name of a relation that the query calls so.
    fn relation_name(&self, own: &str) -> String {
        let mut names = self.relations.borrow_mut();
        if names.insert(own.to_owned()) {
            return own.to_owned();
        }
        let name = naming::numbered(own, self.number());
        let fresh = names.insert(name.clone());
        assert!(fresh, "a number is given once");
        name
    }

    fn type_of(&self, number: usize) -> Option<DataType> {
        let of = self.types.borrow().get(number - 1).copied().flatten();
        of.map(|of| self.planner.catalog.type_now(of))
    }

    /// A parameter's type is known now; the first one stays.
    fn settle_parameter(&self, number: usize, of: DataType) {
        let mut types = self.types.borrow_mut();
        if types.len() < number {
            types.resize(number, None);
        }
        if types[number - 1].is_none() {
            types[number - 1] = Some(of);
            if self.open.borrow().contains(&number) {
                self.mistaken.set(true);
            }
        }
    }

    /// Learns the types that parameters have got in the plan.
    fn note_parameters(&self, plan: &LogicalPlan) -> Result<()> {
        if self.open.borrow().is_empty() {
            return Ok(());
        }
        let mut differs = false;
        plan.apply_with_subqueries(|node| {
            node.apply_expressions(|expr| {
                expr.apply(|expr| {
                    if let Expr::Placeholder(Placeholder { id, field: Some(field) }) = expr
                        && let Some(number) = id.strip_prefix('$').and_then(|n| n.parse().ok())
                        && let Some(of) = crate::values::parameter_type(field)
                    {
                        self.settle_parameter(number, of);
                        // The first place tells the type; behind it, it is converted.
                        differs |= self.type_of(number) != Some(of) && self.open.borrow().contains(&number);
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        // One that stands at one place only has its type there.
        let twice = differs || self.stands_open(plan)?;
        self.mistaken.set(self.mistaken.get() && twice);
        Ok(())
    }

    /// Whether a parameter whose type is known stands somewhere without it.
    fn stands_open(&self, plan: &LogicalPlan) -> Result<bool> {
        let mut found = false;
        plan.apply_with_subqueries(|node| {
            node.apply_expressions(|expr| {
                expr.apply(|expr| {
                    if let Expr::Placeholder(Placeholder { id, field: None }) = expr {
                        let number = id.strip_prefix('$').and_then(|n| n.parse().ok());
                        found |= number.is_some_and(|number| self.type_of(number).is_some());
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        Ok(found)
    }
}
