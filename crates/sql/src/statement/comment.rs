//! COMMENT ON TABLE, COLUMN, INDEX, SEQUENCE, VIEW, SCHEMA, TYPE, DOMAIN and CONSTRAINT.
use crate::error::{missing_relation, undefined_column, undefined_schema, undefined_table, unsupported};
use crate::parse::{relation, types};
use crate::pgcatalog;
use crate::statement::enums::{own_name, undefined_type};
use crate::statement::run::Run;
use crate::values::is_sequence;
use terrace_engine::catalog::comments::{Commented, OF_CONSTRAINT, of_check};
use terrace_engine::{Among, Catalog, Check, EngineError, Result, Space, Table};
use terrace_grammar::statement::{Comment, Name, ObjectKind};
use terrace_storage::ObjectId;

impl Run<'_> {
    pub(crate) async fn comment(&self, comment: &Comment) -> Result<Vec<EngineError>> {
        self.begin_statement().await;
        let run = async {
            let mut slot = self.cell.lock().await;
            let txn = slot.open();
            // What it is about stays, from here on.
            txn.lock_definitions().await?;
            let catalog = txn.catalog();
            let of = match &comment.constraint {
                Some(name) => {
                    let constraint = constraint(&catalog, comment, &name.name)?;
                    let owner = (constraint.owner, named(comment));
                    self.info.actor(&catalog).require_owner(&catalog, owner.0, owner.1)?;
                    let text = comment.text.as_deref().filter(|text| !text.is_empty());
                    let text = text.map(|text| {
                        constraint.check.as_ref().map_or_else(|| text.to_owned(), |name| of_check(name, text))
                    });
                    return txn.comment(constraint.of, text.as_deref()).await;
                }
                None => commented(&catalog, comment)?,
            };
            self.info.actor(&catalog).require_owner(&catalog, owned(&catalog, of.0), named(comment))?;
            // An empty text is none, as in PostgreSQL. Of the schema public it is kept: without it, there is a text.
            let is_public = of.0 == Space::PUBLIC.0;
            let text = match &comment.text {
                None if is_public => Some(""),
                text => text.as_deref().filter(|text| !text.is_empty() || is_public),
            };
            txn.comment(of, text).await
        };
        self.cancel.run(run).await.map(|()| vec![])
    }

    /// What is said of CHECK constraints of a table goes with their names, which are others now.
    pub(crate) async fn follow_checks(&self, table: &Table, checks: &[Check]) -> Result<()> {
        let catalog = self.begin_statement().await;
        let has = |checks: &[Check], name: &str| checks.iter().any(|check| check.name == name);
        for (position, _, text) in catalog.check_comments(table.oid).filter(|(_, name, _)| !has(checks, name)) {
            // One of as many has another name.
            let is_new = |check: &&Check| table.checks.len() == checks.len() && !has(&table.checks, &check.name);
            let text = checks.iter().find(is_new).map(|check| of_check(&check.name, text));
            let of = (table.oid, position);
            let change = async { self.cell.lock().await.open().comment(of, text.as_deref()).await };
            self.cancel.run(change).await?;
        }
        Ok(())
    }
}

/// A constraint of which something is said.
struct Constraint {
    of: Commented,
    owner: ObjectId,
    /// Its name, where it is a CHECK constraint of a table.
    check: Option<String>,
}

/// 42P01, 42704
fn constraint(catalog: &Catalog, comment: &Comment, name: &str) -> Result<Constraint> {
    let missing = |what: String| EngineError::new("42704", format!("constraint \"{name}\" for {what} does not exist"));
    let found = |oid: u32, owner: ObjectId| {
        let of = (ObjectId(oid), OF_CONSTRAINT);
        Ok(Constraint { of, owner, check: None })
    };
    if comment.kind == Some(ObjectKind::Domain) {
        let (of, _) = type_of_user(&comment.name, true, catalog)?;
        let domain = catalog.domain_of_oid(of.0).ok_or_else(|| undefined_type(&comment.name))?;
        let check = domain.checks.iter().find(|check| check.name == name);
        let check = check.ok_or_else(|| missing(format!("domain {}", domain.name)))?;
        return found(check.oid, of);
    }
    let relation = relation(&comment.name)?;
    let table = catalog.table(&relation).ok_or_else(|| match catalog.relation_exists(&relation) {
        true => missing(format!("table \"{}\"", relation.name)),
        false => missing_relation(catalog, &relation),
    })?;
    if let Some(index) = table.indexes.iter().find(|index| index.is_constraint() && index.name == name) {
        return found(index.oid.0, table.oid);
    }
    if let Some(key) = table.foreign_keys.iter().find(|key| key.name == name) {
        return found(key.oid.0, table.oid);
    }
    if !table.checks.iter().any(|check| check.name == name) {
        return Err(missing(format!("table \"{}\"", table.name)));
    }
    let positions: Vec<(u32, &str)> = catalog.check_comments(table.oid).map(|(at, own, _)| (at, own)).collect();
    let known = positions.iter().find(|(_, own)| *own == name).map(|(at, _)| *at);
    let free = || positions.iter().map(|(at, _)| at + 1).max().unwrap_or(OF_CONSTRAINT);
    let of = (table.oid, known.unwrap_or_else(free));
    Ok(Constraint { of, owner: table.oid, check: Some(name.to_owned()) })
}

/// Whose owner may say something of an object: an index is its table's, a relation that stands for a type the type's.
fn owned(catalog: &Catalog, object: ObjectId) -> ObjectId {
    let of_index = catalog.tables().find(|table| table.index(object).is_some());
    let of_class = catalog.composite_types().find(|of| of.def().class == object.0);
    let of_class = of_class.map_or(object, |of| ObjectId(of.def().oid));
    of_index.map_or(of_class, |table| table.oid)
}

/// What a comment is of, as an error calls it.
fn named(comment: &Comment) -> (&'static str, &str) {
    let kind = match comment.kind {
        Some(ObjectKind::View) => "view",
        Some(ObjectKind::Index) => "index",
        Some(ObjectKind::Sequence) => "sequence",
        Some(ObjectKind::Schema) => "schema",
        Some(ObjectKind::Type | ObjectKind::Domain) => "type",
        Some(_) if comment.constraint.is_some() => "relation",
        Some(_) => "table",
        None => return ("relation", &comment.name.qualifier().last().unwrap_or(comment.name.last()).name),
    };
    (kind, &comment.name.last().name)
}

/// What a comment is of. 42P01, 42703, 42809
fn commented(catalog: &Catalog, comment: &Comment) -> Result<Commented> {
    let Some(kind) = comment.kind else { return column(catalog, &comment.name) };
    if kind == ObjectKind::Schema {
        return schema(&comment.name.last().name, catalog);
    }
    if matches!(kind, ObjectKind::Type | ObjectKind::Domain) {
        return type_of_user(&comment.name, kind == ObjectKind::Domain, catalog);
    }
    let name = relation(&comment.name)?;
    let table = || catalog.table(&name);
    let (found, what) = match kind {
        ObjectKind::Table => (table().filter(|table| !is_sequence(table)).map(|table| table.oid), "a table"),
        ObjectKind::Sequence => (table().filter(|table| is_sequence(table)).map(|table| table.oid), "a sequence"),
        ObjectKind::View => (catalog.view(&name).map(|view| view.oid), "a view"),
        ObjectKind::Index => (catalog.index(&name).map(|index| index.oid), "an index"),
        ObjectKind::Schema | ObjectKind::Type | ObjectKind::Domain | ObjectKind::Role => {
            return Err(unsupported("COMMENT on this"));
        }
    };
    match found {
        Some(oid) => Ok((oid, 0)),
        None if catalog.relation_exists(&name) => Err(EngineError::new("42809", format!("\"{name}\" is not {what}"))),
        None => Err(missing_relation(catalog, &name)),
    }
}

/// A type that a user made. Nothing is said of the types of the system.
fn type_of_user(name: &Name, domain: bool, catalog: &Catalog) -> Result<Commented> {
    let own = own_name(name)?;
    match (catalog.domain(&own), catalog.own_type(&own)) {
        (Some(of), _) => Ok((ObjectId(of.oid), 0)),
        (None, Some(of)) if !domain => Ok((ObjectId(of.pg_oid()), 0)),
        (None, Some(_)) => Err(EngineError::new("42809", format!("\"{own}\" is not a domain"))),
        (None, None) => {
            if let Among::Schema(schema) = &own.among {
                catalog.require_schema(schema)?;
            }
            let of_system = types::type_name(&name.shown()).is_some_and(|of| types::known(&of).is_ok());
            Err(if of_system { unsupported(format!("COMMENT ON TYPE {own}")) } else { undefined_type(name) })
        }
    }
}

/// Nothing is said of the schemas of the system.
fn schema(name: &str, catalog: &Catalog) -> Result<Commented> {
    match catalog.schema(name) {
        Some(space) => Ok((space.0, 0)),
        None if pgcatalog::is_schema(name) => Err(unsupported(format!("COMMENT ON SCHEMA {name}"))),
        None => Err(undefined_schema(name)),
    }
}

fn column(catalog: &Catalog, name: &Name) -> Result<Commented> {
    if name.qualifier().is_empty() {
        return Err(EngineError::new("42601", "column name must be qualified"));
    }
    let of = relation(&Name::new(name.qualifier().to_vec()))?;
    let column = &name.last().name;
    let found = match (catalog.table(&of), catalog.view(&of)) {
        (Some(table), _) => table.column(column).map(|at| (table.oid, at)),
        (None, Some(view)) => view.columns.iter().position(|own| own.name == *column).map(|at| (view.oid, at)),
        (None, None) if let Some(composite) = catalog.composite_type(&of) => {
            let at = composite.def().all().iter().position(|own| own.name == *column);
            at.map(|at| (ObjectId(composite.def().class), at))
        }
        (None, None) if catalog.relation_exists(&of) => {
            let message = format!("cannot set comment on relation \"{of}\"");
            let detail = "This operation is not supported for indexes.";
            return Err(EngineError::new("42809", message).with_detail(detail));
        }
        (None, None) => return Err(undefined_table(&of)),
    };
    let (oid, at) = found.ok_or_else(|| undefined_column(column, &of.name))?;
    Ok((oid, at as u32 + 1))
}
