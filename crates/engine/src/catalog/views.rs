//! Views: their definition, and their rows in system tables (*format*):
//!
//! | table | columns |
//! |---|---|
//! | 6 views | oid, name, sql (of the query), zone (in which its constants are read), depth (levels of the query), checked (`local` or `cascaded`; NULL: no option) |
//! | 7 view_uses | view (oid), relation (name), columns (how many that had), used (positions, "0,2"), schema (oid, NULL: public) |
//!
//! A view's columns are rows of table 2, as a table's are.
//!
//! 1. What a view reads is there, and keeps its name and those of its columns that the view names, as long as the view
//!    is there. So the view's text means what it meant when it was written.
//! 2. A view sees no column that a relation has got since ([`ViewUse::columns`]).
//! 3. Relations are known by name, because TRUNCATE gives a table another object id.
//! 4. No view reads itself, through whatever others.
//! 5. A database of before has no rows here: it has no views. A row of before has no `checked`.
use super::names::{Among, Placed, RelationName, Space};
use super::system::{bad, object, positions, positions_text};
use super::{Catalog, ColumnDef, Table};
use crate::error::Result;
use crate::types::{DataType, Datum};
use std::sync::{Arc, LazyLock};
use terrace_storage::ObjectId;

pub(crate) const VIEWS: ObjectId = ObjectId(6);
pub(crate) const VIEW_USES: ObjectId = ObjectId(7);

#[derive(Clone, Debug, PartialEq)]
pub struct View {
    pub oid: ObjectId,
    /// Its schema, or its session's space.
    pub space: Space,
    /// It goes with its session.
    pub temporary: bool,
    pub name: String,
    pub columns: Vec<ColumnDef>,
    /// The query, as SQL text.
    pub sql: String,
    /// The time zone in which constants of the text are read.
    pub zone: String,
    /// A bound on the levels of the query, those of the views that it reads included.
    pub depth: u32,
    pub uses: Vec<ViewUse>,
    /// WITH CHECK OPTION.
    pub check: Option<ViewCheck>,
}

/// Which conditions the rows must meet that a change of a view makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewCheck {
    /// The view's own, and those of the views below that say so.
    Local,
    /// The view's own, and those of all views below.
    Cascaded,
}

impl ViewCheck {
    /// As the catalogue calls it.
    pub fn name(self) -> &'static str {
        match self {
            ViewCheck::Local => "local",
            ViewCheck::Cascaded => "cascaded",
        }
    }
}

/// A table, a sequence or a view that a view reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewUse {
    pub space: Space,
    pub relation: String,
    /// The columns that the view sees: so many of the first, dropped ones among them.
    pub columns: usize,
    /// Positions of those that it names.
    pub used: Vec<usize>,
}

static DEFINITIONS: LazyLock<[Arc<Table>; 2]> = LazyLock::new(|| {
    use DataType::{Int4, Int8, Text};
    let table = |oid, name: &str, columns: &[(&str, DataType)]| {
        let columns = columns.iter().map(|(name, of)| ColumnDef::new(name, *of)).collect();
        Arc::new(Table::new(oid, name.into(), columns, Vec::new()))
    };
    [
        table(
            VIEWS,
            "views",
            &[("oid", Int8), ("name", Text), ("sql", Text), ("zone", Text), ("depth", Int4), ("checked", Text)],
        ),
        table(
            VIEW_USES,
            "view_uses",
            &[("view", Int8), ("relation", Text), ("columns", Int4), ("used", Text), ("schema", Int8)],
        ),
    ]
});

/// The definition of one of the two tables.
pub(crate) fn table(oid: ObjectId) -> &'static Arc<Table> {
    &DEFINITIONS[usize::from(oid == VIEW_USES)]
}

pub(crate) fn row(view: &View) -> Vec<Datum> {
    let mut row = vec![
        Datum::Int8(view.oid.0.into()),
        Datum::text(view.name.as_str()),
        Datum::text(view.sql.as_str()),
        Datum::text(view.zone.as_str()),
        Datum::Int4(view.depth as i32),
    ];
    row.extend(view.check.map(|check| Datum::text(check.name())));
    row
}

pub(crate) fn use_row(view: ObjectId, used: &ViewUse) -> Vec<Datum> {
    let mut row = vec![
        Datum::Int8(view.0.into()),
        Datum::text(used.relation.as_str()),
        Datum::Int4(used.columns as i32),
        Datum::text(positions_text(&used.used)),
    ];
    row.extend((used.space != Space::PUBLIC).then(|| Datum::Int8(used.space.0.0.into())));
    row
}

/// A view without its columns and without what it reads, as if it were in the schema public.
pub(crate) fn read(row: &[Datum]) -> Result<View> {
    let [oid, Datum::Text(name), Datum::Text(sql), Datum::Text(zone), Datum::Int4(depth), checked] = row else {
        return Err(bad("views"));
    };
    let read = || {
        Some(View {
            oid: object(oid)?,
            space: Space::PUBLIC,
            temporary: false,
            name: name.to_string(),
            columns: Vec::new(),
            sql: sql.to_string(),
            zone: zone.to_string(),
            depth: u32::try_from(*depth).ok()?,
            uses: Vec::new(),
            check: match checked {
                Datum::Null => None,
                Datum::Text(name) if **name == *"local" => Some(ViewCheck::Local),
                Datum::Text(name) if **name == *"cascaded" => Some(ViewCheck::Cascaded),
                _ => return None,
            },
        })
    };
    read().ok_or_else(|| bad("views"))
}

/// The view's object id, and what it reads.
pub(crate) fn read_use(row: &[Datum]) -> Result<(ObjectId, ViewUse)> {
    let [view, Datum::Text(relation), Datum::Int4(columns), Datum::Text(used), schema] = row else {
        return Err(bad("view uses"));
    };
    let read = || {
        let used = if used.is_empty() { Vec::new() } else { positions(used)? };
        let columns = usize::try_from(*columns).ok()?;
        let space = if schema.is_null() { Space::PUBLIC } else { Space(object(schema)?) };
        Some((object(view)?, ViewUse { space, relation: relation.to_string(), columns, used }))
    };
    read().ok_or_else(|| bad("view uses"))
}

impl ViewUse {
    /// The relation, to every session.
    pub fn name(&self) -> RelationName {
        RelationName::new(Among::In(self.space), self.relation.as_str())
    }

    fn is_of(&self, space: Space, name: &str) -> bool {
        self.space == space && self.relation == name
    }
}

impl Catalog {
    /// By schema, then by name.
    pub fn views(&self) -> impl Iterator<Item = &Arc<View>> {
        self.views.values()
    }

    /// The views that read a relation, oldest first; with `column`, those that name its column at that position.
    pub fn views_on(&self, (space, name): (Space, &str), column: Option<usize>) -> Vec<Arc<View>> {
        let names = |used: &ViewUse| used.is_of(space, name) && column.is_none_or(|at| used.used.contains(&at));
        let mut found: Vec<_> = self.views().filter(|view| view.uses.iter().any(names)).cloned().collect();
        found.sort_by_key(|view| view.oid);
        found
    }

    /// Whether a view reads a relation, through whatever others.
    pub fn reads(&self, view: &View, space: Space, name: &str) -> bool {
        let deeper = |used: &ViewUse| {
            self.views.get(used.space, &used.relation).is_some_and(|inner| self.reads(inner, space, name))
        };
        view.uses.iter().any(|used| used.is_of(space, name) || deeper(used))
    }

    /// The most levels that a view has.
    pub fn deepest_view(&self) -> usize {
        self.views().map(|view| view.depth as usize).max().unwrap_or(0)
    }

    pub(crate) fn with_views(&self, views: Vec<Arc<View>>) -> Catalog {
        let mut all = Placed::default();
        for view in views {
            all.insert(view.space, &view.name.clone(), view);
        }
        Catalog { views: Arc::new(all), version: super::next_version(), ..self.clone() }
    }

    /// This catalogue with a view added or replaced.
    pub(crate) fn with_view(&self, view: View) -> Catalog {
        let others = self.views().filter(|other| other.oid != view.oid).cloned();
        let mut all: Vec<Arc<View>> = others.collect();
        all.push(Arc::new(view));
        self.with_views(all)
    }

    pub(crate) fn without_view(&self, oid: ObjectId) -> Catalog {
        self.with_views(self.views().filter(|view| view.oid != oid).cloned().collect())
    }

    /// What a view reads that is not as it left it (invariant 1).
    pub(crate) fn missing_of(&self, view: &View) -> Option<String> {
        let lacks = |used: &&ViewUse| {
            let relation = used.name();
            let columns = match (self.table(&relation), self.view(&relation)) {
                (Some(table), _) => &table.columns,
                (None, Some(view)) => &view.columns,
                (None, None) => return true,
            };
            columns.len() < used.columns || used.used.iter().any(|at| columns.get(*at).is_none_or(|c| c.dropped))
        };
        view.uses.iter().find(lacks).map(|used| used.relation.clone())
    }
}
