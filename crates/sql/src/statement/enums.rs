//! CREATE TYPE ... AS ENUM, ALTER TYPE and DROP TYPE. What is of composite types alone: [`super::composites`].
//!
//! 1. Columns know their type by its oid. Texts (defaults, conditions, views) know it by its name, and its labels and
//!    attributes by theirs: what such a text says of a type stays as it is. So what a text has in it of a type gets no
//!    other name (0A000), and a type that a text has in it does not go (2BP01).
use crate::error::unsupported;
use crate::parse;
use crate::parse::qualified::{shown_relation, shown_type, type_in};
use crate::parse::stored::Stored;
use crate::parse::types::known;
use crate::statement::composites::has_within;
use crate::statement::ddl::check_name;
use crate::statement::outcome::notice;
use crate::statement::run::Run;
use crate::statement::target::schema_of_new;
use crate::statement::views::{dependent_views, shown_view};
use std::sync::Arc;
use terrace_engine::types::CompositeType;
use terrace_engine::types::enums::Place;
use terrace_engine::{
    Among, Catalog, ColumnDef, DataType, Domain, EngineError, Placing, RelationName, Result, Space, Table, View,
};
use terrace_grammar::quoted;
use terrace_grammar::statement::{
    AlterEnum, CreateEnum, Drop, EnumChange, Expr, ExprKind, Literal, Name, Node, Statement, TypeName, walk,
};
use terrace_storage::ObjectId;

type Notices = Vec<EngineError>;

impl Run<'_> {
    pub(crate) async fn create_enum(&self, create: &CreateEnum) -> Result<Notices> {
        let named = parse::relation(&create.name)?;
        let name = new_name(&named.name)?;
        self.lock_definitions().await?;
        let catalog = self.begin_statement().await;
        let space = schema_of_new(&named, "type", &catalog)?;
        self.info.actor(&catalog).permit_creation(&catalog, Placing::In(space))?;
        let make = async { self.cell.lock().await.open().create_enum(space, &name, &create.labels).await };
        let of = self.cancel.run(make).await?;
        self.own(ObjectId(of.def().oid)).await?;
        Ok(vec![])
    }

    pub(crate) async fn alter_enum(&self, alter: &AlterEnum) -> Result<Notices> {
        let (name, own, catalog) = self.found(&alter.name).await?;
        let DataType::Enum(of) = own else {
            return Err(EngineError::new("42809", format!("{} is not an enum", quoted(&name))));
        };
        match &alter.change {
            EnumChange::Add { if_not_exists: true, label, .. } if of.def().label(label).is_some() => {
                return Ok(vec![notice("42710", format!("enum label \"{label}\" already exists, skipping"))]);
            }
            EnumChange::Add { label, beside, .. } => {
                let place = match beside {
                    None => Place::Last,
                    Some((beside, true)) => Place::After(beside),
                    Some((beside, false)) => Place::Before(beside),
                };
                let add = async { self.cell.lock().await.open().add_enum_label(of, label, place).await };
                self.cancel.run(add).await?;
            }
            EnumChange::Rename { from, to } => {
                let has_label = |text: &Text<'_>| {
                    let casts = || text.casts_to((own.pg_oid(), &name), &catalog);
                    (text.is_about(own) || casts()) && text.has_literal(from)
                };
                refuse_named(&catalog, &format!("renaming label \"{from}\" of type {name}"), has_label)?;
                let rename = async { self.cell.lock().await.open().rename_enum_label(of, from, to).await };
                self.cancel.run(rename).await?;
            }
        }
        Ok(vec![])
    }

    /// ALTER TYPE ... RENAME TO.
    pub(crate) async fn rename_type(&self, name: &Name, to: &str) -> Result<Notices> {
        let (name, of, catalog) = self.found(name).await?;
        let to = new_name(to)?;
        refuse_named(&catalog, &format!("renaming type {name}"), |text| text.casts_to((of.pg_oid(), &name), &catalog))?;
        let rename = async { self.cell.lock().await.open().rename_type(of, &to).await };
        self.cancel.run(rename).await?;
        Ok(vec![])
    }

    pub(crate) async fn drop_types(&self, drop: &Drop) -> Result<Notices> {
        let mut notices = vec![];
        for name in &drop.names {
            if self.is_domain(name).await {
                self.drop_domains(&Drop { names: vec![name.clone()], ..drop.clone() }).await?;
                continue;
            }
            match self.found(name).await {
                Ok((name, of, _)) => self.drop_type(&name, of, drop.cascade, &mut notices).await?,
                Err(error) if drop.if_exists && matches!(error.state.0, "42704" | "3F000") => {
                    notices.push(notice("00000", format!("{}, skipping", error.message)));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(notices)
    }

    /// CASCADE takes columns and views along, but no texts (invariant 1).
    pub(super) async fn drop_type(&self, name: &str, of: DataType, cascade: bool, notices: &mut Notices) -> Result<()> {
        let catalog = self.begin_statement().await;
        let space = catalog.space_of_type(of.pg_oid()).unwrap_or(Space::PUBLIC);
        let what = format!("type {}", shown_type(of.pg_oid(), (space, name), &catalog));
        let columns = columns_of(&catalog, of);
        let shown = |(table, at): &(Arc<Table>, usize)| column_of(table, *at, &catalog);
        let mut dependents: Vec<String> = columns.iter().map(shown).collect();
        let attributes = attributes_of(&catalog, of);
        let shown = |(composite, name): &(CompositeType, String)| {
            let def = composite.def();
            let space = catalog.space_of_type(def.oid).unwrap_or(Space::PUBLIC);
            let of = shown_type(def.oid, (space, &def.name), &catalog);
            format!("column {} of composite type {of}", quoted(name))
        };
        dependents.extend(attributes.iter().map(shown));
        let domains: Vec<Arc<Domain>> = catalog.domains().filter(|domain| is_of(domain.base, of)).cloned().collect();
        let shown =
            |domain: &Arc<Domain>| format!("type {}", shown_type(domain.oid, (domain.space, &domain.name), &catalog));
        dependents.extend(domains.iter().map(shown));
        let mut views = vec![];
        for view in catalog.views().filter(|view| view.columns.iter().any(|column| is_of(column.data_type, of))) {
            let shown = shown_view(view, &catalog);
            views.push((view.clone(), format!("{shown} depends on {what}")));
            dependent_views(&catalog, (view.space, &view.name), None, &shown, &mut views);
        }
        dependents.extend(views.iter().map(|(view, _)| shown_view(view, &catalog)));
        let is_gone = |text: &Text<'_>| dependents.iter().any(|gone| text.of == *gone || text.within == *gone);
        let texts =
            texts(&catalog).into_iter().filter(|text| text.casts_to((of.pg_oid(), name), &catalog) && !is_gone(text));
        let texts: Vec<String> = texts.map(|text| text.of).collect();
        if !cascade {
            let all: Vec<String> = dependents.into_iter().chain(texts).collect();
            return match all.is_empty() {
                true => self.drop_definition(of).await,
                false => Err(needed(&what, &all)),
            };
        }
        if let Some(text) = texts.first() {
            let error = unsupported(format!("DROP TYPE ... CASCADE of {what}, which {text} has in it,"));
            return Err(error.with_hint(format!("Drop {text} first.")));
        }
        self.drop_dependent_views(&views, &mut vec![]).await?;
        let count = dependents.len();
        match dependents.as_slice() {
            [] => {}
            [one] => notices.push(notice("00000", format!("drop cascades to {one}"))),
            all => {
                let lines: Vec<String> = all.iter().map(|one| format!("drop cascades to {one}")).collect();
                let told = notice("00000", format!("drop cascades to {count} other objects"));
                notices.push(told.with_detail(lines.join("\n")));
            }
        }
        for (table, at) in columns {
            let column = table.columns[at].name.clone();
            let table = self.begin_statement().await.table_by_oid(table.oid).cloned().unwrap_or(table);
            self.drop_column(&table, &column, (false, true), notices).await?;
        }
        for domain in domains {
            let catalog = self.begin_statement().await;
            self.drop_domain(&domain, &catalog, true, notices).await?;
        }
        for (composite, name) in attributes {
            self.drop_attribute(composite, name).await?;
        }
        self.drop_definition(of).await
    }

    async fn drop_definition(&self, of: DataType) -> Result<()> {
        let drop = async { self.cell.lock().await.open().drop_type(of).await };
        self.cancel.run(drop).await
    }

    /// A type by its name, under the lock of definitions. 42704
    pub(super) async fn found(&self, name: &Name) -> Result<(String, DataType, Arc<Catalog>)> {
        self.lock_definitions().await?;
        let catalog = self.begin_statement().await;
        let own = own_name(name)?;
        if let Some(of) = catalog.own_type(&own) {
            let object = ObjectId(of.pg_oid());
            self.info.actor(&catalog).require_owner(&catalog, object, ("type", &own.name))?;
            return Ok((own.name, of, catalog));
        }
        if catalog.table(&own).is_some() || catalog.view(&own).is_some() {
            let error = EngineError::new("42809", format!("{} is not an enum", quoted(&own.name)));
            return Err(error);
        }
        if let Among::Schema(schema) = &own.among {
            catalog.require_schema(schema)?;
        }
        Err(undefined_type(name))
    }
}

/// The name that a type of the user's would have. 42704 where its schema has none.
pub(super) fn own_name(name: &Name) -> Result<RelationName> {
    match parse::relation(name) {
        Err(error) if error.state.0 == "42501" => Err(undefined_type(name)),
        other => other,
    }
}

pub(crate) fn undefined_type(name: &Name) -> EngineError {
    EngineError::new("42704", format!("type \"{}\" does not exist", name.shown()))
}

/// A name that a type may get: where it is shown, only signs tell whether it needs quotes.
pub(super) fn new_name(name: &str) -> Result<String> {
    check_name(name)?;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '$');
    match name.chars().all(plain) && quoted(name) != name && !name.starts_with(|c: char| c.is_ascii_digit()) {
        true => Err(unsupported(format!("a type with the name \"{name}\", which is a keyword,"))),
        false => Ok(name.to_owned()),
    }
}

/// Whether values are of a type, or arrays of it.
pub(super) fn is_of(used: DataType, of: DataType) -> bool {
    used.item().unwrap_or(used).pg_oid() == of.pg_oid()
}

/// Attributes of a type, or of arrays of it.
fn attributes_of(catalog: &Catalog, of: DataType) -> Vec<(CompositeType, String)> {
    let of_type = |composite: CompositeType| {
        let found = composite.def().attributes().filter(move |attribute| is_of(attribute.data_type, of));
        found.map(move |attribute| (composite, attribute.name.clone()))
    };
    catalog.composite_types().flat_map(of_type).collect()
}

/// Columns of a type, or of arrays of it.
pub(super) fn columns_of(catalog: &Catalog, of: DataType) -> Vec<(Arc<Table>, usize)> {
    let of_table = |table: &Arc<Table>| {
        let columns = table.columns.iter().enumerate();
        let found = columns.filter(|(_, column)| !column.dropped && is_of(column.data_type, of));
        found.map(|(at, _)| (table.clone(), at)).collect::<Vec<_>>()
    };
    catalog.tables().flat_map(of_table).collect()
}

fn column_of(table: &Table, at: usize, catalog: &Catalog) -> String {
    let shown = shown_relation(table.space, &table.name, catalog);
    format!("column {} of table {shown}", quoted(&table.columns[at].name))
}

/// 2BP01
pub(super) fn needed(what: &str, dependents: &[String]) -> EngineError {
    let lines: Vec<String> = dependents.iter().map(|one| format!("{one} depends on {what}")).collect();
    let error = EngineError::new("2BP01", format!("cannot drop {what} because other objects depend on it"));
    let hint = "Use DROP ... CASCADE to drop the dependent objects too.";
    error.with_detail(lines.join("\n")).with_hint(hint)
}

/// 0A000 where a text has something in it (invariant 1).
pub(super) fn refuse_named(catalog: &Catalog, doing: &str, has: impl Fn(&Text<'_>) -> bool) -> Result<()> {
    match texts(catalog).iter().find(|text| has(text)) {
        Some(text) => {
            let error = unsupported(format!("{doing}, which {} has in it,", text.of));
            Err(error.with_hint(format!("Drop {} first, and make it again.", text.of)))
        }
        None => Ok(()),
    }
}

/// A text of the catalogue.
pub(super) struct Text<'c> {
    sql: &'c str,
    /// What it belongs to, as PostgreSQL names it.
    of: String,
    /// The column whose default it is.
    within: String,
    /// The column, where no other one is in its reach.
    alone: Option<&'c ColumnDef>,
    /// The table's columns have it in their reach. A view's may be any.
    table: Option<&'c Table>,
    view: Option<&'c View>,
}

fn texts(catalog: &Catalog) -> Vec<Text<'_>> {
    let mut all = vec![];
    for table in catalog.tables() {
        let shown = shown_relation(table.space, &table.name, catalog);
        for (at, column) in table.columns.iter().enumerate() {
            let text = column.default_sql.as_deref().or(column.generated.as_deref());
            let Some(sql) = text else { continue };
            let within = column_of(table, at, catalog);
            let of = match (column.dropped, &column.generated) {
                (true, _) => format!("an index of table {shown}"),
                (false, Some(_)) => format!("generated {within}"),
                (false, None) => format!("default value for {within}"),
            };
            let alone = (!column.dropped && column.generated.is_none()).then_some(column);
            all.push(Text { sql, of, within, alone, table: Some(table), view: None });
        }
        for check in &table.checks {
            let of = format!("constraint {} on table {shown}", quoted(&check.name));
            all.push(Text { sql: &check.sql, of, within: String::new(), alone: None, table: Some(table), view: None });
        }
    }
    let of_view = catalog.views().map(|view| Text {
        sql: &view.sql,
        of: shown_view(view, catalog),
        within: String::new(),
        alone: None,
        table: None,
        view: Some(view),
    });
    all.extend(of_view);
    all
}

impl Text<'_> {
    /// Whether it may have values of a type in it, without naming it.
    pub(super) fn is_about(&self, of: DataType) -> bool {
        self.table.is_none_or(|table| table.columns.iter().any(|column| is_of(column.data_type, of)))
    }

    /// Whether it names a type: by its oid, or else by its name.
    pub(super) fn casts_to(&self, (oid, name): (u32, &str), catalog: &Catalog) -> bool {
        let is = |to: &TypeName| match type_in(to, catalog) {
            Some((_, _, found)) => found == oid,
            None => to.name.last().name == name && known(to).is_err(),
        };
        // In a list of a record's columns, or in a text that is a type's name, no cast has it.
        let word = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$'));
        let has_word = || self.sql.split(word).any(|part| part.eq_ignore_ascii_case(name)) || self.sql.contains(name);
        let elsewhere = || ["regtype", "to_record"].iter().any(|word| self.sql.to_ascii_lowercase().contains(word));
        self.any(|expr| matches!(&expr.kind, ExprKind::Cast { to, .. } if is(to)))
            || (self.view.is_some() && has_word() && elsewhere())
    }

    /// Whether it may read values that are of a type, or have one within: of a view, whether a relation that it reads
    /// has such columns.
    pub(super) fn reads(&self, of: DataType, catalog: &Catalog) -> bool {
        let has =
            |columns: &[ColumnDef]| columns.iter().any(|column| !column.dropped && has_within(column.data_type, of));
        let is_composite = |name: &str| catalog.composite_types().any(|known| known.def().name == name);
        match (self.table, self.view) {
            // A default reads no column.
            (Some(_), _) if let Some(column) = self.alone => {
                let casts =
                    |expr: &Expr| matches!(&expr.kind, ExprKind::Cast { to, .. } if is_composite(&to.name.last().name));
                has(std::slice::from_ref(column)) || self.any(casts)
            }
            (Some(table), _) => has(&table.columns),
            (None, Some(view)) => {
                has(&view.columns)
                    || view.uses.iter().any(|used| {
                        let name = used.name();
                        catalog.table(&name).is_some_and(|table| has(&table.columns))
                            || catalog.view(&name).is_some_and(|view| has(&view.columns))
                    })
            }
            (None, None) => true,
        }
    }

    fn has_literal(&self, label: &str) -> bool {
        self.any(|expr| matches!(&expr.kind, ExprKind::Literal(Literal::Text(text)) if text.contains(label)))
    }

    fn any(&self, is: impl Fn(&Expr) -> bool) -> bool {
        let mut found = false;
        let mut visit = |node: Node<'_>| {
            found |= matches!(node, Node::Expr(expr) if is(expr));
            !found
        };
        match self.table {
            Some(_) => {
                if let Some(stored) = Stored::read(self.sql) {
                    walk(Node::Expr(stored.expr()), &mut visit);
                }
            }
            None => {
                if let Ok(Some(parsed)) = parse::statement(self.sql)
                    && let Statement::Query(query) = parsed.statement()
                {
                    walk(Node::Query(query), &mut visit);
                }
            }
        }
        found
    }
}
