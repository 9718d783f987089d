//! FROM: its items as they are shown, and what the names of columns mean.
use super::{Made, WITHIN, Writer, direction};
use crate::parse::shown::print::moved;
use crate::parse::shown::{Of, Scope, is_number, plain};
use std::collections::BTreeSet;
use std::fmt::Write;
use terrace_engine::{ColumnDef, DataType};
use terrace_grammar::quoted;
use terrace_grammar::statement::{Alias, Expr, ExprKind, FromItem, JoinKind, JoinOn, Name, Query, Sort, TableFunction};

/// A column that a name means.
#[derive(Clone)]
pub(super) struct Visible {
    name: String,
    pub(super) shown: String,
    pub(super) column: ColumnDef,
}

/// A relation, and by which name the query's columns are named.
struct Relation {
    called: String,
    columns: Vec<Visible>,
}

/// What one query reads.
pub(in crate::parse::shown) struct From<'w> {
    writer: Writer<'w>,
    around: Option<&'w From<'w>>,
    relations: Vec<Relation>,
    /// What bare names mean.
    visible: Vec<Visible>,
}

/// An item, whose conditions are not looked at yet.
pub(super) enum Source<'q> {
    Relation(String),
    Join(Box<Source<'q>>, JoinKind, On<'q>, String),
    /// A join with a name, and names of its columns.
    Called(Box<Source<'q>>, String),
}

pub(super) enum On<'q> {
    Nothing,
    /// Of a NATURAL join without a name in common.
    True,
    Using(Vec<String>, Option<String>),
    Condition(&'q Expr),
}

impl Source<'_> {
    pub(super) fn shown(&self, scope: &Scope<'_>, pretty: bool) -> Option<String> {
        let (left, kind, on, right) = match self {
            Source::Relation(text) => return Some(text.clone()),
            Source::Called(join, name) => {
                let shown = join.shown(scope, pretty)?;
                return Some(if pretty { format!("({shown}) {name}") } else { format!("{shown} {name}") });
            }
            Source::Join(left, kind, on, right) => (left, kind, on, right),
        };
        let word = match kind {
            JoinKind::Cross => "CROSS JOIN",
            JoinKind::Inner => "JOIN",
            JoinKind::Left => "LEFT JOIN",
            JoinKind::Right => "RIGHT JOIN",
            JoinKind::Full => "FULL JOIN",
        };
        let on = match on {
            On::Nothing => String::new(),
            On::True => " ON TRUE".to_owned(),
            On::Using(names, None) => format!(" USING ({})", names.join(", ")),
            On::Using(names, Some(called)) => format!(" USING ({}) AS {called}", names.join(", ")),
            On::Condition(condition) => {
                let shown = moved(&scope.condition(condition)?.text(pretty), WITHIN);
                if pretty { format!(" ON {shown}") } else { format!(" ON ({shown})") }
            }
        };
        let joined = format!("{}\0     {word} {right}{on}", left.shown(scope, pretty)?);
        Some(if pretty { joined } else { format!("({joined})") })
    }

    /// Whether the names of what it joins stand in a condition.
    fn has_condition(&self) -> bool {
        match self {
            Source::Relation(_) => false,
            Source::Join(left, _, on, _) => matches!(on, On::Condition(_)) || left.has_condition(),
            Source::Called(join, _) => join.has_condition(),
        }
    }
}

impl<'w> From<'w> {
    pub(super) fn of(writer: Writer<'w>, around: Option<&'w From<'w>>) -> From<'w> {
        From { writer, around, relations: vec![], visible: vec![] }
    }

    pub(in crate::parse::shown) fn is_pretty(&self) -> bool {
        self.writer.pretty
    }

    /// A key of a window.
    pub(in crate::parse::shown) fn shown_key(&self, scope: &Scope<'_>, key: &Expr) -> Option<String> {
        self.writer.shown_key(scope, key)
    }

    /// A key of a window's ORDER BY.
    pub(in crate::parse::shown) fn shown_order(&self, scope: &Scope<'_>, key: &Sort) -> Option<String> {
        let shown = self.shown_key(scope, &key.expr)?;
        direction(key).map(|direction| format!("{shown}{direction}"))
    }

    /// A query within an expression.
    pub(in crate::parse::shown) fn query_within(&self, query: &Query) -> Option<Made> {
        self.writer.query(query, Some(self), None)
    }

    /// The column that a name means within an expression, as it is shown, and its type. PostgreSQL casts one of a
    /// domain to what each operator and function takes.
    pub(in crate::parse::shown) fn value(&self, name: &Name) -> Option<(String, DataType)> {
        let Visible { shown, column, .. } = self.column(name)?;
        column.domain.is_none().then_some((shown, column.data_type))
    }

    /// The column that a name means here, or in the query around.
    pub(super) fn column(&self, name: &Name) -> Option<Visible> {
        let found: Vec<&Visible> = match name.parts() {
            [own] => self.visible.iter().filter(|visible| visible.name == own.name).collect(),
            [table, own] => {
                let of = self.relations.iter().filter(|relation| relation.called == table.name);
                of.flat_map(|relation| &relation.columns).filter(|visible| visible.name == own.name).collect()
            }
            _ => return None,
        };
        match found.as_slice() {
            [] => self.around?.column(name),
            [one] => Some(Visible::clone(one)),
            _ => None,
        }
    }

    fn calls(&self, name: &str) -> bool {
        let own = self.relations.iter().any(|relation| relation.called == name);
        own || self.around.is_some_and(|around| around.calls(name))
    }

    /// An item of FROM, whose columns are seen from now on.
    pub(super) fn add<'q>(&mut self, item: &'q FromItem) -> Option<Source<'q>> {
        let (source, visible) = self.item(item)?;
        self.visible.extend(visible);
        Some(source)
    }

    fn item<'q>(&mut self, item: &'q FromItem) -> Option<(Source<'q>, Vec<Visible>)> {
        match item {
            FromItem::Table { name, only: false, alias } => {
                if alias.as_ref().is_some_and(|alias| !alias.columns.is_empty()) {
                    return None;
                }
                let (mut shown, mut columns) = (self.writer.lookup)(name)?;
                columns.retain(|column| !column.dropped);
                let called = &alias.as_ref().map_or(name.last(), |alias| &alias.name).name;
                if *called != name.last().name {
                    write!(shown, " {}", quoted(called)).ok()?;
                }
                Some((Source::Relation(shown), self.relation(called, columns)?))
            }
            FromItem::Query { lateral: false, query, alias, .. } => {
                let (text, columns) = self.writer.query(query, self.around, None)?;
                let (given, columns) = renamed(columns, alias)?;
                let shown = format!("({}) {}{given}", moved(&text, WITHIN), quoted(&alias.name.name));
                Some((Source::Relation(shown), self.relation(&alias.name.name, columns)?))
            }
            FromItem::Functions { lateral: false, functions, rows_from: false, ordinality: false, alias, .. } => {
                let [TableFunction { call, columns }] = functions.as_slice() else { return None };
                columns.is_empty().then_some(())?;
                self.series(call, alias.as_ref())
            }
            FromItem::Join { at: _, kind, sides, on, alias } => {
                let first = self.relations.len();
                let (left, left_columns) = self.item(&sides[0])?;
                let (Source::Relation(right), right_columns) = self.item(&sides[1])? else { return None };
                let Joined { kind, on, visible, merged } = joined(*kind, on, left_columns, right_columns)?;
                if let Some((called, columns)) = merged {
                    (!self.calls(&called)).then_some(())?;
                    self.relations.push(Relation { called, columns });
                }
                let join = Source::Join(Box::new(left), kind, on, right);
                match alias {
                    None => Some((join, visible)),
                    Some(alias) => self.called(join, visible, alias, first),
                }
            }
            _ => None,
        }
    }

    /// A join with a name: what it joins, from that relation on, is named no more.
    fn called<'q>(
        &mut self,
        join: Source<'q>,
        visible: Vec<Visible>,
        alias: &Alias,
        first: usize,
    ) -> Option<(Source<'q>, Vec<Visible>)> {
        (!join.has_condition()).then_some(())?;
        // PostgreSQL gives the second of a name another one.
        let mut names = BTreeSet::new();
        visible.iter().all(|visible| names.insert(&visible.name)).then_some(())?;
        self.relations[first..].iter_mut().for_each(|relation| relation.columns.clear());
        let (given, columns) = renamed(visible.into_iter().map(|visible| visible.column).collect(), alias)?;
        let named = format!("{}{given}", quoted(&alias.name.name));
        Some((Source::Called(Box::new(join), named), self.relation(&alias.name.name, columns)?))
    }

    /// `generate_series` of integers.
    fn series<'q>(&mut self, call: &Expr, alias: Option<&Alias>) -> Option<(Source<'q>, Vec<Visible>)> {
        let ExprKind::Call(call) = &call.kind else { return None };
        let plain = !call.star && !call.distinct && !call.variadic && call.over.is_none() && call.filter.is_none();
        let own = call.name.parts();
        let is_series = matches!(own, [own] if own.name == "generate_series") && plain && call.order.is_empty();
        if !is_series || !matches!(call.args.len(), 2 | 3) || call.args.iter().any(|arg| arg.name.is_some()) {
            return None;
        }
        let none = From::of(self.writer, self.around);
        let scope = Scope::within(&none);
        let args = call.args.iter().map(|arg| match scope.show(&arg.value)? {
            (shown, Of::Known(DataType::Int4)) => Some(shown.text(self.writer.pretty)),
            _ => None,
        });
        let args = args.collect::<Option<Vec<String>>>()?.join(", ");
        let called = alias.map_or("generate_series", |alias| alias.name.name.as_str());
        let column = match alias.map(|alias| alias.columns.as_slice()) {
            None | Some([]) => called,
            Some([one]) => one.name.as_str(),
            Some(_) => return None,
        };
        let shown = format!("generate_series({args}) {}({})", quoted(called), quoted(column));
        let columns = vec![ColumnDef::new(column, DataType::Int4)];
        Some((Source::Relation(shown), self.relation(called, columns)?))
    }

    /// Invariant 3.
    fn relation(&mut self, called: &str, columns: Vec<ColumnDef>) -> Option<Vec<Visible>> {
        if self.calls(called) {
            return None;
        }
        let visible = |column: ColumnDef| {
            let shown = format!("{}.{}", quoted(called), quoted(&column.name));
            Visible { name: column.name.clone(), shown, column }
        };
        let columns: Vec<Visible> = columns.into_iter().map(visible).collect();
        self.relations.push(Relation { called: called.to_owned(), columns: columns.clone() });
        Some(columns)
    }
}

/// A query's columns under the names that its alias gives them. If one of these is another, all stand behind the alias.
fn renamed(mut columns: Vec<ColumnDef>, alias: &Alias) -> Option<(String, Vec<ColumnDef>)> {
    let mut others = false;
    for (at, name) in alias.columns.iter().enumerate() {
        let column = columns.get_mut(at)?;
        others |= column.name != name.name;
        column.name.clone_from(&name.name);
    }
    let names: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
    Some((if others { format!("({})", names.join(", ")) } else { String::new() }, columns))
}

/// A join.
struct Joined<'q> {
    kind: JoinKind,
    /// What it compares.
    on: On<'q>,
    /// What bare names mean behind it.
    visible: Vec<Visible>,
    /// The name of its merged columns, and these.
    merged: Option<(String, Vec<Visible>)>,
}

fn joined(kind: JoinKind, on: &JoinOn, left: Vec<Visible>, right: Vec<Visible>) -> Option<Joined<'_>> {
    let has = |side: &[Visible], name: &str| side.iter().any(|visible| visible.name == name);
    let both = |left: Vec<Visible>, right| left.into_iter().chain(right).collect::<Vec<Visible>>();
    let keys: Vec<String> = match on {
        JoinOn::Nothing => return Some(Joined { kind, on: On::Nothing, visible: both(left, right), merged: None }),
        JoinOn::On(condition) => {
            return Some(Joined { kind, on: On::Condition(condition), visible: both(left, right), merged: None });
        }
        JoinOn::Using { columns, .. } => columns.iter().map(|column| column.name.clone()).collect(),
        JoinOn::Natural => {
            let names = left.iter().map(|visible| visible.name.clone());
            names.filter(|name| has(&right, name)).collect()
        }
    };
    if keys.is_empty() {
        let (kind, on) = match kind {
            JoinKind::Inner => (JoinKind::Cross, On::Nothing),
            outer => (outer, On::True),
        };
        return Some(Joined { kind, on, visible: both(left, right), merged: None });
    }
    let one = |side: &[Visible], key: &str| {
        let mut found = side.iter().filter(|visible| visible.name == key);
        found.next().filter(|_| found.next().is_none()).cloned()
    };
    let merged = keys.iter().map(|key| merged(kind, one(&left, key)?, one(&right, key)?));
    let mut visible = merged.collect::<Option<Vec<Visible>>>()?;
    let called = match on {
        JoinOn::Using { alias: Some(alias), .. } => Some(alias.name.clone()),
        _ => None,
    };
    let of_name = called.clone().map(|called| (called, visible.clone()));
    visible.extend(left.into_iter().chain(right).filter(|visible| !keys.contains(&visible.name)));
    let on = On::Using(keys.iter().map(|key| quoted(key)).collect(), called.map(|called| quoted(&called)));
    Some(Joined { kind, on, visible, merged: of_name })
}

/// What a merged column is: a side's, as far as that is of the type that both become.
fn merged(kind: JoinKind, left: Visible, right: Visible) -> Option<Visible> {
    if left.column.domain.is_some() || right.column.domain.is_some() {
        return None;
    }
    let (l, r) = (plain(left.column.data_type), plain(right.column.data_type));
    let common = match () {
        () if l == r => l,
        () if is_number(l) && is_number(r) => *[l, r].iter().max_by_key(|of| width(**of))?,
        () => return None,
    };
    match kind {
        JoinKind::Full => {
            Some(Visible { shown: quoted(&left.name), column: ColumnDef::new(&left.name, common), ..left })
        }
        JoinKind::Left | JoinKind::Inner if l == common => Some(left),
        JoinKind::Right | JoinKind::Inner if r == common => Some(right),
        _ => None,
    }
}

fn width(number: DataType) -> usize {
    use DataType::{Float4, Float8, Int2, Int4, Int8};
    [Int2, Int4, Int8, DataType::Numeric(None), Float4, Float8].iter().position(|of| *of == number).unwrap_or(0)
}
