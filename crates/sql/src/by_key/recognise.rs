//! Which statements run straight on the engine, and what they do.
//!
//! 1. A statement that says more than is understood here is left to the planner: each part of its tree is looked at.
//! 2. Every parameter of a recognised statement has a type: its column's.
//! 3. Values that are compared have the column's own type. Values that are assigned are converted by the same function
//!    as in planned statements.
use super::range::{Output, Range};
use super::{Action, Arithmetic, ByKey, Given, Key, NewValue};
use crate::parse::among;
use crate::parse::constants::{constant, of_literal};
use crate::parse::identity::Identity;
use crate::parse::stored::Stored;
use crate::plan::origins::Origins;
use crate::values::{field_of, is_sequence, live_columns};
use datafusion::arrow::datatypes::Schema;
use std::sync::Arc;
use terrace_engine::types::Style;
use terrace_engine::{Action as ForeignAction, Among, Catalog, ColumnDef, DataType, Datum, ForeignKey, Index};
use terrace_engine::{RelationName, ScanDirection, Step, Table};
use terrace_grammar::statement::{
    Alias, Assignment, Body, Call, Delete, Distinct, Expr, ExprKind, FromItem, Ident, Insert, Item, Literal, Name,
    Query, Select, SpecialFunction, Statement, Update,
};
use terrace_grammar::{ShapeKind, ShapeLiteral};

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
}

/// The table of a statement, with the name its columns may be qualified by.
struct Scope<'a> {
    table: &'a Arc<Table>,
    alias: &'a str,
    seen: &'a mut Seen,
}

/// The parameters met.
struct Seen {
    types: Vec<Option<DataType>>,
    /// Where the parameters stand for literals: what each is for.
    uses: Option<Vec<Option<Use>>>,
    now: bool,
}

/// How a column is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Comparing {
    Equal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// A column, how it is compared, and with what.
type Comparison = (usize, Comparing, Given);

/// `types`: the parameters' as stated; those of a recognised statement are completed.
pub(crate) fn recognise(statement: &Statement, catalog: &Catalog, types: &mut Vec<Option<DataType>>) -> Option<ByKey> {
    let mut seen = Seen { types: types.clone(), uses: None, now: false };
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
    let mut seen = Seen { types: vec![None; count], uses: Some(vec![None; count]), now: false };
    let by_key = by_key(statement, catalog, &mut seen)?;
    let uses = seen.uses?.into_iter().collect::<Option<Vec<Use>>>()?;
    let types = seen.types.into_iter().collect::<Option<Vec<DataType>>>()?;
    assert_eq!((uses.len(), types.len()), (count, count), "invariant 2: a use and a type for each literal");
    Some((by_key, uses, types))
}

fn by_key(statement: &Statement, catalog: &Catalog, seen: &mut Seen) -> Option<ByKey> {
    let (table, action) = match statement {
        Statement::Query(query) => select(query, catalog, seen),
        Statement::Insert(insert) => self::insert(insert, catalog, seen),
        Statement::Update(update) => self::update(update, catalog, seen),
        Statement::Delete(delete) => self::delete(delete, catalog, seen),
        _ => None,
    }?;
    seen.types.iter().all(Option::is_some).then_some(())?;
    let (version, style) = (catalog.version(), Style::current());
    Some(ByKey { version, style, role: Arc::default(), uses_now: seen.now, table, action })
}

fn update(update: &Update, catalog: &Catalog, seen: &mut Seen) -> Option<(Arc<Table>, Action)> {
    let Update { at: _, with: None, target, only: false, alias, set, from, filter: Some(filter), returning } = update
    else {
        return None;
    };
    (from.is_empty() && returning.is_empty()).then_some(())?;
    let table = user_table(target, catalog)?;
    table.is_plain().then_some(())?;
    let mut scope = Scope { table: &table, alias: called(target, alias.as_ref()), seen };
    let key = scope.key(filter)?;
    let mut sets: Vec<(usize, NewValue)> = vec![];
    for (column, value) in assignments(set)? {
        let at = table.column(&column.name)?;
        (sets.iter().all(|(other, _)| *other != at) && !is_always(&table, at)).then_some(())?;
        sets.push((at, scope.new_value(at, value)?));
    }
    let sets_key = |key: &ForeignKey| sets.iter().any(|(at, _)| key.key.contains(at));
    let changes_others = |key: &ForeignKey| changes_others(key.on_update) && sets_key(key);
    (!table.referenced_by.iter().any(|key| changes_others(key))).then_some(())?;
    Some((table, Action::Update { key, sets }))
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
    (using.is_empty() && returning.is_empty()).then_some(())?;
    let table = user_table(target, catalog)?;
    (!table.referenced_by.iter().any(|key| changes_others(key.on_delete))).then_some(())?;
    let key = Scope { table: &table, alias: called(target, alias.as_ref()), seen }.key(filter)?;
    Some((table, Action::Delete { key }))
}

fn insert(insert: &Insert, catalog: &Catalog, seen: &mut Seen) -> Option<(Arc<Table>, Action)> {
    let Insert {
        at: _,
        with: None,
        target,
        alias: _,
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
    (returning.is_empty() && parts.iter().all(Vec::is_empty)).then_some(())?;
    let rows = plain_values(source.as_ref()?)?;
    let table = user_table(target, catalog)?;
    table.is_plain().then_some(())?;
    let named = !columns.is_empty();
    let columns = inserted(columns, &table)?;
    (!columns.iter().any(|at| is_always(&table, *at))).then_some(())?;
    let mut scope = Scope { table: &table, alias: "", seen };
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
    Some((table, Action::Insert { rows: all }))
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

/// Where the result's columns come from.
fn origins_of(table: &Table, output: &Output) -> Origins {
    let number = |at: &usize| i16::try_from(at + 1).ok().map(|number| (table.oid.0, number));
    match output {
        Output::Columns(columns) => Origins::new(columns.iter().map(number)),
        _ => Origins::default(),
    }
}

fn select(query: &Query, catalog: &Catalog, seen: &mut Seen) -> Option<(Arc<Table>, Action)> {
    let Query { at: _, with: None, body: Body::Select(select), order, limit, with_ties: false, offset: None, locking } =
        query
    else {
        return None;
    };
    let Select { at: _, distinct, items, from, filter: Some(filter), group: None, having: None, windows } =
        select.as_ref()
    else {
        return None;
    };
    (locking.is_empty() && windows.is_empty()).then_some(())?;
    let [FromItem::Table { name, only: false, alias }] = from.as_slice() else { return None };
    let alias = match alias {
        Some(Alias { name, columns }) if columns.is_empty() => Some(name),
        Some(_) => return None,
        None => None,
    };
    let table = user_table(name, catalog)?;
    let mut scope = Scope { table: &table, alias: called(name, alias), seen };
    let comparisons = scope.comparisons(filter)?;
    let (output, names, types) = scope.output(items)?;
    let fields = names.iter().zip(types).map(|(name, t)| field_of(name, t, true));
    let schema = origins_of(&table, &output).put(Arc::new(Schema::new(fields.collect::<Vec<_>>())));
    let distinct = match distinct {
        Distinct::No => false,
        Distinct::Rows => true,
        Distinct::On(_) => return None,
    };
    let alone = order.is_empty() && limit.is_none() && !distinct;
    match (scope.full_key(&comparisons), output) {
        (Some(key), Output::Columns(columns)) if alone => Some((table, Action::Select { key, columns, schema })),
        (_, output) => {
            let sort = scope.sort(query, &output, &names)?;
            let limit = scope.limit(limit.as_ref())?;
            let (index, prefix, low, high) = scope.bounds(&comparisons)?;
            let mut range = Range {
                index,
                prefix,
                low,
                high,
                direction: ScanDirection::Forward,
                sort,
                distinct,
                limit,
                output,
                schema,
            };
            range.settle_order()?;
            Some((table, Action::Range(Box::new(range))))
        }
    }
}

impl Range {
    /// Lets the index sort where it can, and refuses what this cannot do.
    fn settle_order(&mut self) -> Option<()> {
        match &self.output {
            Output::Columns(columns) if self.distinct => {
                let sorted = |at: &usize| self.sort.iter().any(|(by, _)| by == at);
                let shown = self.sort.iter().all(|(at, _)| columns.contains(at));
                return (!self.sort.is_empty() && shown && columns.iter().all(sorted)).then_some(());
            }
            Output::Columns(_) => {}
            // One row, which nothing more may be said about.
            _ => return (self.sort.is_empty() && self.limit.is_none() && !self.distinct).then_some(()),
        }
        let after = &self.index.columns[self.prefix.len()..];
        let down = self.sort.first().is_some_and(|(_, down)| *down);
        let as_indexed = self.sort.len() <= after.len()
            && self.sort.iter().zip(after).all(|((at, d), column)| at == column && *d == down);
        if as_indexed {
            self.sort.clear();
            self.direction = if down { ScanDirection::Backward } else { ScanDirection::Forward };
        }
        Some(())
    }
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

impl Scope<'_> {
    fn column(&self, expr: &Expr) -> Option<usize> {
        let ExprKind::Column(name) = &expr.kind else { return None };
        match name.parts() {
            [column] => self.table.column(&column.name),
            [table, column] if table.name == self.alias => self.table.column(&column.name),
            _ => None,
        }
    }

    fn data_type(&self, at: usize) -> DataType {
        self.table.columns[at].data_type
    }

    /// A condition that is nothing but comparisons of columns with given values, all of which must hold.
    fn comparisons(&mut self, condition: &Expr) -> Option<Vec<Comparison>> {
        let mut found = vec![];
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
                        _ => return None,
                    };
                    found.push((at, comparing, self.compared(at, value)?));
                }
                ExprKind::Between { args, negated: false, symmetric: false, word_at: _ } => {
                    let [value, low, high] = args.as_ref();
                    let at = self.column(value)?;
                    found.push((at, Comparing::GreaterEqual, self.compared(at, low)?));
                    found.push((at, Comparing::LessEqual, self.compared(at, high)?));
                }
                _ => return None,
            }
        }
        Some(found)
    }

    fn key(&mut self, condition: &Expr) -> Option<Key> {
        let comparisons = self.comparisons(condition)?;
        self.full_key(&comparisons)
    }

    /// The unique index whose columns the comparisons set equal to given values, all of them once, and nothing else.
    fn full_key(&self, comparisons: &[Comparison]) -> Option<Key> {
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
        let index = self.table.indexes.iter().find(all)?.clone();
        let values = index.columns.iter().map(|column| equal(*column)).collect::<Option<Vec<Given>>>()?;
        Some(Key { index, values })
    }

    /// The index of whose entries the comparisons choose one range, and its bounds.
    fn bounds(&self, comparisons: &[Comparison]) -> Option<Bounds> {
        self.table.indexes.iter().find_map(|index| bounds_of(index, comparisons))
    }

    /// A value that is compared: exactly of the column's type, or of none yet.
    fn compared(&mut self, at: usize, value: &Expr) -> Option<Given> {
        let data_type = match self.data_type(at) {
            DataType::Varchar(0) => DataType::Text,
            other => other,
        };
        // Equality of floats is DataFusion's affair; literals of varchar(n) would be cut to length.
        let plain = [DataType::Bool, DataType::Int4, DataType::Int8, DataType::Text, DataType::Timestamp];
        plain.contains(&data_type).then_some(())?;
        if let Some(parameter) = self.parameter(value, data_type, Place::Compared(at)) {
            return Some(parameter);
        }
        compared_literal(self.table, at, literal(value)?).map(Given::Constant)
    }

    /// A parameter whose type is this, or (but as an operand) another integer's where this is one, or open: then it is
    /// this from now on.
    fn parameter(&mut self, value: &Expr, data_type: DataType, place: Place) -> Option<Given> {
        let (value, negated) = match &value.kind {
            ExprKind::Unary { op, arg }
                if self.seen.uses.is_some() && op.schema.is_empty() && op.symbol.as_str() == "-" =>
            {
                (arg.as_ref(), true)
            }
            _ => (value, false),
        };
        let ExprKind::Parameter(number) = value.kind else { return None };
        // More parameters than the protocol can carry do not get a place.
        let at = (number as usize).checked_sub(1).filter(|at| *at < 65_535)?;
        if self.seen.types.len() <= at {
            self.seen.types.resize(at + 1, None);
        }
        let is = *self.seen.types[at].get_or_insert(data_type);
        // Some drivers state bigint for every integer: what does not fit then takes the general way.
        let integer = |t: DataType| matches!(t, DataType::Int2 | DataType::Int4 | DataType::Int8);
        let converted = integer(is) && integer(data_type) && !matches!(place, Place::Operand(_));
        (is == data_type || converted).then_some(())?;
        if let Some(uses) = &mut self.seen.uses {
            uses[at] = Some(Use { place, negated });
        }
        Some(Given::Parameter(at, data_type))
    }

    fn default(&mut self, at: usize) -> Option<Given> {
        let column = &self.table.columns[at];
        let Some(sql) = column.default() else { return Some(Given::Constant(Datum::Null)) };
        let default = Stored::read(sql)?;
        match self.now(at, default.expr()) {
            Some(now) => Some(now),
            None => Some(Given::Constant(constant(default.expr(), column)?.ok()?)),
        }
    }

    /// The transaction's time, where the column is a timestamp.
    fn now(&mut self, at: usize, value: &Expr) -> Option<Given> {
        let is_now = match &value.kind {
            ExprKind::Special { function: SpecialFunction::CurrentTimestamp, args } => args.is_empty(),
            ExprKind::Call(call) => is_plain(call) && called_plainly(call, "now") && call.args.is_empty() && !call.star,
            _ => false,
        };
        (is_now && self.data_type(at) == DataType::Timestamp).then_some(())?;
        self.seen.now = true;
        Some(Given::Now)
    }

    /// A value that is given to a column and depends on no row.
    fn assigned(&mut self, at: usize, value: &Expr) -> Option<Given> {
        if matches!(value.kind, ExprKind::Default) {
            return self.default(at);
        }
        if let Some(parameter) = self.parameter(value, self.data_type(at), Place::Assigned(at)) {
            return Some(parameter);
        }
        if let Some(now) = self.now(at, value) {
            return Some(now);
        }
        Some(Given::Constant(constant(value, &self.table.columns[at])?.ok()?))
    }

    fn new_value(&mut self, at: usize, value: &Expr) -> Option<NewValue> {
        let to = self.data_type(at);
        match &value.kind {
            ExprKind::Binary { op, args } if op.schema.is_empty() => {
                let op = match op.symbol.as_str() {
                    "+" => Arithmetic::Add,
                    "-" => Arithmetic::Subtract,
                    "*" => Arithmetic::Multiply,
                    _ => return None,
                };
                let [left, right] = args.as_ref();
                let (operand, given, flipped) = match (self.column(left), self.column(right)) {
                    (Some(operand), None) => (operand, right, false),
                    (None, Some(operand)) => (operand, left, true),
                    _ => return None,
                };
                // Integers stay integers and floats floats: no rounding in between. An int4 that becomes an int8 would
                // hide that int4 overflows.
                let from = self.data_type(operand);
                let fits = match from {
                    DataType::Float8 | DataType::Int4 => to == from,
                    DataType::Int8 => is_integer(to),
                    _ => false,
                };
                fits.then_some(())?;
                let value = self.operand(given, operand)?;
                Some(NewValue::Computed { column: operand, op, value, flipped })
            }
            ExprKind::Column(_) => {
                let other = self.column(value)?;
                let from = self.data_type(other);
                let integers = is_integer(from) && is_integer(to);
                (integers || from == to).then_some(NewValue::Column(other))
            }
            _ => self.assigned(at, value).map(NewValue::Given),
        }
    }

    /// A number beside a column in arithmetic.
    fn operand(&mut self, value: &Expr, column: usize) -> Option<Given> {
        match self.parameter(value, self.data_type(column), Place::Operand(column)) {
            Some(parameter) => Some(parameter),
            None => operand_literal(self.table, column, literal(value)?).map(Given::Constant),
        }
    }

    /// What is shown, with names and types.
    fn output(&self, items: &[Item]) -> Option<(Output, Vec<String>, Vec<DataType>)> {
        if let [Item { expr: Expr { kind: ExprKind::Call(call), .. }, alias }] = items {
            let name = alias.as_ref().unwrap_or(call.name.last()).name.clone();
            return Some((self.aggregate(call)?, vec![name], vec![DataType::Int8]));
        }
        let (mut columns, mut names) = (vec![], vec![]);
        for Item { expr, alias } in items {
            if let ExprKind::Star(None) = &expr.kind {
                for (at, column) in live_columns(self.table) {
                    columns.push(at);
                    names.push(column.name.clone());
                }
                continue;
            }
            let at = self.column(expr)?;
            columns.push(at);
            names.push(alias.as_ref().map_or(&self.table.columns[at].name, |alias| &alias.name).clone());
        }
        let types = columns.iter().map(|at| self.data_type(*at)).collect();
        Some((Output::Columns(columns), names, types))
    }

    /// `count(*)`, or the `sum` of an int4 column.
    fn aggregate(&self, call: &Call) -> Option<Output> {
        is_plain(call).then_some(())?;
        if called_plainly(call, "count") && call.star {
            return Some(Output::Count);
        }
        let [argument] = call.args.as_slice() else { return None };
        (called_plainly(call, "sum") && !call.star && argument.name.is_none()).then_some(())?;
        let at = self.column(&argument.value)?;
        (self.data_type(at) == DataType::Int4).then_some(Output::Sum(at))
    }

    /// The columns of ORDER BY, and whether downwards.
    fn sort(&self, query: &Query, output: &Output, names: &[String]) -> Option<Vec<(usize, bool)>> {
        if query.order.is_empty() {
            return Some(vec![]);
        }
        let Output::Columns(columns) = output else { return None };
        let mut sort: Vec<(usize, bool)> = vec![];
        for term in &query.order {
            (term.nulls.is_none() && term.using.is_none()).then_some(())?;
            // A name is an output column's first.
            let named = |name: &Ident| {
                let same = |(shown, at): (&String, &usize)| (*shown == name.name).then_some(*at);
                names.iter().zip(columns).filter_map(same).collect::<Vec<usize>>()
            };
            let at = match &term.expr.kind {
                ExprKind::Column(name) if name.parts().len() == 1 => match named(name.last()).as_slice() {
                    [] => self.column(&term.expr)?,
                    [at] => *at,
                    _ => return None,
                },
                _ => self.column(&term.expr)?,
            };
            let ordered = matches!(
                self.data_type(at),
                DataType::Bool
                    | DataType::Int4
                    | DataType::Int8
                    | DataType::Text
                    | DataType::Varchar(_)
                    | DataType::Timestamp
            );
            ordered.then_some(())?;
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

/// A call with nothing but arguments.
fn is_plain(call: &Call) -> bool {
    let Call { name: _, args: _, star: _, distinct, variadic, order, within, filter, over } = call;
    !distinct && !variadic && order.is_empty() && within.is_empty() && filter.is_none() && over.is_none()
}

fn called_plainly(call: &Call, function: &str) -> bool {
    matches!(call.name.parts(), [name] if name.name == function)
}

fn literal(expr: &Expr) -> Option<&Literal> {
    if let ExprKind::Literal(literal) = &expr.kind { Some(literal) } else { None }
}

type Bounds = (Arc<Index>, Vec<Given>, Option<(Given, bool)>, Option<(Given, bool)>);

/// Equalities on the first columns, then at most two bounds on the next, and nothing else.
fn bounds_of(index: &Arc<Index>, comparisons: &[Comparison]) -> Option<Bounds> {
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
    narrowed.then(|| (index.clone(), prefix, low, high))
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

fn is_integer(data_type: DataType) -> bool {
    matches!(data_type, DataType::Int4 | DataType::Int8)
}

fn compared_literal(table: &Table, at: usize, literal: &Literal) -> Option<Datum> {
    let column: &ColumnDef = &table.columns[at];
    let fits = match literal {
        Literal::Int(_) => is_integer(column.data_type),
        Literal::Text(_) => matches!(column.data_type, DataType::Text | DataType::Varchar(0)),
        Literal::Bool(_) => column.data_type == DataType::Bool,
        Literal::Null | Literal::Number(_) | Literal::Bits { .. } => false,
    };
    fits.then_some(())?;
    of_literal(literal, column)?.ok()
}

fn operand_literal(table: &Table, at: usize, literal: &Literal) -> Option<Datum> {
    let column = &table.columns[at];
    match (column.data_type, literal) {
        (DataType::Float8, Literal::Int(_) | Literal::Number(_)) => of_literal(literal, column)?.ok(),
        // As PostgreSQL types it.
        (DataType::Int4 | DataType::Int8, Literal::Int(value)) => {
            Some(i32::try_from(*value).map_or(Datum::Int8(*value), Datum::Int4))
        }
        _ => None,
    }
}

fn limit_literal(literal: &Literal) -> Option<Datum> {
    match literal {
        Literal::Int(count @ 0..) => Some(Datum::Int8(*count)),
        _ => None,
    }
}

impl Use {
    /// The literal's value as the parameter that stands for it; `None` where the statement with it is the general
    /// way's.
    pub(crate) fn value(self, by_key: &ByKey, literal: &ShapeLiteral<'_>) -> Option<Datum> {
        let sign = if self.negated { "-" } else { "" };
        let literal = match literal.kind {
            ShapeKind::Integer | ShapeKind::Number => {
                let text = format!("{sign}{}", literal.value);
                text.parse().map_or_else(|_| Literal::Number(text), Literal::Int)
            }
            ShapeKind::Text if !self.negated => Literal::Text(literal.value.clone().into_owned()),
            ShapeKind::Text | ShapeKind::Other => return None,
        };
        match self.place {
            Place::Compared(at) => compared_literal(&by_key.table, at, &literal),
            Place::Assigned(at) => of_literal(&literal, &by_key.table.columns[at])?.ok(),
            Place::Limit => limit_literal(&literal),
            Place::Operand(at) => {
                let datum = operand_literal(&by_key.table, at, &literal)?;
                match (by_key.table.columns[at].data_type, datum) {
                    (DataType::Int4, Datum::Int8(v)) => i32::try_from(v).ok().map(Datum::Int4),
                    (_, datum) => Some(datum),
                }
            }
        }
    }
}
