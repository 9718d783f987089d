//! Expressions outside of queries: what UPDATE and DELETE change, what RETURNING answers, constraints, defaults, VALUES
//! of an INSERT, rows that are locked.
//!
//! 1. They are bound over one table, as [`Rows`] says, and what stands in FROM or USING beside it.
//! 2. The plan's columns are what [`Wanted`] lists, in its order; before them stand a target's address and version, and
//!    the addresses of the tables beside it.
//! 3. Aggregates, windows and, in what the catalogue keeps, subqueries and parameters are refused.
use super::composites::Becomes;
use super::from::{Relation, Source};
use super::query::{Around, parameter_number};
use super::reads::Read;
use super::scope::{Clause, Ctes, Scope};
use super::select::Order;
use super::through::Seen;
use super::{Binder, Bound, Fault, Placed, Result, Whole, fail, settled, wrong};
use crate::functions::convert::{assigned, is_open};
use crate::parse::constants::constant;
use crate::parse::stored;
use crate::parse::titles;
use crate::plan::planner::Planner;
use crate::plan::scan::{RID, TableScan, UNDO, WRITER};
use crate::through::{Called, Level, Through};
use crate::values::{check_assignable, live_columns};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, ScalarValue, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlanBuilder, Volatility, lit, when};
use std::sync::Arc;
use terrace_engine::{ColumnDef, DataType, EngineError, Table};
use terrace_grammar::statement::{self as tree, ExprKind, FromItem, Ident, Item, JoinKind, JoinOn, Sort, With};

/// Which rows of the table are meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rows {
    /// Those of the table.
    All,
    /// The same, to be changed or locked: with addresses and versions.
    Target,
    /// Those that the statement is given.
    Given,
    /// A target, and the row `excluded` that it is in conflict with.
    Conflict,
    /// One row without columns: the table is not read.
    None,
}

/// Which part of a statement it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    Update,
    Delete,
    Returning,
    Check,
    /// GENERATED ALWAYS AS.
    Generated,
    /// COPY FROM ... WHERE.
    Copied,
    Default,
    Values,
    /// SELECT ... FOR UPDATE.
    Locking,
}

/// A column of the plan.
pub(crate) enum Wanted<'q> {
    /// All columns of the table, one after the other.
    Row,
    /// An item of a list; `*` is written out.
    Item(&'q Item),
    /// What a column becomes.
    Value { column: &'q ColumnDef, value: &'q tree::Expr },
    /// The default of a column, NULL where it has none.
    Default(&'q ColumnDef),
    /// NULL, in the place of what a column gets later.
    Null(&'q ColumnDef),
    /// A constraint, or which rows are wanted.
    Condition(&'q tree::Expr),
    /// Columns of what stands in FROM or USING which these items name, those of the source in its order.
    Beside(&'q [Item]),
    /// The number of the first condition of WITH CHECK OPTION that is not met, the innermost view's coming first; NULL
    /// where all are met.
    Options,
}

/// What is to be bound.
pub(crate) struct Over<'q> {
    pub(crate) table: &'q Arc<Table>,
    /// What the statement calls the table.
    pub(crate) called: &'q Called,
    pub(crate) rows: Rows,
    pub(crate) part: Part,
    pub(crate) with: Option<&'q With>,
    /// FROM of UPDATE, USING of DELETE.
    pub(crate) from: &'q [FromItem],
    /// The rows that are given, with the columns of what stood in FROM or USING beside each ([`Wanted::Beside`]):
    /// RETURNING is over these.
    pub(crate) given: Option<&'q [RecordBatch]>,
    /// Tables beside the first of a query that locks rows. Their rows' addresses are columns, too.
    pub(crate) beside: &'q [Beside<'q>],
    pub(crate) filter: Option<&'q tree::Expr>,
    pub(crate) order: &'q [Sort],
    pub(crate) wanted: Vec<Wanted<'q>>,
    /// Places in it are not places in the statement's text: the catalogue keeps it.
    pub(crate) kept: bool,
}

/// A table that is joined to those before it.
pub(crate) struct Beside<'q> {
    pub(crate) table: Arc<Table>,
    pub(crate) called: Ident,
    pub(crate) kind: JoinKind,
    pub(crate) on: &'q JoinOn,
    /// Its number, if it is a target, too: its rows' versions are columns as well.
    pub(crate) target: Option<usize>,
}

/// What rows are of.
struct Target {
    source: Source,
    /// The table's own columns.
    row: Vec<(String, Expr)>,
    /// The conditions of the views through which it is seen, with their numbers.
    conditions: Vec<(usize, Expr)>,
}

/// Binds it. `types`: of the statement's parameters, as far as they are known.
pub(crate) fn bind_over(planner: &Planner<'_>, over: &Over<'_>, types: &[Option<DataType>]) -> Result<Whole> {
    settled(planner, types, |binder| match over.kept {
        true => unplaced(binder.within_kept(|| binder.bound_over(over))),
        false => binder.bound_over(over),
    })
}

impl<'q> Wanted<'q> {
    fn item(&self) -> Option<&'q Item> {
        match self {
            Wanted::Item(item) => Some(item),
            _ => None,
        }
    }
}

impl Part {
    fn clause(self) -> Clause {
        match self {
            Part::Update | Part::Delete => Clause::Update,
            Part::Returning => Clause::Returning,
            Part::Check => Clause::Check,
            Part::Generated => Clause::Generated,
            Part::Copied => Clause::Copied,
            Part::Default => Clause::Default,
            Part::Values => Clause::Values,
            Part::Locking => Clause::Locking,
        }
    }
}

impl Binder<'_> {
    fn bound_over(&self, over: &Over<'_>) -> Result<Bound> {
        let ctes = Ctes::none();
        if let Some(with) = over.with {
            self.with(with, None, &ctes)?;
        }
        let around = Around { scope: None, ctes: &ctes };
        let Target { mut source, row, conditions } = self.rows_over(over)?;
        let own = source.plan.schema().fields().len();
        for item in over.from {
            let right = self.beside_target(item, &source, around)?;
            source = self.joined(source, right, JoinKind::Cross, &JoinOn::Nothing, around)?;
        }
        let mut addressed = vec![];
        for beside in over.beside {
            let right = self.beside(beside)?;
            let named: &[&str] = if beside.target.is_some() { &[RID, WRITER, UNDO] } else { &[RID] };
            let table = right.plan.schema().qualified_field(0).0.cloned();
            addressed.extend(named.iter().map(|name| Column::new(table.clone(), *name)));
            source = self.joined(source, right, beside.kind, beside.on, around)?;
        }
        let scope = Scope::new(&source, None, &ctes);
        let mut plan = LogicalPlanBuilder::from(source.plan.clone());
        for (_, condition) in conditions.iter().filter(|_| matches!(over.rows, Rows::Target | Rows::All)) {
            plan = plan.filter(condition.clone())?;
        }
        if let Some(filter) = over.filter {
            plan = plan.filter(scope.within(Clause::Where, || self.condition(filter, "WHERE", &scope))?)?;
        }
        let mut exprs: Vec<Expr> = vec![];
        if matches!(over.rows, Rows::Target | Rows::Conflict) {
            let table = source.plan.schema().qualified_field(0).0.cloned();
            exprs.extend([RID, WRITER, UNDO].map(|name| Expr::Column(Column::new(table.clone(), name))));
        }
        exprs.extend(addressed.into_iter().map(Expr::Column));
        let addresses = exprs.len();
        let mut titles = vec![String::new(); addresses];
        scope.within(over.part.clause(), || {
            over.wanted.iter().try_for_each(|wanted| match wanted {
                Wanted::Row => {
                    titles.extend(row.iter().map(|(name, _)| name.clone()));
                    exprs.extend(row.iter().map(|(_, column)| column.clone()));
                    Ok(())
                }
                Wanted::Options => {
                    titles.push(String::new());
                    exprs.push(options(over, &conditions)?);
                    Ok(())
                }
                Wanted::Beside(items) => {
                    let named = self.beside_named(*items, own, &scope)?;
                    exprs.extend(named.into_iter().map(|at| Expr::Column(scope.schema.columns().swap_remove(at))));
                    titles.resize(exprs.len(), String::new());
                    Ok(())
                }
                wanted => self.wanted(wanted, &scope, &mut titles, &mut exprs),
            })
        })?;
        if !over.order.is_empty() {
            let items = titles.iter().cloned().zip(exprs.iter().cloned()).skip(addresses);
            let items: Vec<(String, Expr)> = items.collect();
            let by = scope.within(over.part.clause(), || self.order_over(over.order, &items, &scope))?;
            plan = plan.sort(by)?;
        }
        if let Some(given) = over.given {
            let named = self.beside_named(over.wanted.iter().filter_map(Wanted::item), own, &scope)?;
            plan = LogicalPlanBuilder::from(self.stood_beside(&source.plan, (0..own).chain(named), given)?);
        }
        let columns = self.called(&titles, exprs);
        Ok(Bound::new(plan.project(columns)?.build()?, titles))
    }

    /// A table beside a target, with the addresses of its rows.
    fn beside(&self, Beside { table, called, target, .. }: &Beside<'_>) -> Result<Source> {
        let usable = self.planner.without_unusable(table);
        let scan = match target {
            Some(number) => TableScan::target_beside(usable, *number),
            None => TableScan::addressed(usable),
        };
        let made = self.scanned(scan, &called.name, table)?;
        let reading = self.note_relation(Read::of_table(table, true));
        self.note_offered(reading, &made, live_columns(table).map(|(at, _)| at));
        Ok(made)
    }

    fn order_over(
        &self,
        order: &[Sort],
        items: &[(String, Expr)],
        scope: &Scope<'_>,
    ) -> Result<Vec<datafusion::logical_expr::expr::Sort>> {
        let by = order.iter().map(|key| {
            let expr = match self.output(&key.expr, items, Clause::Order)? {
                Some(item) => item,
                None => self.expr(&key.expr, scope)?,
            };
            Ok(Order::of(key)?.sort(expr))
        });
        by.collect()
    }

    /// Invariant 1.
    fn rows_over(&self, over: &Over<'_>) -> Result<Target> {
        let table = || self.planner.without_unusable(over.table);
        let given = || TableScan::given(over.table.clone());
        let called = over.called.name.as_str();
        let target = |scan: TableScan, called: &str| self.target(over, scan, called);
        match over.rows {
            Rows::None => Ok(Target { source: Source::nothing()?, row: vec![], conditions: vec![] }),
            Rows::All => target(TableScan::new(table()), called),
            Rows::Given => target(given(), called),
            Rows::Target => target(TableScan::target(table()), called),
            Rows::Conflict => {
                let made = target(TableScan::target(table()), called)?;
                let mut excluded = target(given(), "excluded")?.source;
                excluded.relations[0].table_oid = None;
                let around = Around { scope: None, ctes: &Ctes::none() };
                // A table may be called so, too: then neither may be named so.
                let name = std::mem::take(&mut excluded.relations[0].name);
                let mut source = self.joined(made.source, excluded, JoinKind::Cross, &JoinOn::Nothing, around)?;
                source.relations[1].name = name;
                Ok(Target { source, ..made })
            }
        }
    }

    /// A table of the statement, as it is seen.
    fn target(&self, over: &Over<'_>, scan: TableScan, called: &str) -> Result<Target> {
        let source = self.scanned(scan, called, over.table)?;
        let row = source.relations[0].columns.clone();
        let Some(through) = &over.called.through else {
            self.note_target(over, &source);
            return Ok(Target { source, row, conditions: vec![] });
        };
        self.note_view(through, over.table, &source);
        // Rows that are given need not meet the conditions, but where that is asked.
        let asked = over.wanted.iter().any(|wanted| matches!(wanted, Wanted::Options));
        let conditioned = asked || matches!(over.rows, Rows::Target | Rows::All);
        let Seen { source, conditions } = self.seen(source, over.table, (through, called), conditioned)?;
        Ok(Target { source, row, conditions })
    }

    /// What a view's columns are to clients, where they are the table's.
    fn note_view(&self, through: &Through, table: &Table, source: &Source) {
        let Some((Some(name), _)) = source.plan.schema().iter().next() else { return };
        let origin = |at: usize| {
            let number = through.up(0, &[at]).first().copied()?;
            i16::try_from(number + 1).ok().map(|number| (through.view().oid.0, number))
        };
        let origins = live_columns(table).map(|(at, _)| origin(at)).collect();
        self.origins.borrow_mut().insert(name.table().to_owned(), origins);
    }

    /// What a statement changes is read where its columns are named, and what it locks in any case. Of what the
    /// catalogue keeps nothing is.
    fn note_target(&self, over: &Over<'_>, source: &Source) {
        let listed = match over.part {
            Part::Locking => true,
            Part::Update | Part::Delete | Part::Returning | Part::Copied => false,
            Part::Check | Part::Generated | Part::Default | Part::Values => return,
        };
        let reading = self.note_relation(Read::of_table(over.table, listed));
        self.note_offered(reading, source, live_columns(over.table).map(|(at, _)| at));
    }

    /// A table of FROM: what it offers are its own columns, not those that are hidden.
    pub(super) fn scanned(&self, scan: TableScan, called: &str, table: &Arc<Table>) -> Result<Source> {
        let provider: Arc<dyn TableProvider> = Arc::new(scan);
        let name = self.relation_name(called);
        let live: Vec<usize> = live_columns(table).map(|(at, _)| at).collect();
        self.note_origins(&name, table.oid.0, live.iter().copied());
        let name = TableReference::bare(name);
        let plan = LogicalPlanBuilder::scan(name, provider_as_source(provider), None)?.build()?;
        let key = table.primary_key().filter(|index| index.is_immediate()).map(|index| &index.columns);
        let key = key.and_then(|key| key.iter().map(|column| live.iter().position(|at| at == column)).collect());
        let columns = plan.schema().columns().into_iter().take(live.len());
        let columns = columns.map(|column| (column.name.clone(), Expr::Column(column))).collect();
        let never_null = plan.schema().fields().iter().take(live.len()).position(|field| !field.is_nullable());
        let hidden = (table.name != called).then(|| table.name.clone());
        let schemas = if table.name == called { self.schemas_of(table.space) } else { vec![] };
        let name = called.to_owned();
        let relation = Relation {
            name,
            schemas,
            hidden,
            columns,
            key: key.unwrap_or_default(),
            never_null,
            padded: false,
            table_oid: Some(lit(table.oid.0)),
            in_join: false,
            value: false,
        };
        Ok(Source::of(plan, relation))
    }

    /// What the columns of a relation in the plan are: those of a table or a view, by position there.
    pub(super) fn note_origins(&self, name: &str, oid: u32, positions: impl Iterator<Item = usize>) {
        let number = |at: usize| i16::try_from(at + 1).ok().map(|number| (oid, number));
        self.origins.borrow_mut().insert(name.to_owned(), positions.map(number).collect());
    }

    pub(super) fn wanted(
        &self,
        wanted: &Wanted<'_>,
        scope: &Scope<'_>,
        titles: &mut Vec<String>,
        exprs: &mut Vec<Expr>,
    ) -> Result<()> {
        assert_eq!(titles.len(), exprs.len(), "invariant 2: a column has a title");
        match wanted {
            Wanted::Row | Wanted::Options | Wanted::Beside(_) => unreachable!("they are no expressions"),
            Wanted::Item(item) if matches!(item.expr.kind, ExprKind::Star(_) | ExprKind::AllFields(_)) => {
                let (names, columns) = self.items(std::slice::from_ref(item), scope)?;
                titles.extend(names);
                exprs.extend(columns);
            }
            Wanted::Item(item) => {
                titles.push(titles::title(item));
                exprs.push(self.expr(&item.expr, scope)?);
            }
            Wanted::Value { column, value } => {
                titles.push(column.name.clone());
                self.note_calls_of(value);
                exprs.push(self.value_of(column, value, scope)?);
            }
            Wanted::Default(column) | Wanted::Null(column) => {
                titles.push(column.name.clone());
                let default = column.default().filter(|_| matches!(wanted, Wanted::Default(_)));
                let stored = stored::of_default(default.unwrap_or("NULL"))?;
                self.texts.set(self.texts.get() + 1);
                let around = self.text.replace(self.texts.get());
                self.note_calls_of(stored.expr());
                let bound = unplaced(self.within_kept(|| self.value_of(column, stored.expr(), scope)));
                self.text.set(around);
                exprs.push(bound?);
            }
            Wanted::Condition(condition) => {
                titles.push(String::new());
                let of = if scope.clause.get() == Clause::Copied { "WHERE" } else { "CHECK" };
                exprs.push(self.condition(condition, of, scope)?);
            }
        }
        Ok(())
    }

    /// A value that a column can take. 42804
    fn value_of(&self, column: &ColumnDef, value: &tree::Expr, scope: &Scope<'_>) -> Result<Expr> {
        if let ExprKind::Parameter(number) = value.kind {
            self.settle_parameter(parameter_number(number)?, column.data_type);
        }
        if let Some(row) = self.written_as(value, column.data_type, Becomes::Assigned, scope).at(value.at)? {
            return Ok(row);
        }
        if let ExprKind::WithField { arg, field, value } = &value.kind {
            return self.with_field_of((arg, Some(column)), field, value, scope);
        }
        let bound = self.expr(value, scope)?;
        let of = if is_open(&bound) { ArrowType::Null } else { bound.get_type(&scope.schema)? };
        check_assignable(&of, column, false).at(value.at)?;
        if let Some(read) = constant(value, column).filter(|_| scope.clause.get() == Clause::Update) {
            read.at_value(value.at)?; // Where no row is changed, too.
        }
        Ok(if scope.clause.get() == Clause::Update { assigned_constant(bound, column.data_type) } else { bound })
    }
}

/// A constant as the column takes it: what does not fit fails when the statement is planned. A literal is read before.
pub(crate) fn assigned_constant(value: Expr, to: DataType) -> Expr {
    let varies = |part: &Expr| match part {
        Expr::Literal(..) | Expr::Cast(_) | Expr::BinaryExpr(_) | Expr::Case(_) => false,
        Expr::ScalarFunction(call) => call.func.signature().volatility != Volatility::Immutable,
        _ => true,
    };
    let depends = value.exists(|part| Ok(varies(part))).unwrap_or(true);
    if is_open(&value) || depends { value } else { assigned(value, to) }
}

/// The number of the first condition that WITH CHECK OPTION asks for and a row does not meet, the innermost view's
/// first: those behind it are not evaluated.
fn options(over: &Over<'_>, conditions: &[(usize, Expr)]) -> Result<Expr> {
    let of = |level: &Level| {
        let mut own = conditions.iter();
        let through = over.called.through.as_ref()?;
        own.find(|(number, _)| std::ptr::eq(&through.levels[*number], level)).map(|(_, condition)| condition.clone())
    };
    let checked = over.called.through.iter().flat_map(|through| through.checked(false));
    let all: Vec<Expr> = checked.map(|level| of(level).expect("a view that is checked has a condition")).collect();
    let mut all = (0i32..).zip(all).map(|(number, condition)| (condition.is_not_true(), lit(number)));
    let Some((first, number)) = all.next() else { return Ok(lit(ScalarValue::Int32(None))) };
    let case = all.fold(when(first, number), |mut case, (condition, number)| {
        case.when(condition, number);
        case
    });
    Ok(case.end()?)
}

/// What fails in a text that the catalogue keeps has no place in the statement's.
fn unplaced<T>(result: Result<T>) -> Result<T> {
    result.map_err(|fault| match fault {
        Fault::Wrong { error, .. } => Fault::Wrong { error, at: None },
        fault => fault,
    })
}

/// Of a column in an expression that may have none.
pub(super) fn no_column<T>(at: tree::At) -> Result<T> {
    fail(at, EngineError::new("0A000", "cannot use column reference in DEFAULT expression"))
}

/// Invariant 3, of subqueries.
pub(super) fn refuse_subquery(clause: Clause, at: tree::At) -> Result<()> {
    match clause {
        Clause::Check => wrong(at, "0A000", "cannot use subquery in check constraint"),
        Clause::Generated => wrong(at, "0A000", "cannot use subquery in column generation expression"),
        Clause::Copied => wrong(at, "0A000", "cannot use subquery in COPY FROM WHERE condition"),
        Clause::Default => wrong(at, "0A000", "cannot use subquery in DEFAULT expression"),
        _ => Ok(()),
    }
}
