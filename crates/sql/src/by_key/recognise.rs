//! Which statements run straight on the engine, and what they do.
//!
//! 1. A statement that says more than is understood here is left to the planner: each part of its tree is looked at.
//! 2. Every parameter of a recognised statement has a type: its column's.
//! 3. Values that are compared have the column's own type. Values that are assigned are converted by the same function
//!    as in planned statements.
mod joins;
mod outputs;
mod values;

use super::answer::{Output, Total};
use super::change::{Change, Insert as Inserted};
use super::rows::{Comparing, Rows};
use super::select::Select as Selected;
use super::values::{Cell, Given};
use super::{Action, ByKey};
use crate::parse::among;
use crate::parse::identity::Identity;
use crate::parse::locking;
use crate::plan::key_ranges::has_order;
use crate::values::{is_sequence, live_columns};
use std::ops::Range;
use std::sync::Arc;
use terrace_engine::types::Style;
use terrace_engine::{Action as ForeignAction, Among, Catalog, ColumnDef, DataType, Datum, ForeignKey, Index};
use terrace_engine::{LockWait, RelationName, RowLock, ScanDirection, Step, Table};
use terrace_grammar::statement::{
    Alias, Assignment, Body, Delete, Distinct, Expr, ExprKind, FromItem, Ident, Insert, Literal, Locking, Name, Query,
    Select, Statement, Update,
};
use values::limit_literal;

/// What a literal is for, by the number of the column that it meets; `negated`: there is a minus before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Use {
    place: Place,
    negated: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Compared(usize),
    Assigned(usize),
    Operand(usize),
    Limit,
    /// It is shown in the list.
    Shown,
}

/// The tables of a statement, in the order of FROM, and the parameters met. A column has a number among those of all of
/// them; of one table it is the column's own.
struct Scope<'a> {
    tables: Vec<Named<'a>>,
    /// The tables that may be named here.
    visible: Range<usize>,
    seen: &'a mut Seen,
}

/// A table, with the name its columns may be qualified by.
struct Named<'a> {
    table: &'a Arc<Table>,
    alias: &'a str,
    /// The number of its first column.
    first: usize,
}

/// The parameters met.
struct Seen {
    types: Vec<Option<DataType>>,
    /// As the client has stated them.
    stated: Vec<Option<DataType>>,
    /// Where the parameters stand for literals: what each is for.
    uses: Option<Vec<Option<Use>>>,
    now: bool,
}

/// A column, how it is compared, and with what.
type Comparison = (usize, Comparing, Given);

/// A part of a condition.
#[derive(Clone, Debug)]
enum Term {
    Given(Comparison),
    /// Two columns that are equal.
    Link(usize, usize),
}

/// `types`: the parameters' as stated; those of a recognised statement are completed.
pub(crate) fn recognise(statement: &Statement, catalog: &Catalog, types: &mut Vec<Option<DataType>>) -> Option<ByKey> {
    let mut seen = Seen { types: types.clone(), stated: types.clone(), uses: None, now: false };
    let by_key = by_key(statement, catalog, &mut seen)?;
    *types = seen.types;
    Some(by_key)
}

/// As `recognise`, for a text whose parameters stand for as many literals. Answers what they are for and their types.
pub(crate) fn recognise_literals(
    statement: &Statement,
    catalog: &Catalog,
    count: usize,
) -> Option<(ByKey, Vec<Use>, Vec<DataType>)> {
    let mut seen = Seen { types: vec![None; count], stated: vec![], uses: Some(vec![None; count]), now: false };
    let by_key = by_key(statement, catalog, &mut seen)?;
    let uses = seen.uses?.into_iter().collect::<Option<Vec<Use>>>()?;
    let types = seen.types.into_iter().collect::<Option<Vec<DataType>>>()?;
    assert_eq!((uses.len(), types.len()), (count, count), "invariant 2: a use and a type for each literal");
    Some((by_key, uses, types))
}

fn by_key(statement: &Statement, catalog: &Catalog, seen: &mut Seen) -> Option<ByKey> {
    let alone = |(table, action)| (vec![table], action);
    let (tables, action) = match statement {
        Statement::Query(query) => match &query.body {
            Body::Select(select) if matches!(select.from.as_slice(), [FromItem::Table { .. }]) => {
                self::select(query, catalog, seen).map(alone)
            }
            _ => joins::join(query, catalog, seen),
        },
        Statement::Insert(insert) => self::insert(insert, catalog, seen).map(alone),
        Statement::Update(update) => self::update(update, catalog, seen).map(alone),
        Statement::Delete(delete) => self::delete(delete, catalog, seen).map(alone),
        _ => None,
    }?;
    seen.types.iter().all(Option::is_some).then_some(())?;
    let (version, style) = (catalog.version(), Style::current());
    Some(ByKey { version, style, role: Arc::default(), uses_now: seen.now, tables, action })
}

fn update(update: &Update, catalog: &Catalog, seen: &mut Seen) -> Option<(Arc<Table>, Action)> {
    let Update { at: _, with: None, target, only: false, alias, set, from, filter: Some(filter), returning } = update
    else {
        return None;
    };
    from.is_empty().then_some(())?;
    let table = user_table(target, catalog)?;
    table.is_plain().then_some(())?;
    let mut scope = Scope::of(&table, called(target, alias.as_ref()), seen);
    let comparisons = scope.comparisons(filter)?;
    let rows = scope.rows(&comparisons)?;
    let mut sets = vec![];
    for (column, value) in assignments(set)? {
        let at = table.column(&column.name)?;
        (sets.iter().all(|(other, _): &(usize, _)| *other != at) && !is_always(&table, at)).then_some(())?;
        sets.push((at, scope.new_value(at, value)?));
    }
    let sets_key = |key: &ForeignKey| sets.iter().any(|(at, _)| key.key.contains(at));
    let changes_others = |key: &ForeignKey| changes_others(key.on_update) && sets_key(key);
    (!table.referenced_by.iter().any(|key| changes_others(key))).then_some(())?;
    let returning = scope.returning(returning)?;
    Some((table, Action::Change(Change { rows, sets: Some(sets), returning })))
}

fn changes_others(action: ForeignAction) -> bool {
    !matches!(action, ForeignAction::NoAction | ForeignAction::Restrict)
}

/// One column and value each; `(a, b) = (1, 2)` is taken apart.
fn assignments(set: &[Assignment]) -> Option<Vec<(&Ident, &Expr)>> {
    let mut all = vec![];
    for assignment in set {
        match assignment {
            Assignment::One { column, value } => all.push((column, value)),
            Assignment::Many { at: _, columns, value } => {
                let ExprKind::Row { fields, explicit: false } = &value.kind else { return None };
                (columns.len() == fields.len()).then_some(())?;
                all.extend(columns.iter().zip(fields));
            }
        }
    }
    Some(all)
}

fn delete(delete: &Delete, catalog: &Catalog, seen: &mut Seen) -> Option<(Arc<Table>, Action)> {
    let Delete { at: _, with: None, target, only: false, alias, using, filter: Some(filter), returning } = delete
    else {
        return None;
    };
    using.is_empty().then_some(())?;
    let table = user_table(target, catalog)?;
    (!table.referenced_by.iter().any(|key| changes_others(key.on_delete))).then_some(())?;
    let mut scope = Scope::of(&table, called(target, alias.as_ref()), seen);
    let comparisons = scope.comparisons(filter)?;
    let rows = scope.rows(&comparisons)?;
    let returning = scope.returning(returning)?;
    Some((table, Action::Change(Change { rows, sets: None, returning })))
}

fn insert(insert: &Insert, catalog: &Catalog, seen: &mut Seen) -> Option<(Arc<Table>, Action)> {
    let Insert {
        at: _,
        with: None,
        target,
        alias,
        columns,
        parts,
        overriding: None,
        source,
        place: _,
        conflict: None,
        returning,
    } = insert
    else {
        return None;
    };
    parts.iter().all(Vec::is_empty).then_some(())?;
    let rows = plain_values(source.as_ref()?)?;
    let table = user_table(target, catalog)?;
    table.is_plain().then_some(())?;
    let named = !columns.is_empty();
    let columns = inserted(columns, &table)?;
    (!columns.iter().any(|at| is_always(&table, *at))).then_some(())?;
    let mut scope = Scope::of(&table, called(target, alias.as_ref()), seen);
    let width = rows.first()?.len();
    (width == columns.len() || width < columns.len() && !named).then_some(())?;
    let columns = &columns[..width];
    // What a row has where VALUES says nothing.
    let mut rest = vec![Given::Constant(Datum::Null); table.columns.len()];
    for (at, _) in live_columns(&table).filter(|(at, _)| !columns.contains(at)) {
        rest[at] = scope.default(at)?;
    }
    let mut all = vec![];
    for row in rows {
        (row.len() == width).then_some(())?;
        let mut values = rest.clone();
        for (at, value) in columns.iter().zip(row) {
            values[*at] = scope.assigned(*at, value)?;
        }
        all.push(values);
    }
    let returning = scope.returning(returning)?;
    Some((table, Action::Insert(Inserted { rows: all, returning })))
}

/// Whether only its sequence gives the column values.
fn is_always(table: &Table, at: usize) -> bool {
    Identity::of(&table.columns[at]) == Some(Identity::Always)
}

/// Positions of the columns that values go to.
fn inserted(names: &[Ident], table: &Table) -> Option<Vec<usize>> {
    if names.is_empty() {
        return Some(live_columns(table).map(|(at, _)| at).collect());
    }
    let mut columns = vec![];
    for name in names {
        let at = table.column(&name.name)?;
        (!columns.contains(&at)).then_some(())?;
        columns.push(at);
    }
    Some(columns)
}

/// The rows of a source that is nothing but VALUES.
fn plain_values(source: &Query) -> Option<&Vec<Vec<Expr>>> {
    match source {
        Query { at: _, with: None, body: Body::Values(rows), order, limit: None, offset: None, locking, .. }
            if order.is_empty() && locking.is_empty() =>
        {
            Some(rows)
        }
        _ => None,
    }
}

fn select(query: &Query, catalog: &Catalog, seen: &mut Seen) -> Option<(Arc<Table>, Action)> {
    let Query { at: _, with: None, body: Body::Select(select), order: _, limit, with_ties, offset, locking } = query
    else {
        return None;
    };
    let Select { at: _, distinct, items, from, filter, group: None, having: None, windows } = select.as_ref() else {
        return None;
    };
    (windows.is_empty() && !with_ties).then_some(())?;
    let [FromItem::Table { name, only: false, alias }] = from.as_slice() else { return None };
    let alias = match alias {
        Some(Alias { name, columns }) if columns.is_empty() => Some(name),
        Some(_) => return None,
        None => None,
    };
    let table = user_table(name, catalog)?;
    let mut scope = Scope::of(&table, called(name, alias), seen);
    let comparisons = match filter {
        Some(filter) => Some(scope.comparisons(filter)?),
        None => None,
    };
    let lock = locks(locking, scope.tables[0].alias)?;
    let (output, names, schema) = scope.output(items)?;
    let distinct = match distinct {
        Distinct::No => false,
        Distinct::Rows => true,
        Distinct::On(_) => return None,
    };
    let sort = scope.sort(query, &output, &names)?;
    // Which of several equal values is shown is the general way's affair.
    (!distinct || !sort.iter().any(|(at, _)| differs_in_form(scope.data_type(*at)))).then_some(())?;
    let (limit, offset) = (scope.limit(limit.as_ref())?, scope.limit(offset.as_ref())?);
    // Rows that OFFSET leaves out are locked, too.
    (offset.is_none() || lock.is_none()).then_some(())?;
    let rows = match comparisons {
        Some(comparisons) => scope.rows(&comparisons)?,
        None => first_rows(&table, &output, &sort, limit.is_some() && !distinct)?,
    };
    let mut selected = Selected { rows, lock, sort, distinct, limit, offset, output, schema };
    selected.settle_order()?;
    selected.settle_end();
    Some((table, Action::Select(Box::new(selected))))
}

/// How rows are locked. The outer `None`: it is not plain.
fn locks(locking: &[Locking], table: &str) -> Option<Option<(RowLock, LockWait)>> {
    let Locking { at: _, strength, of, wait } = match locking {
        [] => return Some(None),
        [one] => one,
        _ => return None,
    };
    of.iter().all(|name| matches!(name.parts(), [name] if name.name == table)).then_some(())?;
    Some(Some(locking::stated(*strength, *wait)))
}

impl Selected {
    /// Lets the index sort where it can, and refuses what this cannot do.
    fn settle_order(&mut self) -> Option<()> {
        match &self.output {
            Output::Cells(cells) if self.distinct => {
                let columns: Vec<usize> = cells.iter().map(|cell| Some(cell.plain()?.0)).collect::<Option<_>>()?;
                let sorted = |at: &usize| self.sort.iter().any(|(by, _)| by == at);
                let shown = self.sort.iter().all(|(at, _)| columns.contains(at));
                let all = shown && columns.iter().all(sorted) && !cells.iter().any(|cell| cell.as_text);
                return (!self.sort.is_empty() && all && self.lock.is_none()).then_some(());
            }
            Output::Cells(_) => {}
            // One row, which nothing more may be said about.
            Output::Total(..) => {
                let whole = self.limit.is_none() && self.offset.is_none();
                let alone = self.sort.is_empty() && whole && !self.distinct && self.lock.is_none();
                return alone.then_some(());
            }
        }
        let after = &self.rows.index.columns[self.rows.prefix.len()..];
        let down = self.sort.first().is_some_and(|(_, down)| *down);
        let as_indexed = self.sort.len() <= after.len()
            && self.sort.iter().zip(after).all(|((at, d), column)| at == column && *d == down);
        if as_indexed || self.rows.one {
            self.sort.clear();
            self.rows.direction = if down { ScanDirection::Backward } else { ScanDirection::Forward };
        }
        Some(())
    }

    /// The least or greatest value of the column that the rows lie in order of is that of the first or last row.
    fn settle_end(&mut self) {
        let next = self.rows.index.keys().get(self.rows.prefix.len());
        self.rows.direction = match &self.output {
            Output::Total(Total::Least(at), _) if next == Some(at) => ScanDirection::Forward,
            Output::Total(Total::Greatest(at), _) if next == Some(at) => ScanDirection::Backward,
            _ => return,
        };
        self.rows.not_null = true;
        self.limit = Some(Given::Constant(Datum::Int8(1)));
    }
}

/// The first rows of a table in the order of an index, where nothing else is said of them: as many as LIMIT says, or
/// the one whose value an aggregate answers.
fn first_rows(table: &Table, output: &Output, sort: &[(usize, bool)], limited: bool) -> Option<Rows> {
    let wanted: Vec<usize> = match output {
        Output::Cells(_) if limited && !sort.is_empty() => sort.iter().map(|(at, _)| *at).collect(),
        Output::Total(Total::Least(at) | Total::Greatest(at), _) => vec![*at],
        _ => return None,
    };
    sort.iter().all(|(_, down)| *down == sort[0].1).then_some(())?;
    let index = table.indexes.iter().find(|index| index.keys().starts_with(&wanted))?.clone();
    let (prefix, direction) = (vec![], ScanDirection::Forward);
    Some(Rows { index, prefix, low: None, high: None, not_null: false, direction, one: false })
}

/// A user's table, named plainly. An unqualified name may be one of pg_catalog's, which come first; those begin with
/// pg_, and no user's table does.
fn user_table(name: &Name, catalog: &Catalog) -> Option<Arc<Table>> {
    let among = match name.parts() {
        // Relations of the system come first.
        [_] if catalog.steps().iter().any(|step| matches!(step, Step::System(of) if *of != "pg_catalog")) => {
            return None;
        }
        [_] => Among::All,
        [schema, _] => among(&schema.name)?,
        _ => return None,
    };
    catalog.table(&RelationName::new(among, name.last().name.as_str())).filter(|table| !is_sequence(table)).cloned()
}

/// What a table is called within its statement.
fn called<'n>(name: &'n Name, alias: Option<&'n Ident>) -> &'n str {
    &alias.unwrap_or(name.last()).name
}

impl<'a> Scope<'a> {
    /// One table's.
    fn of(table: &'a Arc<Table>, alias: &'a str, seen: &'a mut Seen) -> Scope<'a> {
        Scope { tables: vec![Named { table, alias, first: 0 }], visible: 0..1, seen }
    }

    /// The column's number, if only one table has it.
    fn column(&self, expr: &Expr) -> Option<usize> {
        let ExprKind::Column(name) = &expr.kind else { return None };
        let (alias, column) = match name.parts() {
            [column] => (None, column),
            [alias, column] => (Some(alias), column),
            _ => return None,
        };
        let called = |named: &&Named<'_>| alias.is_none_or(|alias| alias.name == named.alias);
        let tables = self.tables[self.visible.clone()].iter().filter(called);
        let mut found = tables.filter_map(|named| Some(named.first + named.table.column(&column.name)?));
        let at = found.next()?;
        found.next().is_none().then_some(at)
    }

    /// Which of the tables has the column, by its number in FROM.
    fn table_of(&self, at: usize) -> usize {
        self.tables.partition_point(|named| named.first <= at) - 1
    }

    fn definition(&self, at: usize) -> &'a ColumnDef {
        let Named { table, first, .. } = &self.tables[self.table_of(at)];
        &table.columns[at - first]
    }

    fn data_type(&self, at: usize) -> DataType {
        self.definition(at).data_type
    }

    /// A condition that is nothing but comparisons of columns with given values, all of which must hold.
    fn comparisons(&mut self, condition: &Expr) -> Option<Vec<Comparison>> {
        let mut found = vec![];
        self.terms(condition, &mut found)?;
        found.into_iter().map(|term| if let Term::Given(comparison) = term { Some(comparison) } else { None }).collect()
    }

    /// The same where columns may also be compared with each other. Adds them to those found.
    fn terms(&mut self, condition: &Expr, found: &mut Vec<Term>) -> Option<()> {
        let one = std::slice::from_ref(condition);
        let terms = if let ExprKind::And(terms) = &condition.kind { terms.as_slice() } else { one };
        for term in terms {
            match &term.kind {
                ExprKind::Binary { op, args } if op.schema.is_empty() => {
                    let [left, right] = args.as_ref();
                    let comparing = Comparing::of(&op.symbol)?;
                    let (at, comparing, value) = match (self.column(left), self.column(right)) {
                        (Some(at), None) => (at, comparing, right),
                        (None, Some(at)) => (at, comparing.swapped(), left),
                        (Some(a), Some(b)) if comparing == Comparing::Equal => {
                            found.push(Term::Link(a, b));
                            continue;
                        }
                        _ => return None,
                    };
                    found.push(Term::Given((at, comparing, self.compared(at, value)?)));
                }
                ExprKind::Between { args, negated: false, symmetric: false, word_at: _ } => {
                    let [value, low, high] = args.as_ref();
                    let at = self.column(value)?;
                    found.push(Term::Given((at, Comparing::GreaterEqual, self.compared(at, low)?)));
                    found.push(Term::Given((at, Comparing::LessEqual, self.compared(at, high)?)));
                }
                _ => return None,
            }
        }
        Some(())
    }

    /// Where the rows are that the comparisons choose, and no others.
    fn rows(&self, comparisons: &[Comparison]) -> Option<Rows> {
        let [Named { table, .. }] = self.tables.as_slice() else { return None };
        rows_of(table, comparisons)
    }

    /// The columns of ORDER BY, and whether downwards.
    fn sort(&self, query: &Query, output: &Output, names: &[String]) -> Option<Vec<(usize, bool)>> {
        if query.order.is_empty() {
            return Some(vec![]);
        }
        let Output::Cells(cells) = output else { return None };
        let mut sort: Vec<(usize, bool)> = vec![];
        for term in &query.order {
            (term.nulls.is_none() && term.using.is_none()).then_some(())?;
            // A name is an output column's first.
            let named = |name: &Ident| {
                let same = |(shown, cell): (&String, &Cell)| (*shown == name.name).then(|| cell.plain());
                names.iter().zip(cells).filter_map(same).collect::<Vec<Option<(usize, bool)>>>()
            };
            let at = match &term.expr.kind {
                ExprKind::Column(name) if name.parts().len() == 1 => match named(name.last()).as_slice() {
                    [] => self.column(&term.expr)?,
                    [Some((at, false))] => *at,
                    _ => return None,
                },
                _ => self.column(&term.expr)?,
            };
            has_order(self.data_type(at)).then_some(())?;
            sort.push((at, term.descending));
        }
        Some(sort)
    }

    /// The outer `None`: it is not plain.
    fn limit(&mut self, limit: Option<&Expr>) -> Option<Option<Given>> {
        let Some(limit) = limit else { return Some(None) };
        if let Some(parameter) = self.parameter(limit, DataType::Int8, Place::Limit) {
            return Some(Some(parameter));
        }
        limit_literal(literal(limit)?).map(|n| Some(Given::Constant(n)))
    }
}

fn literal(expr: &Expr) -> Option<&Literal> {
    if let ExprKind::Literal(literal) = &expr.kind { Some(literal) } else { None }
}

/// Where the rows of a table are that the comparisons of its columns choose, and no others.
fn rows_of(table: &Table, comparisons: &[Comparison]) -> Option<Rows> {
    key_of(table, comparisons).or_else(|| table.indexes.iter().find_map(|index| range_of(index, comparisons)))
}

/// The unique index whose columns the comparisons set equal to given values, all of them once, and nothing else.
fn key_of(table: &Table, comparisons: &[Comparison]) -> Option<Rows> {
    let equal = |column: usize| {
        let mut on = comparisons.iter().filter(move |(at, ..)| *at == column);
        match (on.next(), on.next()) {
            (Some((_, Comparing::Equal, given)), None) => Some(given.clone()),
            _ => None,
        }
    };
    let all = |index: &&Arc<Index>| {
        index.is_immediate()
            && index.columns.len() == comparisons.len()
            && index.columns.iter().all(|c| equal(*c).is_some())
    };
    let index = table.indexes.iter().find(all)?.clone();
    let prefix = index.columns.iter().map(|column| equal(*column)).collect::<Option<Vec<Given>>>()?;
    let direction = ScanDirection::Forward;
    Some(Rows { index, prefix, low: None, high: None, not_null: false, direction, one: true })
}

/// Equalities on the first columns, then at most two bounds on the next, and nothing else.
fn range_of(index: &Arc<Index>, comparisons: &[Comparison]) -> Option<Rows> {
    let mut left: Vec<&Comparison> = comparisons.iter().collect();
    let mut prefix = vec![];
    let mut columns = index.columns.iter().peekable();
    while let Some(column) = columns.peek() {
        let Some(at) = left.iter().position(|(c, op, _)| c == *column && *op == Comparing::Equal) else { break };
        prefix.push(left.remove(at).2.clone());
        columns.next();
    }
    let (mut low, mut high) = (None, None);
    for (at, op, given) in left {
        (Some(&at) == columns.peek()).then_some(())?;
        let (end, included) = match op {
            Comparing::Greater => (&mut low, false),
            Comparing::GreaterEqual => (&mut low, true),
            Comparing::Less => (&mut high, false),
            Comparing::LessEqual => (&mut high, true),
            Comparing::Equal => return None,
        };
        end.replace((given.clone(), included)).is_none().then_some(())?;
    }
    let narrowed = !prefix.is_empty() || low.is_some() || high.is_some();
    let (index, direction) = (index.clone(), ScanDirection::Forward);
    narrowed.then_some(Rows { index, prefix, low, high, not_null: false, direction, one: false })
}

impl Comparing {
    /// Only comparisons that an index serves.
    fn of(symbol: &str) -> Option<Comparing> {
        Some(match symbol {
            "=" => Comparing::Equal,
            "<" => Comparing::Less,
            "<=" => Comparing::LessEqual,
            ">" => Comparing::Greater,
            ">=" => Comparing::GreaterEqual,
            _ => return None,
        })
    }

    /// With its sides exchanged.
    fn swapped(self) -> Comparing {
        match self {
            Comparing::Equal => Comparing::Equal,
            Comparing::Less => Comparing::Greater,
            Comparing::LessEqual => Comparing::GreaterEqual,
            Comparing::Greater => Comparing::Less,
            Comparing::GreaterEqual => Comparing::LessEqual,
        }
    }
}

/// Whether values of the type that are equal may look different.
fn differs_in_form(data_type: DataType) -> bool {
    matches!(data_type, DataType::Float4 | DataType::Float8 | DataType::Numeric(None) | DataType::Interval)
}

fn is_integer(data_type: DataType) -> bool {
    matches!(data_type, DataType::Int4 | DataType::Int8)
}
