//! Which statements run straight on the engine, and what they do.
//!
//! 1. A statement that says more than is understood here is left to the planner. To be sure, a query is built again
//!    from what was understood, and must be equal to the statement.
//! 2. Every parameter of a recognised statement has a type: its column's.
//! 3. Values that are compared have the column's own type. Values that are assigned are converted by the same function
//!    as in planned statements.
use super::range::{Output, Range};
use super::{Action, Arithmetic, ByKey, Given, Key, Literal, NewValue};
use crate::parse::{fold, type_parameter};
use crate::plan::changes::{
    check_count, delete_target, insert_columns, insert_target, is_default, literal, plain_values, update_target,
};
use crate::plan::naming::shown;
use crate::values::{field_of, is_sequence, live_columns};
use datafusion::arrow::datatypes::Schema;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Delete, Distinct, Expr, FromTable, FunctionArguments, Ident, Insert, LimitClause, ObjectName,
    OrderByKind, Query, SelectItem, SetExpr, Statement, TableAlias, TableFactor, UnaryOperator, Update, Value,
};
use std::sync::Arc;
use terrace_engine::types::Zone;
use terrace_engine::{Catalog, DataType, Datum, Index, ScanDirection, Table};

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
    alias: String,
    seen: &'a mut Seen,
}

/// The parameters met.
struct Seen {
    types: Vec<Option<DataType>>,
    /// Where the parameters stand for literals: what each is for.
    uses: Option<Vec<Option<Use>>>,
    now: bool,
}

/// A column, how it is compared, and with what.
type Comparison = (usize, BinaryOperator, Given);

/// `types`: the parameters' as stated; those of a recognised statement are completed.
pub(crate) fn recognise(ast: &Statement, catalog: &Catalog, types: &mut Vec<Option<DataType>>) -> Option<ByKey> {
    let mut seen = Seen { types: types.clone(), uses: None, now: false };
    let by_key = by_key(ast, catalog, &mut seen)?;
    *types = seen.types;
    Some(by_key)
}

/// As `recognise`, for a text whose parameters stand for as many literals. Answers what they are for and their types.
pub(crate) fn recognise_literals(
    ast: &Statement,
    catalog: &Catalog,
    count: usize,
) -> Option<(ByKey, Vec<Use>, Vec<DataType>)> {
    let mut seen = Seen { types: vec![None; count], uses: Some(vec![None; count]), now: false };
    let by_key = by_key(ast, catalog, &mut seen)?;
    let uses = seen.uses?.into_iter().collect::<Option<Vec<Use>>>()?;
    let types = seen.types.into_iter().collect::<Option<Vec<DataType>>>()?;
    assert_eq!((uses.len(), types.len()), (count, count), "invariant 2: a use and a type for each literal");
    Some((by_key, uses, types))
}

fn by_key(ast: &Statement, catalog: &Catalog, seen: &mut Seen) -> Option<ByKey> {
    let (table, action) = match ast {
        Statement::Query(query) => select(query, catalog, seen),
        Statement::Insert(insert) => self::insert(insert, catalog, seen),
        Statement::Update(update) => self::update(update, catalog, seen),
        Statement::Delete(delete) => self::delete(delete, catalog, seen),
        _ => None,
    }?;
    seen.types.iter().all(Option::is_some).then_some(())?;
    Some(ByKey { version: catalog.version(), zone: Zone::current(), uses_now: seen.now, table, action })
}

fn update(update: &Update, catalog: &Catalog, seen: &mut Seen) -> Option<(Arc<Table>, Action)> {
    update_target(update).ok()?;
    (update.from.is_none() && update.returning.is_none()).then_some(())?;
    let (table, alias) = plain_table(&update.table.relation, catalog)?;
    table.checks.is_empty().then_some(())?;
    let mut scope = Scope { table: &table, alias, seen };
    let key = scope.key(update.selection.as_ref()?)?;
    let mut sets: Vec<(usize, NewValue)> = vec![];
    for (column, value) in crate::plan::changes::assignments(&update.assignments).ok()? {
        let at = table.column(&fold(&column))?;
        sets.iter().all(|(other, _)| *other != at).then_some(())?;
        sets.push((at, scope.new_value(at, &value)?));
    }
    Some((table, Action::Update { key, sets }))
}

fn delete(delete: &Delete, catalog: &Catalog, seen: &mut Seen) -> Option<(Arc<Table>, Action)> {
    delete_target(delete).ok()?;
    (delete.using.is_none() && delete.returning.is_none()).then_some(())?;
    let FromTable::WithFromKeyword(from) = &delete.from else { return None };
    let (table, alias) = plain_table(&from.first()?.relation, catalog)?;
    let key = Scope { table: &table, alias, seen }.key(delete.selection.as_ref()?)?;
    Some((table, Action::Delete { key }))
}

fn insert(insert: &Insert, catalog: &Catalog, seen: &mut Seen) -> Option<(Arc<Table>, Action)> {
    (insert.returning.is_none() && insert.on.is_none()).then_some(())?;
    let table = catalog.table(&insert_target(insert).ok()?)?.clone();
    (!is_sequence(&table)).then_some(())?;
    table.checks.is_empty().then_some(())?;
    let columns = insert_columns(insert, &table).ok()?;
    let rows = plain_values(insert.source.as_deref()?)?;
    let mut scope = Scope { table: &table, alias: String::new(), seen };
    let width = rows.first()?.len();
    check_count(width, &columns, !insert.columns.is_empty()).ok()?;
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

fn select(query: &Query, catalog: &Catalog, seen: &mut Seen) -> Option<(Arc<Table>, Action)> {
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    // Rebuilt from what is understood (invariant 1).
    let mut plain = crate::parse::parse_one("SELECT 1").ok()??;
    if let Statement::Query(plain_query) = &mut plain
        && let SetExpr::Select(plain_select) = plain_query.body.as_mut()
    {
        plain_select.projection = select.projection.clone();
        plain_select.from = select.from.clone();
        plain_select.selection = select.selection.clone();
        plain_select.distinct = select.distinct.clone();
        plain_query.order_by = query.order_by.clone();
        plain_query.limit_clause = query.limit_clause.clone();
        if plain_query.as_ref() != query {
            return None;
        }
    }
    let [from] = select.from.as_slice() else { return None };
    from.joins.is_empty().then_some(())?;
    let (table, alias) = plain_table(&from.relation, catalog)?;
    let mut scope = Scope { table: &table, alias, seen };
    let comparisons = scope.comparisons(select.selection.as_ref()?)?;
    let (output, names, types) = scope.output(&select.projection)?;
    let fields = names.iter().zip(types).map(|(name, t)| field_of(shown(name), t, true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let distinct = match select.distinct {
        None => false,
        Some(Distinct::Distinct) => true,
        Some(_) => return None,
    };
    let alone = query.order_by.is_none() && query.limit_clause.is_none() && !distinct;
    match (scope.full_key(&comparisons), output) {
        (Some(key), Output::Columns(columns)) if alone => Some((table, Action::Select { key, columns, schema })),
        (_, output) => {
            let sort = scope.sort(query, &output, &names)?;
            let limit = scope.limit(query)?;
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

/// A user's table, named plainly: nothing but a name in `public` and an alias without columns.
fn plain_table(factor: &TableFactor, catalog: &Catalog) -> Option<(Arc<Table>, String)> {
    let TableFactor::Table { name, alias, .. } = factor else { return None };
    let plain = match alias {
        Some(TableAlias { name: alias, .. }) => format!("SELECT 1 FROM {name} AS {alias}"),
        None => format!("SELECT 1 FROM {name}"),
    };
    let Statement::Query(plain) = crate::parse::parse_one(&plain).ok()?? else { return None };
    let plain = match *plain.body {
        SetExpr::Select(mut select) => select.from.pop()?.relation,
        _ => return None,
    };
    // AS may be written or not.
    if plain.to_string().replace(" AS ", " ") != factor.to_string().replace(" AS ", " ") {
        return None;
    }
    let folded = public_name(name)?;
    let alias = alias.as_ref().map_or_else(|| folded.clone(), |a| fold(&a.name));
    let table = catalog.table(&folded).filter(|table| !is_sequence(table))?;
    Some((table.clone(), alias))
}

/// An unqualified name may be one of pg_catalog's, which come first; those begin with pg_, and no user's table does.
fn public_name(name: &ObjectName) -> Option<String> {
    let parts: Vec<String> = name.0.iter().map(|p| p.as_ident().map(fold)).collect::<Option<_>>()?;
    match parts.as_slice() {
        [table] => Some(table.clone()),
        [schema, table] if schema == "public" => Some(table.clone()),
        _ => None,
    }
}

impl Scope<'_> {
    fn column(&self, expr: &Expr) -> Option<usize> {
        let name: &Ident = match expr {
            Expr::Identifier(name) => name,
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [table, name] if fold(table) == self.alias => name,
                _ => return None,
            },
            _ => return None,
        };
        self.table.column(&fold(name))
    }

    fn data_type(&self, at: usize) -> DataType {
        self.table.columns[at].data_type
    }

    /// A condition that is nothing but comparisons of columns with given values, all of which must hold.
    fn comparisons(&mut self, condition: &Expr) -> Option<Vec<Comparison>> {
        let mut found = vec![];
        let mut terms = vec![condition];
        while let Some(term) = terms.pop() {
            match term {
                Expr::Nested(inner) => terms.push(inner),
                Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                    terms.extend([right.as_ref(), left.as_ref()])
                }
                Expr::BinaryOp { left, op, right } => {
                    let (at, op, value) = match (self.column(left), self.column(right)) {
                        (Some(at), None) => (at, op.clone(), right),
                        (None, Some(at)) => (at, swapped(op)?, left),
                        _ => return None,
                    };
                    swapped(&op)?;
                    found.push((at, op, self.compared(at, value)?));
                }
                Expr::Between { expr, negated: false, low, high } => {
                    let at = self.column(expr)?;
                    found.push((at, BinaryOperator::GtEq, self.compared(at, low)?));
                    found.push((at, BinaryOperator::LtEq, self.compared(at, high)?));
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
                (Some((_, BinaryOperator::Eq, given)), None) => Some(given.clone()),
                _ => None,
            }
        };
        let all = |index: &&Arc<Index>| {
            index.unique
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
        compared_literal(self.table, at, value).map(Given::Constant)
    }

    /// A parameter whose type is this, or (but as an operand) another integer's where this is one, or open: then it is
    /// this from now on.
    fn parameter(&mut self, value: &Expr, data_type: DataType, place: Place) -> Option<Given> {
        let (value, negated) = match value {
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } if self.seen.uses.is_some() => (expr.as_ref(), true),
            value => (value, false),
        };
        let Expr::Value(v) = value else { return None };
        let Value::Placeholder(name) = &v.value else { return None };
        let number: usize = name.strip_prefix('$')?.parse().ok()?;
        type_parameter(value, data_type, &mut self.seen.types).then_some(())?;
        // Some drivers state bigint for every integer: what does not fit then takes the general way.
        let integer = |t: DataType| matches!(t, DataType::Int2 | DataType::Int4 | DataType::Int8);
        let is = self.seen.types[number - 1]?;
        let converted = integer(is) && integer(data_type) && !matches!(place, Place::Operand(_));
        (is == data_type || converted).then_some(())?;
        if let Some(uses) = &mut self.seen.uses {
            uses[number - 1] = Some(Use { place, negated });
        }
        Some(Given::Parameter(number - 1, data_type))
    }

    fn default(&mut self, at: usize) -> Option<Given> {
        let column = &self.table.columns[at];
        if column.default_sql.is_none() {
            return Some(Given::Constant(Datum::Null));
        }
        let default = crate::parse::stored::default_of(self.table, at).ok()?;
        match self.now(at, &default) {
            Some(now) => Some(now),
            None => Some(Given::Constant(literal(&default, column)?.ok()?)),
        }
    }

    /// The transaction's time, where the column is a timestamp.
    fn now(&mut self, at: usize, value: &Expr) -> Option<Given> {
        let Expr::Function(function) = value else { return None };
        let name = function.name.to_string().to_lowercase();
        let plain = match &function.args {
            FunctionArguments::None => name == "current_timestamp",
            FunctionArguments::List(list) => name == "now" && list.args.is_empty() && list.clauses.is_empty(),
            FunctionArguments::Subquery(_) => false,
        };
        let bare = function.over.is_none() && function.filter.is_none() && function.within_group.is_empty();
        (plain && bare && self.data_type(at) == DataType::Timestamp).then_some(())?;
        self.seen.now = true;
        Some(Given::Now)
    }

    /// A value that is given to a column and depends on no row.
    fn assigned(&mut self, at: usize, value: &Expr) -> Option<Given> {
        if is_default(value) {
            return self.default(at);
        }
        if let Some(parameter) = self.parameter(value, self.data_type(at), Place::Assigned(at)) {
            return Some(parameter);
        }
        if let Some(now) = self.now(at, value) {
            return Some(now);
        }
        Some(Given::Constant(literal(value, &self.table.columns[at])?.ok()?))
    }

    fn new_value(&mut self, at: usize, value: &Expr) -> Option<NewValue> {
        let to = self.data_type(at);
        match value {
            Expr::Nested(inner) => self.new_value(at, inner),
            Expr::BinaryOp { left, op, right } => {
                let op = match op {
                    BinaryOperator::Plus => Arithmetic::Add,
                    BinaryOperator::Minus => Arithmetic::Subtract,
                    BinaryOperator::Multiply => Arithmetic::Multiply,
                    _ => return None,
                };
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
            value if !is_default(value) && self.column(value).is_some() => {
                let other = self.column(value)?;
                let from = self.data_type(other);
                let integers = is_integer(from) && is_integer(to);
                (integers || from == to).then_some(NewValue::Column(other))
            }
            value => self.assigned(at, value).map(NewValue::Given),
        }
    }

    /// A number beside a column in arithmetic.
    fn operand(&mut self, value: &Expr, column: usize) -> Option<Given> {
        match self.parameter(value, self.data_type(column), Place::Operand(column)) {
            Some(parameter) => Some(parameter),
            None => operand_literal(self.table, column, value).map(Given::Constant),
        }
    }

    /// What is shown, with names and types.
    fn output(&self, projection: &[SelectItem]) -> Option<(Output, Vec<String>, Vec<DataType>)> {
        if let [SelectItem::ExprWithAlias { expr: Expr::Function(_), alias }] = projection {
            let SelectItem::ExprWithAlias { expr, .. } = &projection[0] else { return None };
            return Some((self.aggregate(expr)?, vec![fold(alias)], vec![DataType::Int8]));
        }
        let (mut columns, mut names) = (vec![], vec![]);
        for item in projection {
            match item {
                SelectItem::Wildcard(options) if options.to_string().is_empty() => {
                    for (at, column) in live_columns(self.table) {
                        columns.push(at);
                        names.push(column.name.clone());
                    }
                }
                SelectItem::UnnamedExpr(expr) => {
                    let at = self.column(expr)?;
                    columns.push(at);
                    names.push(self.table.columns[at].name.clone());
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    columns.push(self.column(expr)?);
                    names.push(fold(alias));
                }
                _ => return None,
            }
        }
        let types = columns.iter().map(|at| self.data_type(*at)).collect();
        Some((Output::Columns(columns), names, types))
    }

    /// `count(*)`, or the `sum` of an int4 column.
    fn aggregate(&self, expr: &Expr) -> Option<Output> {
        let text = expr.to_string().to_lowercase();
        if text == "count(*)" {
            return Some(Output::Count);
        }
        let name = text.strip_prefix("sum(")?.strip_suffix(')')?;
        let column = |(_, c): &(usize, &terrace_engine::ColumnDef)| c.name == name && c.data_type == DataType::Int4;
        live_columns(self.table).find(column).map(|(at, _)| Output::Sum(at))
    }

    /// The columns of ORDER BY, and whether downwards.
    fn sort(&self, query: &Query, output: &Output, names: &[String]) -> Option<Vec<(usize, bool)>> {
        let Some(order_by) = &query.order_by else { return Some(vec![]) };
        let (OrderByKind::Expressions(terms), None) = (&order_by.kind, &order_by.interpolate) else { return None };
        let Output::Columns(columns) = output else { return None };
        let mut sort: Vec<(usize, bool)> = vec![];
        for term in terms {
            (term.with_fill.is_none() && term.options.nulls_first.is_none()).then_some(())?;
            let down = term.options.asc == Some(false);
            // A name is an output column's first.
            let named = |name: &Ident| {
                let same = |(shown, at): (&String, &usize)| (*shown == fold(name)).then_some(*at);
                names.iter().zip(columns).filter_map(same).collect::<Vec<usize>>()
            };
            let at = match &term.expr {
                Expr::Identifier(name) => match named(name).as_slice() {
                    [] => self.column(&term.expr)?,
                    [at] => *at,
                    _ => return None,
                },
                other => self.column(other)?,
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
            sort.push((at, down));
        }
        Some(sort)
    }

    /// The outer `None`: it is not plain.
    fn limit(&mut self, query: &Query) -> Option<Option<Given>> {
        let limit = match &query.limit_clause {
            None => return Some(None),
            Some(LimitClause::LimitOffset { limit: Some(limit), offset: None, limit_by }) if limit_by.is_empty() => {
                limit
            }
            Some(_) => return None,
        };
        if let Some(parameter) = self.parameter(limit, DataType::Int8, Place::Limit) {
            return Some(Some(parameter));
        }
        limit_literal(limit).map(|n| Some(Given::Constant(n)))
    }
}

type Bounds = (Arc<Index>, Vec<Given>, Option<(Given, bool)>, Option<(Given, bool)>);

/// Equalities on the first columns, then at most two bounds on the next, and nothing else.
fn bounds_of(index: &Arc<Index>, comparisons: &[Comparison]) -> Option<Bounds> {
    let mut left: Vec<&Comparison> = comparisons.iter().collect();
    let mut prefix = vec![];
    let mut columns = index.columns.iter().peekable();
    while let Some(column) = columns.peek() {
        let Some(at) = left.iter().position(|(c, op, _)| c == *column && *op == BinaryOperator::Eq) else { break };
        prefix.push(left.remove(at).2.clone());
        columns.next();
    }
    let (mut low, mut high) = (None, None);
    for (at, op, given) in left {
        (Some(&at) == columns.peek()).then_some(())?;
        let (end, included) = match op {
            BinaryOperator::Gt => (&mut low, false),
            BinaryOperator::GtEq => (&mut low, true),
            BinaryOperator::Lt => (&mut high, false),
            BinaryOperator::LtEq => (&mut high, true),
            _ => return None,
        };
        end.replace((given.clone(), included)).is_none().then_some(())?;
    }
    let narrowed = !prefix.is_empty() || low.is_some() || high.is_some();
    narrowed.then(|| (index.clone(), prefix, low, high))
}

/// The operator with its sides exchanged; only comparisons that an index serves.
fn swapped(op: &BinaryOperator) -> Option<BinaryOperator> {
    Some(match op {
        BinaryOperator::Eq => BinaryOperator::Eq,
        BinaryOperator::Lt => BinaryOperator::Gt,
        BinaryOperator::LtEq => BinaryOperator::GtEq,
        BinaryOperator::Gt => BinaryOperator::Lt,
        BinaryOperator::GtEq => BinaryOperator::LtEq,
        _ => return None,
    })
}

fn is_integer(data_type: DataType) -> bool {
    matches!(data_type, DataType::Int4 | DataType::Int8)
}

fn compared_literal(table: &Table, at: usize, value: &Expr) -> Option<Datum> {
    let column = &table.columns[at];
    let (inner, is_integer) = match value {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } if is_integer(column.data_type) => (expr.as_ref(), true),
        value => (value, is_integer(column.data_type)),
    };
    let Expr::Value(v) = inner else { return None };
    match &v.value {
        Value::Number(text, false) if is_integer && text.parse::<i64>().is_ok() => literal(value, column)?.ok(),
        Value::SingleQuotedString(_) if matches!(column.data_type, DataType::Text | DataType::Varchar(0)) => {
            literal(value, column)?.ok()
        }
        Value::Boolean(_) if column.data_type == DataType::Bool => literal(value, column)?.ok(),
        _ => None,
    }
}

fn operand_literal(table: &Table, at: usize, value: &Expr) -> Option<Datum> {
    let column = &table.columns[at];
    let (inner, sign) = match value {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => (expr.as_ref(), -1),
        value => (value, 1),
    };
    let Expr::Value(v) = inner else { return None };
    let Value::Number(text, false) = &v.value else { return None };
    match column.data_type {
        DataType::Float8 => literal(value, column)?.ok(),
        // As PostgreSQL types it.
        _ => {
            let value = sign * text.parse::<i64>().ok()?;
            Some(i32::try_from(value).map_or(Datum::Int8(value), Datum::Int4))
        }
    }
}

fn limit_literal(value: &Expr) -> Option<Datum> {
    let Expr::Value(v) = value else { return None };
    let Value::Number(text, false) = &v.value else { return None };
    Some(Datum::Int8(text.parse().ok()?))
}

impl Use {
    /// The literal's value as the parameter that stands for it; `None` where the statement with it is the general
    /// way's.
    pub(crate) fn value(self, by_key: &ByKey, literal: &Literal<'_>) -> Option<Datum> {
        let value = match literal {
            Literal::Number(text) => Value::Number((*text).to_owned(), false),
            Literal::Text(text) => Value::SingleQuotedString(text.clone().into_owned()),
        };
        let mut expr = Expr::Value(value.with_empty_span());
        if self.negated {
            expr = Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(expr) };
        }
        match self.place {
            Place::Compared(at) => compared_literal(&by_key.table, at, &expr),
            Place::Assigned(at) => crate::plan::changes::literal(&expr, &by_key.table.columns[at])?.ok(),
            Place::Limit => limit_literal(&expr),
            Place::Operand(at) => {
                let datum = operand_literal(&by_key.table, at, &expr)?;
                match (by_key.table.columns[at].data_type, datum) {
                    (DataType::Int4, Datum::Int8(v)) => i32::try_from(v).ok().map(Datum::Int4),
                    (_, datum) => Some(datum),
                }
            }
        }
    }
}
