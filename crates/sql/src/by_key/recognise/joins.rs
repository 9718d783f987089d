//! Joins by key: which table is read first, and how the others' rows are found from there.
use super::super::Action;
use super::super::answer::Output;
use super::super::join::{Check, Join, MOST_TABLES, Step, Value};
use super::super::rows::{Comparing, Rows};
use super::values::COMPARED;
use super::{Comparison, Named, Scope, Seen, Term, called, rows_of, user_table};
use std::ops::Range;
use std::sync::Arc;
use terrace_engine::{Catalog, Index, Table};
use terrace_grammar::statement::{Alias, Body, Distinct, Expr, FromItem, Ident, JoinKind, JoinOn, Name, Query, Select};

/// Tables of FROM.
#[derive(Default)]
struct Sources<'q> {
    tables: Vec<(&'q Name, Option<&'q Ident>)>,
    /// Conditions that all rows must meet, and the tables that each may name.
    inner: Vec<(&'q Expr, Range<usize>)>,
    /// Of an optional table, its place, its condition, and the tables that this may name.
    optional: Vec<(usize, &'q Expr, Range<usize>)>,
}

/// What the rows of a table must meet to be joined, if it is optional.
type OwnTerms = Option<Vec<Term>>;

/// What is known of the tables that are to be joined.
struct Plan<'a, 's> {
    scope: &'s Scope<'a>,
    /// What all rows must meet; those that are seen to are taken out.
    terms: Vec<Term>,
    /// By table.
    optional: Vec<OwnTerms>,
    placed: Vec<bool>,
}

pub(super) fn join(query: &Query, catalog: &Catalog, seen: &mut Seen) -> Option<(Vec<Arc<Table>>, Action)> {
    let Query { at: _, with: None, body, order: _, limit, with_ties: false, offset: None, locking } = query else {
        return None;
    };
    let Body::Select(select) = body else { return None };
    let Select { at: _, distinct: Distinct::No, items, from, filter, group: None, having: None, windows } =
        select.as_ref()
    else {
        return None;
    };
    (windows.is_empty() && locking.is_empty()).then_some(())?;
    let mut sources = Sources::default();
    from.iter().try_for_each(|item| sources.add(item))?;
    (2..=MOST_TABLES).contains(&sources.tables.len()).then_some(())?;
    let tables: Vec<Arc<Table>> =
        sources.tables.iter().map(|(name, _)| user_table(name, catalog)).collect::<Option<_>>()?;
    let mut scope = Scope { tables: named(&tables, &sources), visible: 0..tables.len(), seen };
    let (terms, optional) = scope.conditions(filter.as_ref(), &sources)?;
    let (output, names, schema) = scope.output(items)?;
    let sort = scope.sort(query, &output, &names)?;
    let limit = scope.limit(limit.as_ref())?;
    // One row, which nothing more may be said about.
    (matches!(output, Output::Cells(_)) || sort.is_empty() && limit.is_none()).then_some(())?;
    let firsts = scope.tables.iter().map(|named| named.first).collect();
    let mut plan = Plan { scope: &scope, terms, optional, placed: vec![false; tables.len()] };
    let (driver, rows) = plan.driver()?;
    let mut steps = vec![];
    while steps.len() + 1 < tables.len() {
        steps.push(plan.next()?);
    }
    assert!(plan.terms.is_empty(), "each condition is seen to when the last of its tables is placed");
    let join = Join { firsts, driver, rows, steps, sort, limit, output, schema };
    Some((tables, Action::Join(Box::new(join))))
}

fn named<'a>(tables: &'a [Arc<Table>], sources: &Sources<'a>) -> Vec<Named<'a>> {
    let mut first = 0;
    let named = tables.iter().zip(&sources.tables).map(|(table, (name, alias))| {
        let named = Named { table, alias: called(name, *alias), first };
        first += table.columns.len();
        named
    });
    named.collect()
}

impl<'q> Sources<'q> {
    /// `None`: it is not plain.
    fn add(&mut self, item: &'q FromItem) -> Option<()> {
        let begin = self.tables.len();
        match item {
            FromItem::Table { name, only: false, alias } => {
                let alias = match alias {
                    Some(Alias { name, columns }) if columns.is_empty() => Some(name),
                    Some(_) => return None,
                    None => None,
                };
                let name_is = |(name, alias): &(&'q Name, Option<&'q Ident>)| called(name, *alias);
                let source = (name, alias);
                // Of two with one name, one could not be meant.
                (!self.tables.iter().any(|other| name_is(other) == name_is(&source))).then_some(())?;
                self.tables.push(source);
            }
            FromItem::Join { at: _, kind, sides, on, alias: None } => {
                let [left, right] = sides.as_ref();
                self.add(left)?;
                let optional = self.tables.len();
                self.add(right)?;
                let all = begin..self.tables.len();
                match (kind, on) {
                    (JoinKind::Cross, JoinOn::Nothing) => {}
                    (JoinKind::Inner, JoinOn::On(on)) => self.inner.push((on, all)),
                    (JoinKind::Left, JoinOn::On(on)) if optional + 1 == all.end => {
                        self.optional.push((optional, on, all))
                    }
                    _ => return None,
                }
            }
            _ => return None,
        }
        Some(())
    }
}

impl Scope<'_> {
    /// What all rows must meet, and of each optional table what its rows must.
    fn conditions(&mut self, filter: Option<&Expr>, sources: &Sources<'_>) -> Option<(Vec<Term>, Vec<OwnTerms>)> {
        let mut terms = vec![];
        if let Some(filter) = filter {
            self.terms(filter, &mut terms)?;
        }
        let everything = self.visible.clone();
        for (on, visible) in &sources.inner {
            self.visible = visible.clone();
            self.terms(on, &mut terms)?;
        }
        let mut optional = vec![None; self.tables.len()];
        for (table, on, visible) in &sources.optional {
            self.visible = visible.clone();
            let mut own = vec![];
            self.terms(on, &mut own)?;
            own.iter().all(|term| self.tables_in(term).contains(&Some(*table))).then_some(())?;
            optional[*table] = Some(own);
        }
        self.visible = everything;
        let inner = |term: &Term| self.tables_in(term).into_iter().flatten().all(|table| optional[table].is_none());
        let links = |term: &Term| match term {
            Term::Given(_) => true,
            Term::Link(a, b) => {
                let of = self.data_type(*a);
                self.table_of(*a) != self.table_of(*b) && of == self.data_type(*b) && COMPARED.contains(&of)
            }
        };
        let sound = terms.iter().all(inner) && terms.iter().chain(optional.iter().flatten().flatten()).all(links);
        sound.then_some((terms, optional))
    }

    fn tables_in(&self, term: &Term) -> [Option<usize>; 2] {
        match term {
            Term::Given((at, ..)) => [Some(self.table_of(*at)), None],
            Term::Link(a, b) => [Some(self.table_of(*a)), Some(self.table_of(*b))],
        }
    }
}

impl Plan<'_, '_> {
    /// The table whose rows the given values narrow most.
    fn driver(&mut self) -> Option<(usize, Rows)> {
        let inner = (0..self.placed.len()).filter(|table| self.optional[*table].is_none());
        let found = inner.filter_map(|table| {
            let comparisons = self.given(table);
            let rows =
                if comparisons.is_empty() { None } else { rows_of(self.scope.tables[table].table, &comparisons) };
            Some((table, rows?))
        });
        let narrowness = |rows: &Rows| {
            (rows.one, rows.prefix.len(), usize::from(rows.low.is_some()) + usize::from(rows.high.is_some()))
        };
        let (driver, rows) = found.rev().max_by_key(|(_, rows)| narrowness(rows))?;
        let scope = self.scope;
        self.terms.retain(|term| scope.tables_in(term) != [Some(driver), None]);
        self.placed[driver] = true;
        Some((driver, rows))
    }

    /// The comparisons of a table's columns with given values, by numbers within it.
    fn given(&self, table: usize) -> Vec<Comparison> {
        let own = |term: &Term| match term {
            Term::Given((at, comparing, given)) if self.scope.table_of(*at) == table => {
                Some((at - self.scope.tables[table].first, *comparing, given.clone()))
            }
            _ => None,
        };
        self.terms.iter().filter_map(own).collect()
    }

    /// The table that can be joined best: by a whole key, or else by most columns of an index.
    fn next(&mut self) -> Option<Step> {
        let left = (0..self.placed.len()).filter(|table| !self.placed[*table]);
        let steps = left.filter_map(|table| self.step(table));
        let step = steps.rev().max_by_key(|step| (step.one, step.prefix.len()))?;
        self.placed[step.table] = true;
        let (scope, placed) = (self.scope, &self.placed);
        let over = |term: &Term| scope.tables_in(term).into_iter().flatten().all(|table| placed[table]);
        self.terms.retain(|term| !over(term));
        Some(step)
    }

    /// `None`: no index leads there from the tables that are placed.
    fn step(&self, table: usize) -> Option<Step> {
        let ready = |term: &&Term| {
            let mut tables = self.scope.tables_in(term).into_iter().flatten();
            tables.all(|of| of == table || self.placed[of])
        };
        let own = |term: &&Term| self.scope.tables_in(term).contains(&Some(table));
        let terms: Vec<&Term> = match &self.optional[table] {
            Some(terms) => terms.iter().all(|term| ready(&term)).then(|| terms.iter().collect())?,
            None => self.terms.iter().filter(own).filter(ready).collect(),
        };
        let indexes = self.scope.tables[table].table.indexes.iter();
        let steps = indexes.filter_map(|index| self.by_index(table, index, &terms));
        steps.rev().max_by_key(|step| (step.one, step.prefix.len()))
    }

    fn by_index(&self, table: usize, index: &Arc<Index>, terms: &[&Term]) -> Option<Step> {
        let mut checks: Vec<Check> = terms.iter().map(|term| self.check(table, term)).collect();
        let mut prefix = vec![];
        for column in &index.columns {
            let equal = |check: &Check| check.column == *column && check.comparing == Comparing::Equal;
            let Some(at) = checks.iter().position(equal) else { break };
            prefix.push(checks.remove(at).with);
        }
        let one = index.is_immediate() && prefix.len() == index.columns.len();
        let optional = self.optional[table].is_some();
        (!prefix.is_empty()).then(|| Step { table, optional, index: index.clone(), prefix, one, checks })
    }

    /// A condition as one of this table's column.
    fn check(&self, table: usize, term: &Term) -> Check {
        let first = self.scope.tables[table].first;
        match term {
            Term::Given((at, comparing, given)) => {
                Check { column: at - first, comparing: *comparing, with: Value::Given(given.clone()) }
            }
            Term::Link(a, b) => {
                let (own, other) = if self.scope.table_of(*a) == table { (a, b) } else { (b, a) };
                Check { column: own - first, comparing: Comparing::Equal, with: Value::Column(*other) }
            }
        }
    }
}
