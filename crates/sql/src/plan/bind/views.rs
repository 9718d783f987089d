//! Views in FROM, and what the definition of a view reads.
//!
//! 1. A view's query is bound where the view is named, from its text, as if it stood there alone: it sees no WITH query
//!    and no column of the query around it, and its constants are read in the zone of when it was defined.
//! 2. Within it a relation has the columns that it had then (`catalog::views`, invariant 2).
//! 3. A definition's `*` is written out: what is kept names each column.
//! 4. Views that read views come to at most [`VIEWS_MAX`] in a statement.
use super::from::{Source, renamed};
use super::reads::{Number, Read as Reading};
use super::scope::{Ctes, Scope};
use super::{Binder, Fault, Placed, Result, Whole, settled, unsupported, wrong};
use crate::parse::qualified::{Edit, kept_schema, with_schema};
use crate::plan::planner::Planner;
use crate::values::is_sequence;
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::Column;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;
use terrace_engine::types::Zone;
use terrace_engine::{Catalog, DataType, EngineError, RelationName, Space, Table, View, ViewUse};
use terrace_grammar::quoted;
use terrace_grammar::statement::{Alias, At, Name, Query, Statement, TypeName};

const VIEWS_MAX: usize = 200;

/// What is not the statement's own text.
#[derive(Clone)]
pub(super) enum Within {
    View(Arc<View>),
    /// A query that stands for a relation of the system.
    System,
    /// A default or a condition.
    Kept,
}

#[derive(Default)]
pub(super) struct Views {
    /// What is bound, the innermost last; empty: the statement's own text.
    within: RefCell<Vec<Within>>,
    bound: Cell<usize>,
    of_definitions: OnceCell<Arc<Catalog>>,
    /// What a definition reads, while one is bound.
    defines: RefCell<Option<Defines>>,
}

/// What is learnt of a view's definition while it is bound.
#[derive(Default)]
struct Defines {
    relations: Vec<Read>,
    stars: Vec<(At, String)>,
    schemas: Vec<Edit>,
}

/// A relation that is read: where it is, its name, how many columns it has, and the plan's columns with their
/// positions.
struct Read {
    space: Space,
    name: String,
    width: usize,
    columns: Vec<(Column, usize)>,
}

/// A definition that is bound.
pub(crate) struct Defined {
    pub(crate) whole: Whole,
    pub(crate) uses: Vec<ViewUse>,
    /// Each `*` by its place, and the columns that it means.
    pub(crate) stars: Vec<(At, String)>,
    /// Schemas of the relations, as they are kept.
    pub(crate) schemas: Vec<Edit>,
}

/// Binds the query of a view.
pub(crate) fn define(planner: &Planner<'_>, query: &Query) -> Result<Defined> {
    let found = RefCell::new(Defines::default());
    let whole = settled(planner, &[], |binder| {
        *binder.views.defines.borrow_mut() = Some(Defines::default());
        binder.note_calls(query);
        let bound = binder.query(query, None, &Ctes::none())?;
        if bound.titles.is_empty() {
            return unsupported("SELECT of nothing in a view");
        }
        if binder.effects.get() {
            return unsupported("a function of advisory locks, or pg_terminate_backend, in a view");
        }
        if !binder.types.borrow().is_empty() || !binder.open.borrow().is_empty() {
            return Err(EngineError::new("42P02", "there is no parameter $1").into());
        }
        *found.borrow_mut() = binder.views.defines.take().expect("it was put there");
        Ok(bound)
    })?;
    if !whole.calls.is_empty() {
        return unsupported("a function of a sequence in a view");
    }
    let Defines { relations, mut stars, mut schemas } = found.into_inner();
    stars.sort();
    stars.dedup();
    schemas.sort_by_key(|(place, _)| (place.start, place.end));
    schemas.dedup();
    Ok(Defined { uses: uses(&whole.bound.plan, relations)?, whole, stars, schemas })
}

/// What a plan names of the relations that it reads.
fn uses(plan: &LogicalPlan, relations: Vec<Read>) -> Result<Vec<ViewUse>> {
    let mut named: Vec<Column> = vec![];
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::Column(column) | Expr::OuterReferenceColumn(_, column) = expr {
                    named.push(column.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    let is_named = |one: &Column| named.iter().any(|other| other.relation == one.relation && other.name == one.name);
    let mut uses: Vec<ViewUse> = vec![];
    for Read { space, name, width, columns } in relations {
        let at = uses.iter().position(|known| known.space == space && known.relation == name).unwrap_or_else(|| {
            uses.push(ViewUse { space, relation: name, columns: width, used: vec![] });
            uses.len() - 1
        });
        let used = &mut uses[at].used;
        used.extend(columns.iter().filter(|(column, _)| is_named(column)).map(|(_, position)| *position));
        used.sort_unstable();
        used.dedup();
    }
    Ok(uses)
}

/// What users see of a sequence's row. No value is logged ahead of those that it has given.
fn as_sequence(source: &mut Source) {
    let [relation] = source.relations.as_mut_slice() else { unreachable!("a table is one item of FROM") };
    relation.columns.retain(|(name, _)| matches!(name.as_str(), "last_value" | "is_called"));
    relation.columns.insert(1usize.min(relation.columns.len()), ("log_cnt".to_owned(), lit(0i64)));
    relation.never_null = None;
}

impl Views {
    /// What is not the statement's own text, where that is bound.
    pub(super) fn innermost(&self) -> Option<Within> {
        self.within.borrow().last().cloned()
    }
}

impl Binder<'_> {
    pub(super) fn within_of<T>(&self, within: Within, bind: impl FnOnce() -> T) -> T {
        self.views.within.borrow_mut().push(within);
        let bound = bind();
        self.views.within.borrow_mut().pop();
        bound
    }

    /// 42501 where the current role may not look names up in the schema of one; what a text says that the catalogue
    /// keeps was looked up when it was made.
    pub(super) fn permit_lookup(&self, name: &RelationName) -> Result<()> {
        if self.views.innermost().is_none() {
            self.planner.info.permit_lookup(self.planner.catalog, name)?;
        }
        Ok(())
    }

    /// The same of the name of a type.
    pub(super) fn permit_type(&self, name: &TypeName) -> Result<()> {
        if self.views.innermost().is_none() {
            self.planner.info.permit_type(self.planner.catalog, name).at(name.at)?;
        }
        Ok(())
    }

    /// Whether what is bound is a text that the catalogue keeps.
    pub(super) fn is_of_text(&self) -> bool {
        matches!(self.views.within.borrow().last(), Some(Within::View(_) | Within::Kept))
    }

    /// Whether this is the query of a view that is made.
    pub(super) fn defines_view(&self) -> bool {
        self.views.defines.borrow().is_some()
    }

    /// Binds a query that stands for a relation of the system.
    pub(super) fn within_system<T>(&self, bind: impl FnOnce() -> Result<T>) -> Result<T> {
        self.within_of(Within::System, bind)
    }

    /// A view as an item of FROM (invariant 1).
    pub(super) fn view_in_from(&self, view: &Arc<View>, alias: Option<&Alias>) -> Result<Source> {
        self.views.bound.set(self.views.bound.get() + 1);
        if self.views.bound.get() > VIEWS_MAX {
            let message = format!("the statement reads more than {VIEWS_MAX} views, those that views read included");
            return Err(EngineError::new("54001", message).into());
        }
        let reading = self.note_relation(Reading::of_view(view));
        let broken = || EngineError::damaged(format!("the text of view \"{}\" makes no sense", view.name));
        let zone = Zone::named(&view.zone).ok_or_else(broken)?;
        let parsed = crate::parse::statement(&view.sql).ok().flatten().ok_or_else(broken)?;
        let Statement::Query(query) = parsed.statement() else { return Err(broken().into()) };
        let bind = || self.within_of(Within::View(view.clone()), || self.query(query, None, &Ctes::none()));
        // Its places are none of the statement's.
        let bound = zone.scope(bind).map_err(|fault| match fault {
            Fault::Wrong { error, at: _ } => Fault::Wrong { error, at: None },
            other => other,
        })?;
        if bound.titles.len() != view.columns.len() {
            return Err(broken().into());
        }
        let titles: Vec<String> = view.columns.iter().map(|column| column.name.clone()).collect();
        let plan = self.with_texts(bound.plan)?;
        let shown = alias.map_or(view.name.as_str(), |alias| alias.name.name.as_str());
        let mut source = self.derived(plan, titles, shown, None)?;
        if let LogicalPlan::SubqueryAlias(own) = &source.plan {
            self.note_origins(own.alias.table(), view.oid.0, 0..view.columns.len());
        }
        let read = (view.space, view.name.as_str());
        self.restrict(&mut source, read, view.columns.len(), (0..view.columns.len()).collect(), reading)?;
        self.in_schema(source, read, alias)
    }

    /// A table as an item of FROM: what `scanned` offers.
    pub(super) fn table_in_from(&self, mut source: Source, table: &Table, alias: Option<&Alias>) -> Result<Source> {
        let live = crate::values::live_columns(table).map(|(at, _)| at).collect();
        let read = (table.space, table.name.as_str());
        let reading = self.note_relation(Reading::of_table(table, true));
        self.restrict(&mut source, read, table.columns.len(), live, reading)?;
        if is_sequence(table) && !matches!(self.views.innermost(), Some(Within::System)) {
            as_sequence(&mut source);
        }
        self.in_schema(source, read, alias)
    }

    /// What the schema of a relation may be called before its name.
    pub(super) fn schemas_of(&self, space: Space) -> Vec<String> {
        let catalog = self.catalog();
        let own = (catalog.own_space() == Some(space)).then(|| "pg_temp".to_owned());
        [catalog.space_name(space), kept_schema(space)].into_iter().chain(own).collect()
    }

    fn in_schema(&self, source: Source, (space, own): (Space, &str), alias: Option<&Alias>) -> Result<Source> {
        let mut source = renamed(source, alias)?;
        assert_eq!(source.relations.len(), 1, "a table is one item of FROM");
        source.relations[0].schemas = if alias.is_none() { self.schemas_of(space) } else { vec![] };
        source.relations[0].hidden = alias.is_some().then(|| own.to_owned());
        Ok(source)
    }

    /// NULLs of no type are texts.
    fn with_texts(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let schema = plan.schema().clone();
        if schema.fields().iter().all(|field| *field.data_type() != ArrowType::Null) {
            return Ok(plan);
        }
        let columns = schema.columns().into_iter().zip(schema.fields()).map(|(column, field)| {
            let expr = Expr::Column(column);
            match field.data_type() {
                ArrowType::Null => Ok(self.cast_to(expr, DataType::Text, &schema)?.alias(field.name())),
                _ => Ok(expr),
            }
        });
        let columns = columns.collect::<Result<Vec<Expr>>>()?;
        Ok(LogicalPlanBuilder::from(plan).project(columns)?.build()?)
    }

    /// Invariant 2, and the notes of a definition. `positions`: of the columns that are offered, in the relation, which
    /// has `width`.
    pub(super) fn restrict(
        &self,
        source: &mut Source,
        (space, name): (Space, &str),
        width: usize,
        positions: Vec<usize>,
        reading: Option<Number>,
    ) -> Result<()> {
        let within = self.views.innermost();
        assert_eq!(source.relations[0].columns.len(), positions.len(), "each column has a position");
        self.note_offered(reading, source, positions.iter().copied());
        let relation = &mut source.relations[0];
        match within {
            Some(Within::View(view)) => {
                let is_it = |used: &&ViewUse| used.space == space && used.relation == name;
                let used = view.uses.iter().find(is_it).ok_or_else(|| {
                    EngineError::damaged(format!("view \"{}\" reads \"{name}\", which it did not", view.name))
                })?;
                let seen = positions.iter().take_while(|at| **at < used.columns).count();
                relation.columns.truncate(seen);
                relation.never_null = relation.never_null.filter(|at| *at < seen);
                if relation.key.iter().any(|at| *at >= seen) {
                    relation.key.clear();
                }
                source.visible.clone_from(&relation.columns);
            }
            Some(Within::System | Within::Kept) => {}
            None => {
                if let Some(defines) = self.views.defines.borrow_mut().as_mut() {
                    let column = |((_, expr), at): (&(String, Expr), usize)| match expr {
                        Expr::Column(column) => Some((column.clone(), at)),
                        _ => None,
                    };
                    let columns = relation.columns.iter().zip(positions).filter_map(column).collect();
                    defines.relations.push(Read { space, name: name.to_owned(), width, columns });
                }
            }
        }
        Ok(())
    }

    /// Notes the schema of a relation that a definition reads.
    pub(super) fn note_schema(&self, name: &Name, space: Space) {
        let mut defines = self.views.defines.borrow_mut();
        if let Some(defines) = defines.as_mut().filter(|_| self.views.within.borrow().is_empty()) {
            defines.schemas.push(with_schema(name, Some(&kept_schema(space))));
        }
    }

    /// Notes the schema before a table's name before a column's.
    pub(super) fn note_schema_of_column(&self, name: &Name) {
        let mut defines = self.views.defines.borrow_mut();
        if let Some(defines) = defines.as_mut().filter(|_| self.views.within.borrow().is_empty())
            && let [schema, table, _] = name.parts()
            && let Some(space) = self.planner.catalog.schema(&schema.name)
        {
            let place = schema.at as usize..table.at as usize;
            defines.schemas.push((place, format!("{}.", kept_schema(space))));
        }
    }

    /// The catalogue in which names are looked up: that of definitions, within one.
    pub(super) fn catalog(&self) -> &Arc<Catalog> {
        match self.is_of_text() {
            true => self.views.of_definitions.get_or_init(|| self.planner.catalog.of_definitions()),
            false => self.planner.catalog,
        }
    }

    /// Binds a default, or a condition, which the catalogue keeps.
    pub(super) fn within_kept<T>(&self, bind: impl FnOnce() -> Result<T>) -> Result<T> {
        self.within_of(Within::Kept, bind)
    }

    /// Notes what a `*` means (invariant 3).
    pub(super) fn note_star(&self, columns: &[(String, Expr)], scope: &Scope<'_>, at: At) -> Result<()> {
        let mut defines = self.views.defines.borrow_mut();
        let Some(defines) = defines.as_mut().filter(|_| self.views.within.borrow().is_empty()) else { return Ok(()) };
        if columns.is_empty() {
            return wrong(at, "0A000", "SELECT of nothing is not supported in a view");
        }
        let text = |(title, expr): &(String, Expr)| {
            let of = scope
                .source
                .relations
                .iter()
                .find(|relation| relation.columns.iter().any(|(name, column)| name == title && column == expr));
            match of {
                Some(relation) => format!("{}.{}", quoted(&relation.name), quoted(title)),
                None => quoted(title),
            }
        };
        defines.stars.push((at, columns.iter().map(text).collect::<Vec<_>>().join(", ")));
        Ok(())
    }
}
