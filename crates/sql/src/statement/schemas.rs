//! CREATE, ALTER and DROP SCHEMA, and SET SCHEMA.
//!
//! 1. All of it is done under the lock of definitions: what is in a schema stays until the statement has ended.
//! 2. Elements of CREATE SCHEMA are made by its owner, as if `search_path` began with the schema.
//! 3. CASCADE drops what is in a schema, and of what is elsewhere what needs it: views, foreign keys, defaults and
//!    columns.
use crate::error::{missing_relation, undefined_schema, unsupported};
use crate::parse;
use crate::parse::qualified::{shown_relation, shown_type};
use crate::parse::sequence_calls::sequence_of;
use crate::pgcatalog;
use crate::statement::enums::{columns_of, refuse_named, undefined_type};
use crate::statement::foreign_keys::dependents;
use crate::statement::kind::{Kind, Task, Work};
use crate::statement::outcome::notice;
use crate::statement::run::Run;
use crate::statement::views::{Dependent, dependent_views, shown_view};
use crate::values::{is_owned, is_sequence};
use std::sync::Arc;
use terrace_engine::catalog::access::{Access, Rights, Securable};
use terrace_engine::{Catalog, ColumnDef, DataType, EngineError, RelationName, Result, Space, Table};
use terrace_grammar::quoted;
use terrace_grammar::statement::{CreateSchema, Drop, Grant, Granted, Ident, Name, ObjectKind, SetSchema, Statement};
use terrace_storage::ObjectId;

type Notices = Vec<EngineError>;

/// A name that a schema may get. 42939, 42P06
fn new_name(name: &str) -> Result<&str> {
    if name.starts_with("pg_") {
        let error = EngineError::new("42939", format!("unacceptable schema name \"{name}\""));
        return Err(error.with_detail("The prefix \"pg_\" is reserved for system schemas."));
    }
    match pgcatalog::is_schema(name) {
        true => Err(EngineError::new("42P06", format!("schema \"{name}\" already exists"))),
        false => Ok(name),
    }
}

/// What follows is as the session's settings say, once it goes.
struct Again<'s>(&'s Run<'s>);

impl std::ops::Drop for Again<'_> {
    fn drop(&mut self) {
        self.0.within_schema(None);
    }
}

impl Run<'_> {
    fn within_schema(&self, schema: Option<(&str, &str)>) {
        if let Some(system) = &self.info.system {
            system.settings.lock().within_schema(schema);
        }
    }

    /// A schema by its name. 3F000; 42501 of the system's.
    pub(crate) fn schema_named(name: &str, catalog: &Catalog) -> Result<Space> {
        match pgcatalog::is_schema(name) {
            true => Err(EngineError::new("42501", format!("permission denied for schema {name}"))),
            false => catalog.schema(name).ok_or_else(|| undefined_schema(name)),
        }
    }

    pub(crate) async fn create_schema(&self, create: &CreateSchema) -> Result<Notices> {
        self.lock_definitions().await?;
        let catalog = self.begin_statement().await;
        let actor = self.info.actor(&catalog);
        let owner = match &create.owner {
            Some(owner) => crate::access::role_named(&owner.name, self.info, &catalog)?,
            None => actor.role.clone().unwrap_or_else(|| terrace_engine::Role::new("")),
        };
        actor.permit_database(&catalog, Rights::CREATE)?;
        if create.owner.is_some() && !actor.may_become(&catalog, owner.oid) {
            return Err(EngineError::new("42501", format!("must be member of role \"{}\"", owner.name)));
        }
        let name = create.name.as_ref().map_or(owner.name.as_str(), |name| name.name.as_str());
        if create.if_not_exists && !create.elements.is_empty() {
            let message = "CREATE SCHEMA IF NOT EXISTS cannot include schema elements";
            return Err(EngineError::new("0A000", message));
        }
        if create.if_not_exists && (catalog.schema(name).is_some() || pgcatalog::is_schema(name)) {
            return Ok(vec![notice("42P06", format!("schema \"{name}\" already exists, skipping"))]);
        }
        let name = new_name(name)?;
        let acl = catalog.acl_of_new(owner.oid, ObjectId(0), Securable::Schema);
        let make = async {
            let mut slot = self.cell.lock().await;
            let space = slot.open().create_schema(name).await?;
            slot.open().set_access(space.0, Access::new(owner.oid, acl)).await
        };
        self.cancel.run(make).await?;
        let _again = Again(self);
        self.within_schema(Some((name, &owner.name)));
        let mut notices = vec![];
        for element in in_order(&create.elements) {
            refuse_elsewhere(element, name)?;
            let Work::Transaction(task) = Kind::of(element).work else { unreachable!("the grammar has no others") };
            notices.extend(Box::pin(self.schema_element(task)).await?);
        }
        Ok(notices)
    }

    async fn schema_element(&self, task: Task<'_>) -> Result<Notices> {
        match task {
            Task::CreateTable(create) => Box::pin(self.create_table(create)).await,
            Task::CreateTableAs(create) => Box::pin(self.create_table_as(create)).await.map(|_| vec![]),
            Task::CreateView(create) => Box::pin(self.create_view(create)).await,
            Task::CreateIndex(create) => Box::pin(self.create_index(create)).await,
            Task::CreateSequence(create) => Box::pin(self.create_sequence_statement(create)).await,
            Task::Grant(grant) => Box::pin(self.grant(grant)).await,
            _ => Err(unsupported("this in CREATE SCHEMA")),
        }
    }

    /// ALTER SCHEMA ... RENAME TO.
    pub(crate) async fn rename_schema(&self, name: &str, to: &str) -> Result<Notices> {
        self.lock_definitions().await?;
        let catalog = self.begin_statement().await;
        let space = Self::schema_named(name, &catalog)?;
        let actor = self.info.actor(&catalog);
        actor.require_owner(&catalog, space.0, ("schema", name))?;
        actor.permit_database(&catalog, Rights::CREATE)?;
        let to = new_name(to)?;
        let rename = async { self.cell.lock().await.open().rename_schema(space, to).await };
        self.cancel.run(rename).await.map(|()| vec![])
    }

    pub(crate) async fn drop_schemas(&self, drop: &Drop) -> Result<Notices> {
        self.lock_definitions().await?;
        let catalog = self.begin_statement().await;
        let actor = self.info.actor(&catalog);
        let (mut notices, mut doomed) = (vec![], vec![]);
        for name in &drop.names {
            let name = name.last().name.as_str();
            match catalog.schema(name) {
                Some(space) => {
                    actor.require_owner(&catalog, space.0, ("schema", name))?;
                    doomed.extend((!doomed.contains(&space)).then_some(space));
                }
                None if pgcatalog::is_schema(name) => {
                    let message = format!("cannot drop schema {name} because it is required by the database system");
                    return Err(EngineError::new("2BP01", message));
                }
                None if drop.if_exists => {
                    notices.push(notice("00000", format!("schema \"{name}\" does not exist, skipping")));
                }
                None => return Err(undefined_schema(name)),
            }
        }
        let contents = Contents::of(&doomed, &catalog);
        if !contents.lines.is_empty() && !drop.cascade {
            let what = match doomed.as_slice() {
                [one] => format!("schema {}", quoted(&catalog.space_name(*one))),
                _ => "desired object(s)".into(),
            };
            let them = if doomed.len() == 1 { "it" } else { "them" };
            let message = format!("cannot drop {what} because other objects depend on {them}");
            let lines: Vec<String> =
                contents.lines.iter().map(|(one, needed)| format!("{one} depends on {needed}")).collect();
            let error = EngineError::new("2BP01", message).with_detail(lines.join("\n"));
            return Err(error.with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        Box::pin(self.drop_contents(&contents)).await?;
        match contents.lines.as_slice() {
            [] => {}
            [(one, _)] => notices.push(notice("00000", format!("drop cascades to {one}"))),
            all => {
                let lines: Vec<String> = all.iter().map(|(one, _)| format!("drop cascades to {one}")).collect();
                let told = notice("00000", format!("drop cascades to {} other objects", all.len()));
                notices.push(told.with_detail(lines.join("\n")));
            }
        }
        for space in doomed {
            let drop = async { self.cell.lock().await.open().drop_schema(space).await };
            self.cancel.run(drop).await?;
        }
        Ok(notices)
    }

    /// Invariant 3.
    async fn drop_contents(&self, contents: &Contents) -> Result<()> {
        self.drop_dependent_views(&contents.views, &mut vec![]).await?;
        let catalog = self.begin_statement().await;
        let keys = contents.tables.iter().filter_map(|table| catalog.table_by_oid(table.oid));
        let keys: Vec<_> =
            keys.flat_map(|table| dependents(&catalog, table, &[], |key| key.table != table.oid)).collect();
        self.drop_dependents(&keys, &mut vec![]).await?;
        for (table, at) in &contents.defaults {
            let table = self.alone(&table.full_name()).await?;
            let column = ColumnDef { default_sql: None, ..table.columns[*at].clone() };
            self.change_column(&table, *at, column).await?;
        }
        for table in &contents.tables {
            let catalog = self.begin_statement().await;
            // A sequence goes with its table.
            let Some(table) = catalog.table_by_oid(table.oid) else { continue };
            let drop = async { self.cell.lock().await.open().drop_table(table).await };
            self.cancel.run(drop).await?;
            self.drop_owned(&table.columns).await?;
        }
        for oid in &contents.types {
            let catalog = self.begin_statement().await;
            if let Some(domain) = catalog.domain_of_oid(*oid) {
                self.drop_domain(&domain.clone(), &catalog, true, &mut vec![]).await?;
            } else if let Some(of) = catalog.own_types().find(|of| of.pg_oid() == *oid)
                && let Some(own) = of.own()
            {
                self.drop_type(own.name, of, true, &mut vec![]).await?;
            }
        }
        Ok(())
    }

    /// ALTER ... SET SCHEMA.
    pub(crate) async fn set_schema(&self, set: &SetSchema) -> Result<Notices> {
        self.lock_definitions().await?;
        let catalog = self.begin_statement().await;
        let named = parse::relation(&set.name)?;
        let found = match set.kind {
            ObjectKind::Type | ObjectKind::Domain => return self.move_type(set, &named, &catalog).await,
            _ => catalog.relation_exists(&named),
        };
        if !found {
            return match set.if_exists {
                true => Ok(vec![notice("00000", format!("relation \"{}\" does not exist, skipping", named.name))]),
                false => Err(missing_relation(&catalog, &named)),
            };
        }
        if let Some(view) = catalog.view(&named) {
            if set.kind == ObjectKind::Sequence {
                return Err(EngineError::new("42809", format!("\"{}\" is not a sequence", view.name)));
            }
            self.info.actor(&catalog).require_owner(&catalog, view.oid, ("view", &view.name))?;
            let Some(to) = self.other_schema(view.space, &set.to, &catalog)? else { return Ok(vec![]) };
            let run = async { self.cell.lock().await.open().move_view(view, to).await };
            return self.cancel.run(run).await.map(|()| vec![]);
        }
        let Some(table) = catalog.table(&named) else {
            return Err(EngineError::new("42809", format!("cannot change schema of index \"{}\"", named.name))
                .with_hint("Change the schema of the table instead."));
        };
        match set.kind {
            ObjectKind::View => return Err(EngineError::new("42809", format!("\"{}\" is not a view", table.name))),
            ObjectKind::Sequence if !is_sequence(table) => {
                return Err(EngineError::new("42809", format!("\"{}\" is not a sequence", table.name)));
            }
            _ => {}
        }
        self.info.actor(&catalog).require_owner_of(&catalog, table)?;
        if is_owned(table) {
            let users = catalog.tables().filter(|other| {
                let own = other.columns.iter().filter(|column| !column.dropped).filter_map(sequence_of);
                own.filter_map(|name| catalog.table(&name)).any(|sequence| sequence.oid == table.oid)
            });
            let of = users.map(|other| other.name.clone()).next().unwrap_or_default();
            let error = EngineError::new("0A000", "cannot move an owned sequence into another schema");
            return Err(error.with_detail(format!("Sequence \"{}\" is linked to table \"{of}\".", table.name)));
        }
        let Some(to) = self.other_schema(table.space, &set.to, &catalog)? else { return Ok(vec![]) };
        if table.temporary.is_some() {
            return Err(EngineError::new("0A000", "cannot move objects into or out of temporary schemas"));
        }
        self.move_table(&table.clone(), to).await?;
        Ok(vec![])
    }

    /// Where something moves to; `None`: it is there. 3F000, 42501
    fn other_schema(&self, from: Space, to: &Ident, catalog: &Catalog) -> Result<Option<Space>> {
        if to.name.starts_with("pg_temp") {
            return Err(EngineError::new("0A000", "cannot move objects into or out of temporary schemas"));
        }
        let space = Self::schema_named(&to.name, catalog)?;
        self.info.actor(catalog).permit_schema(catalog, space, Rights::CREATE)?;
        Ok((space != from).then_some(space))
    }

    /// The table, and the sequences that belong to its columns; the defaults that name them.
    async fn move_table(&self, table: &Arc<Table>, to: Space) -> Result<()> {
        let catalog = self.begin_statement().await;
        let mut moving = vec![table.clone()];
        let own = table.columns.iter().filter(|column| !column.dropped).filter_map(sequence_of);
        for sequence in own.filter_map(|name| catalog.table(&name)).filter(|sequence| is_owned(sequence)) {
            if moving.iter().all(|known| known.oid != sequence.oid) {
                moving.push(sequence.clone());
            }
        }
        for table in &moving {
            let run = async { self.cell.lock().await.open().move_table(table, to).await };
            self.cancel.run(run).await?;
        }
        for sequence in moving.iter().filter(|table| is_sequence(table)) {
            self.point_defaults(&sequence.full_name(), (to, &sequence.name)).await?;
        }
        Ok(())
    }

    async fn move_type(&self, set: &SetSchema, named: &RelationName, catalog: &Arc<Catalog>) -> Result<Notices> {
        let actor = self.info.actor(catalog);
        let doing = |name: &str| format!("moving type {name}");
        if let Some(domain) = catalog.domain(named) {
            actor.require_owner(catalog, ObjectId(domain.oid), ("type", &domain.name))?;
            let Some(to) = self.other_schema(domain.space, &set.to, catalog)? else { return Ok(vec![]) };
            refuse_named(catalog, &doing(&domain.name), |text| text.casts_to((domain.oid, &domain.name), catalog))?;
            let moved = terrace_engine::Domain { space: to, ..terrace_engine::Domain::clone(domain) };
            let run = async { self.cell.lock().await.open().replace_domain(moved).await };
            return self.cancel.run(run).await.map(|()| vec![]);
        }
        let of = catalog.own_type(named).ok_or_else(|| undefined_type(&set.name))?;
        if set.kind == ObjectKind::Domain {
            return Err(EngineError::new("42809", format!("{} is not a domain", quoted(&named.name))));
        }
        let def = of.own().ok_or_else(|| undefined_type(&set.name))?;
        actor.require_owner(catalog, ObjectId(def.oid), ("type", def.name))?;
        let from = catalog.space_of_type(def.oid).unwrap_or(Space::PUBLIC);
        let Some(to) = self.other_schema(from, &set.to, catalog)? else { return Ok(vec![]) };
        refuse_named(catalog, &doing(def.name), |text| text.casts_to((def.oid, def.name), catalog))?;
        let run = async { self.cell.lock().await.open().move_type(of, to).await };
        self.cancel.run(run).await.map(|()| vec![])
    }
}

/// Elements in the order in which they can be made: sequences, tables, views, indexes, privileges.
fn in_order(elements: &[Statement]) -> Vec<&Statement> {
    let rank = |element: &&Statement| match element {
        Statement::CreateSequence(_) => 0,
        Statement::CreateTable(_) | Statement::CreateTableAs(_) => 1,
        Statement::CreateView(_) => 2,
        Statement::CreateIndex(_) => 3,
        _ => 4,
    };
    let mut all: Vec<&Statement> = elements.iter().collect();
    all.sort_by_key(rank);
    all
}

/// 42P15 where an element names another schema.
fn refuse_elsewhere(element: &Statement, schema: &str) -> Result<()> {
    let name: Option<&Name> = match element {
        Statement::CreateSequence(create) => Some(&create.name),
        Statement::CreateTable(create) => Some(&create.name),
        Statement::CreateTableAs(create) => Some(&create.name),
        Statement::CreateView(create) => Some(&create.name),
        Statement::CreateIndex(create) => Some(&create.table),
        Statement::Grant(grant) => match &**grant {
            Grant { on: Granted::Tables(_) | Granted::Sequences(_), .. } => None,
            _ => None,
        },
        _ => None,
    };
    let temporary = match element {
        Statement::CreateSequence(create) => create.temporary,
        Statement::CreateTable(create) => create.temporary,
        Statement::CreateTableAs(create) => create.temporary,
        Statement::CreateView(create) => create.temporary,
        _ => false,
    };
    if temporary {
        return Err(EngineError::new("42P16", "cannot create temporary relation in non-temporary schema"));
    }
    match name.and_then(|name| name.qualifier().last()) {
        Some(other) if other.name != schema => {
            let other = &other.name;
            let message =
                format!("CREATE specifies a schema ({other}) different from the one being created ({schema})");
            Err(EngineError::new("42P15", message))
        }
        _ => Ok(()),
    }
}

/// What goes with schemas.
#[derive(Default)]
struct Contents {
    /// What goes, and what it needs, as messages name them: oldest first, each behind what it needs.
    lines: Vec<(String, String)>,
    views: Vec<Dependent>,
    tables: Vec<Arc<Table>>,
    /// Defaults of other tables that take values from sequences which go.
    defaults: Vec<(Arc<Table>, usize)>,
    types: Vec<u32>,
}

impl Contents {
    fn of(schemas: &[Space], catalog: &Arc<Catalog>) -> Contents {
        let mut found = Contents::default();
        let goes = |space: Space| schemas.contains(&space);
        let schema = |space: Space| format!("schema {}", quoted(&catalog.space_name(space)));
        found.tables = catalog.tables().filter(|table| goes(table.space)).cloned().collect();
        let domains = catalog.domains().filter(|domain| goes(domain.space)).map(|domain| domain.oid);
        let own = catalog.own_types().map(DataType::pg_oid);
        // Domains first: they may be over the others.
        found.types = domains.chain(own.filter(|oid| catalog.space_of_type(*oid).is_some_and(goes))).collect();
        let mut all: Vec<(u32, Space, Object)> = vec![];
        all.extend(found.tables.iter().map(|table| (table.oid.0, table.space, Object::Table(table.clone()))));
        let views = catalog.views().filter(|view| goes(view.space));
        all.extend(views.map(|view| (view.oid.0, view.space, Object::View(view.clone()))));
        let of_type = |oid: &u32| (*oid, catalog.space_of_type(*oid).expect("it was found"), Object::Type(*oid));
        all.extend(found.types.iter().map(of_type));
        // As PostgreSQL tells it: those of the schema that is named last come first.
        let place = |space: &Space| schemas.iter().rev().position(|schema| schema == space);
        all.sort_by_key(|(oid, space, _)| (place(space), *oid));
        for (_, space, object) in all {
            match object {
                Object::Table(table) => found.add_table(&table, &schema(space), &goes, catalog),
                Object::View(view) => {
                    found.lines.push((shown_view(&view, catalog), schema(space)));
                    if found.views.iter().all(|(known, _)| known.oid != view.oid) {
                        found.views.push((view.clone(), String::new()));
                    }
                    found.add_readers((view.space, &view.name), &shown_view(&view, catalog), &goes, catalog);
                }
                Object::Type(oid) => found.add_type((oid, space), &schema(space), &goes, catalog),
            }
        }
        found
    }

    /// Those that go by themselves are not said here.
    fn add_readers(&mut self, of: (Space, &str), shown: &str, goes: &dyn Fn(Space) -> bool, catalog: &Catalog) {
        let before = self.views.len();
        dependent_views(catalog, of, None, shown, &mut self.views);
        for (view, line) in self.views[before..].iter().filter(|(view, _)| !goes(view.space)) {
            let needed = line.split_once(" depends on ").map_or(shown, |(_, needed)| needed);
            self.lines.push((shown_view(view, catalog), needed.to_owned()));
        }
    }

    fn add_table(&mut self, table: &Arc<Table>, schema: &str, goes: &dyn Fn(Space) -> bool, catalog: &Catalog) {
        let kind = if is_sequence(table) { "sequence" } else { "table" };
        let shown = format!("{kind} {}", shown_relation(table.space, &table.name, catalog));
        let mut users: Vec<(Arc<Table>, usize)> = vec![];
        if is_sequence(table) {
            for other in catalog.tables() {
                for (at, column) in other.columns.iter().enumerate().filter(|(_, column)| !column.dropped) {
                    let of = sequence_of(column).and_then(|name| catalog.table(&name));
                    if of.is_some_and(|of| of.oid == table.oid) {
                        users.push((other.clone(), at));
                    }
                }
            }
        }
        let goes_with_table = is_owned(table) && users.iter().any(|(other, _)| goes(other.space));
        if !goes_with_table {
            self.lines.push((shown.clone(), schema.to_owned()));
        }
        for (other, at) in users.into_iter().filter(|(other, _)| !goes(other.space)) {
            let of = shown_relation(other.space, &other.name, catalog);
            let line = format!("default value for column {} of table {of}", quoted(&other.columns[at].name));
            self.lines.push((line, shown.clone()));
            self.defaults.push((other, at));
        }
        self.add_readers((table.space, &table.name), &shown, goes, catalog);
        for key in table.referenced_by.iter() {
            let Some(other) = catalog.table_by_oid(key.table).filter(|other| !goes(other.space)) else { continue };
            let of = shown_relation(other.space, &other.name, catalog);
            self.lines.push((format!("constraint {} on table {of}", quoted(&key.name)), shown.clone()));
        }
    }

    fn add_type(&mut self, (oid, space): (u32, Space), schema: &str, goes: &dyn Fn(Space) -> bool, catalog: &Catalog) {
        let domain = catalog.domain_of_oid(oid);
        let of_own = catalog.own_types().find(|of| of.pg_oid() == oid);
        let own = of_own.and_then(DataType::own).map(|own| own.name.to_owned());
        let name = domain.map(|domain| domain.name.clone()).or(own);
        let shown = format!("type {}", shown_type(oid, (space, &name.unwrap_or_default()), catalog));
        self.lines.push((shown.clone(), schema.to_owned()));
        let columns = match (of_own, domain) {
            (Some(of), _) => columns_of(catalog, of),
            (None, Some(domain)) => super::domains::columns_of(catalog, domain),
            (None, None) => vec![],
        };
        for (table, at) in columns.into_iter().filter(|(table, _)| !goes(table.space)) {
            let of = shown_relation(table.space, &table.name, catalog);
            let line = format!("column {} of table {of}", quoted(&table.columns[at].name));
            self.lines.push((line, shown.clone()));
        }
    }
}

/// Something in a schema.
enum Object {
    Table(Arc<Table>),
    View(Arc<terrace_engine::View>),
    Type(u32),
}
