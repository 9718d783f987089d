//! CREATE DOMAIN, ALTER DOMAIN and DROP DOMAIN.
//!
//! 1. A condition is kept as SQL text over VALUE. Of a column, VALUE is the column: so it is one more constraint of the
//!    table ([`super::checks`]). Of a cast, VALUE is what is cast ([`crate::plan::bind`]).
//! 2. Casts name a domain by its name: one that a text of the catalogue casts to gets no other name and does not go.
use crate::error::{from_datafusion, undefined_schema, unsupported};
use crate::functions::domains::{no_nulls, violated};
use crate::parse;
use crate::parse::qualified::{shown_relation, shown_type};
use crate::parse::stored::{self, Stored, VALUE, over_column};
use crate::parse::types::of_column;
use crate::plan::bind::over::{Over, Rows, Wanted};
use crate::statement::checks::checking_over;
use crate::statement::ddl::{check_name, choose_name};
use crate::statement::enums::{new_name, own_name, refuse_named, undefined_type};
use crate::statement::outcome::notice;
use crate::statement::run::Run;
use crate::statement::target::schema_of_new;
use crate::through::Called;
use datafusion::logical_expr::LogicalPlanBuilder;
use std::sync::Arc;
use terrace_engine::{Among, Catalog, Check, ColumnDef, EngineError, Isolation, Placing, Result, Table};
use terrace_engine::{Domain, DomainCheck};
use terrace_grammar::quoted;
use terrace_grammar::statement::{
    AlterDomain, ColumnConstraintKind, CreateDomain, Deferral, DomainChange, Drop, Expr, ExprKind, Ident, Name, Written,
};
use terrace_storage::ObjectId;

type Notices = Vec<EngineError>;

/// A table of one column, the value of a domain.
fn value_table(name: &str, domain: &Domain) -> Arc<Table> {
    let column = ColumnDef { digits: domain.digits, ..ColumnDef::new(VALUE, domain.base) };
    Arc::new(Table::new(ObjectId(0), name.to_owned(), vec![column], vec![]))
}

impl Run<'_> {
    pub(crate) async fn create_domain(&self, create: &CreateDomain) -> Result<Notices> {
        let named = parse::relation(&create.name)?;
        let name = new_name(&named.name)?;
        self.lock_definitions().await?;
        let catalog = self.begin_statement().await;
        let space = schema_of_new(&named, "domain", &catalog)?;
        self.info.actor(&catalog).permit_creation(&catalog, Placing::In(space))?;
        if create.collation.is_some() {
            return Err(unsupported("COLLATE"));
        }
        self.info.permit_type(&catalog, &create.data_type)?;
        let (base, digits, of) = of_column(&create.data_type, &catalog)?;
        base.check()?;
        let oid = self.new_oid().await;
        // As in PostgreSQL, the default is that of when it is made.
        let inherited = of.as_ref().and_then(|parent| parent.default_sql.clone());
        let checks = vec![];
        let mut domain =
            Domain { oid, space, name, base, digits, not_null: false, default_sql: None, checks, parent: of };
        let (mut null, mut not_null) = (false, false);
        for constraint in &create.constraints {
            let wrong = |what: &str| Err(EngineError::new("42601", format!("{what} not possible for domains")));
            if constraint.deferral != Deferral::default() {
                let message = "specifying constraint deferrability not supported for domains";
                return Err(EngineError::new("0A000", message));
            }
            match &constraint.kind {
                ColumnConstraintKind::Null => null = true,
                ColumnConstraintKind::NotNull => not_null = true,
                ColumnConstraintKind::Default(_) if domain.default_sql.is_some() => {
                    return Err(EngineError::new("42601", "multiple default expressions"));
                }
                ColumnConstraintKind::Default(default) => {
                    domain.default_sql = Some(self.default_of(&domain, default).await?);
                }
                ColumnConstraintKind::Check { expr, no_inherit } => {
                    if *no_inherit {
                        let message = "check constraints for domains cannot be marked NO INHERIT";
                        return Err(EngineError::new("42P16", message));
                    }
                    let name = constraint.name.as_ref();
                    let check = self.domain_check(&domain, expr, name, true).await?;
                    domain.checks.push(check);
                }
                ColumnConstraintKind::Unique(_) => return wrong("unique constraints"),
                ColumnConstraintKind::PrimaryKey(_) => return wrong("primary key constraints"),
                ColumnConstraintKind::References(_) => return wrong("foreign key constraints"),
                ColumnConstraintKind::Identity { .. } | ColumnConstraintKind::Generated(_) => {
                    return Err(EngineError::new("42601", "specifying GENERATED not supported for domains"));
                }
            }
            if null && not_null {
                return Err(EngineError::new("42601", "conflicting NULL/NOT NULL constraints"));
            }
        }
        domain.not_null = not_null;
        domain.default_sql = domain.default_sql.or(inherited);
        domain.checks.sort_by(|a, b| a.name.cmp(&b.name));
        let make = async { self.cell.lock().await.open().create_domain(domain).await };
        self.cancel.run(make).await?;
        self.own(ObjectId(oid)).await?;
        Ok(vec![])
    }

    async fn new_oid(&self) -> u32 {
        self.cell.lock().await.open().new_oid()
    }

    /// The text of a default that a domain may have.
    async fn default_of(&self, domain: &Domain, default: &Written) -> Result<String> {
        let column = ColumnDef { digits: domain.digits, ..ColumnDef::new(VALUE, domain.base) };
        self.check_default(default, &column, false).await?;
        self.kept_default(&column, &default.text).await
    }

    /// A new constraint of a domain, checked and named.
    async fn domain_check(
        &self,
        domain: &Domain,
        condition: &Written,
        name: Option<&Ident>,
        valid: bool,
    ) -> Result<DomainCheck> {
        let table = value_table(&domain.name, domain);
        let sql = stored::constraint(&condition.text, &domain.name)?;
        let taken = |name: &str| domain.checks.iter().any(|check| check.name == name);
        let name = match name {
            Some(given) if taken(&given.name) => {
                let message = format!("constraint \"{}\" for domain \"{}\" already exists", given.name, domain.name);
                return Err(EngineError::new("42710", message));
            }
            Some(given) => given.name.clone(),
            None => choose_name(&[domain.name.as_str()], "check", &taken),
        };
        check_name(&name)?;
        let sql = self.kept_check(&table, &sql).await?;
        self.check_plan(&table, &[Check { name: name.clone(), sql: sql.clone() }]).await?;
        Ok(DomainCheck { oid: self.new_oid().await, name, sql, valid })
    }

    pub(crate) async fn alter_domain(&self, alter: &AlterDomain) -> Result<Notices> {
        let (domain, catalog) = self.found_domain(&alter.name).await?;
        let mut new = Domain::clone(&domain);
        match &alter.change {
            DomainChange::Default(None) => new.default_sql = None,
            DomainChange::Default(Some(default)) => new.default_sql = Some(self.default_of(&domain, default).await?),
            DomainChange::NotNull(false) => new.not_null = false,
            DomainChange::NotNull(true) => {
                self.refuse_nulls_of(&catalog, &domain).await?;
                new.not_null = true;
            }
            DomainChange::Check { name, condition, not_valid } => {
                let check = self.domain_check(&domain, condition, name.as_ref(), !not_valid).await?;
                if check.valid {
                    self.refuse_broken(&catalog, &domain, &check).await?;
                }
                new.checks.push(check);
                new.checks.sort_by(|a, b| a.name.cmp(&b.name));
            }
            DomainChange::DropConstraint { if_exists, name } => {
                let before = new.checks.len();
                new.checks.retain(|check| check.name != name.name);
                if new.checks.len() == before {
                    let message = format!("constraint \"{}\" of domain \"{}\" does not exist", name.name, domain.name);
                    return match if_exists {
                        true => Ok(vec![notice("00000", format!("{message}, skipping"))]),
                        false => Err(EngineError::new("42704", message)),
                    };
                }
            }
            DomainChange::Validate(name) => {
                let Some(check) = new.checks.iter_mut().find(|check| check.name == name.name) else {
                    let message = format!("constraint \"{}\" of domain \"{}\" does not exist", name.name, domain.name);
                    return Err(EngineError::new("42704", message));
                };
                self.refuse_broken(&catalog, &domain, check).await?;
                check.valid = true;
            }
        }
        self.replace_domain(new).await?;
        Ok(vec![])
    }

    async fn replace_domain(&self, domain: Domain) -> Result<()> {
        let replace = async { self.cell.lock().await.open().replace_domain(domain).await };
        self.cancel.run(replace).await
    }

    /// ALTER DOMAIN ... RENAME TO, RENAME CONSTRAINT.
    pub(crate) async fn rename_domain(&self, name: &Name, part: Option<&Ident>, to: &str) -> Result<Notices> {
        let (domain, catalog) = self.found_domain(name).await?;
        let mut new = Domain::clone(&domain);
        match part {
            None => {
                refuse_named(&catalog, &format!("renaming domain {}", domain.name), |text| {
                    text.casts_to((domain.oid, &domain.name), &catalog)
                })?;
                new.name = new_name(to)?;
            }
            Some(part) => {
                if domain.checks.iter().any(|check| check.name == to) {
                    let message = format!("constraint \"{to}\" for domain \"{}\" already exists", domain.name);
                    return Err(EngineError::new("42710", message));
                }
                check_name(to)?;
                let Some(check) = new.checks.iter_mut().find(|check| check.name == part.name) else {
                    let message = format!("constraint \"{}\" for domain {} does not exist", part.name, domain.name);
                    return Err(EngineError::new("42704", message));
                };
                check.name = to.to_owned();
            }
        }
        self.replace_domain(new).await?;
        Ok(vec![])
    }

    pub(crate) async fn drop_domains(&self, drop: &Drop) -> Result<Notices> {
        let mut notices = vec![];
        for name in &drop.names {
            match self.found_domain(name).await {
                Ok((domain, catalog)) => self.drop_domain(&domain, &catalog, drop.cascade, &mut notices).await?,
                Err(error) if drop.if_exists && matches!(error.state.0, "42704" | "3F000") => {
                    notices.push(notice("00000", format!("{}, skipping", error.message)));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(notices)
    }

    /// CASCADE takes columns along, but no texts (invariant 2).
    pub(super) async fn drop_domain(
        &self,
        domain: &Arc<Domain>,
        catalog: &Arc<Catalog>,
        cascade: bool,
        notices: &mut Notices,
    ) -> Result<()> {
        let what = format!("type {}", shown_type(domain.oid, (domain.space, &domain.name), catalog));
        refuse_named(catalog, &format!("dropping {what}"), |text| text.casts_to((domain.oid, &domain.name), catalog))?;
        let columns = columns_of(catalog, domain);
        let over = over(catalog, domain);
        for own in &over {
            refuse_named(catalog, &format!("dropping {what}"), |text| text.casts_to((own.oid, &own.name), catalog))?;
        }
        let shown = |own: &Arc<Domain>| format!("type {}", shown_type(own.oid, (own.space, &own.name), catalog));
        let of_columns = columns.iter().map(|(table, at)| shown_column(table, *at, catalog));
        let dependents: Vec<String> = over.iter().map(shown).chain(of_columns).collect();
        if !dependents.is_empty() && !cascade {
            return Err(super::enums::needed(&what, &dependents));
        }
        match dependents.as_slice() {
            [] => {}
            [one] => notices.push(notice("00000", format!("drop cascades to {one}"))),
            all => {
                let lines: Vec<String> = all.iter().map(|one| format!("drop cascades to {one}")).collect();
                let told = notice("00000", format!("drop cascades to {} other objects", all.len()));
                notices.push(told.with_detail(lines.join("\n")));
            }
        }
        for (table, at) in columns {
            let column = table.columns[at].name.clone();
            let table = self.begin_statement().await.table_by_oid(table.oid).cloned().unwrap_or(table);
            self.drop_column(&table, &column, (false, true), notices).await?;
        }
        for own in over.iter().rev().chain([domain]) {
            let drop = async { self.cell.lock().await.open().drop_domain(own).await };
            self.cancel.run(drop).await?;
        }
        Ok(())
    }

    /// Whether a type is a domain.
    pub(super) async fn is_domain(&self, name: &Name) -> bool {
        let catalog = self.begin_statement().await;
        parse::relation(name).is_ok_and(|own| catalog.domain(&own).is_some())
    }

    /// A domain by its name, under the lock of definitions. 42704
    async fn found_domain(&self, name: &Name) -> Result<(Arc<Domain>, Arc<Catalog>)> {
        self.lock_definitions().await?;
        let catalog = self.begin_statement().await;
        let own = own_name(name)?;
        if let Some(domain) = catalog.domain(&own) {
            self.info.actor(&catalog).require_owner(&catalog, ObjectId(domain.oid), ("type", &own.name))?;
            return Ok((domain.clone(), catalog));
        }
        match (catalog.enum_type(&own), &own.among) {
            (Some(_), _) => Err(EngineError::new("42809", format!("{} is not a domain", quoted(&own.name)))),
            (None, Among::Schema(schema)) if catalog.schema(schema).is_none() => Err(undefined_schema(schema)),
            (None, _) => Err(undefined_type(name)),
        }
    }

    /// 23514 where a column of the domain has a value that a constraint is false for.
    async fn refuse_broken(&self, catalog: &Arc<Catalog>, domain: &Arc<Domain>, check: &DomainCheck) -> Result<()> {
        for (table, at) in columns_of(catalog, domain) {
            let column = &table.columns[at].name;
            let condition = stored::of_check(&over_column(check, column)?)?.expr().clone();
            let broken = Expr { at: condition.at, kind: ExprKind::Not(Box::new(condition)) };
            if self.has_row(&table, &broken).await? {
                let message = format!(
                    "column \"{column}\" of table \"{}\" contains values that violate the new constraint",
                    table.name
                );
                return Err(EngineError::new("23514", message).on_table(&table).on_column(column));
            }
        }
        Ok(())
    }

    async fn refuse_nulls_of(&self, catalog: &Arc<Catalog>, domain: &Arc<Domain>) -> Result<()> {
        for (table, at) in columns_of(catalog, domain) {
            let column = &table.columns[at].name;
            let text = format!("{} IS NULL", quoted(column));
            let stored = Stored::read(&text).ok_or_else(|| EngineError::internal("IS NULL is an expression"))?;
            if self.has_row(&table, stored.expr()).await? {
                let message = format!("column \"{column}\" of table \"{}\" contains null values", table.name);
                return Err(EngineError::new("23502", message).on_table(&table).on_column(column));
            }
        }
        Ok(())
    }

    /// Whether a row of the table, which is for this transaction alone meanwhile, meets a condition.
    async fn has_row(&self, table: &Arc<Table>, condition: &Expr) -> Result<bool> {
        if self.cell.lock().await.open().isolation() != Isolation::ReadCommitted {
            // Its snapshot may not have the newest rows.
            return Err(unsupported("a condition on rows that are there, in a transaction of this isolation level,"));
        }
        let table = self.alone(&table.full_name()).await?;
        let called = Called::so(&table.name);
        let over = Over { filter: Some(condition), ..checking_over((&table, &called), Rows::All, vec![Wanted::Row]) };
        let plan = LogicalPlanBuilder::from(self.plan_over(&over).await?).limit(0, Some(1));
        let plan = plan.and_then(LogicalPlanBuilder::build).map_err(from_datafusion)?;
        Ok(self.collect(&plan, None).await?.iter().any(|batch| batch.num_rows() > 0))
    }

    /// A column of a domain that was just added to a table: 23514 or 23502 where its rows do not have the domain's
    /// values.
    pub(crate) async fn check_added(&self, table: &Arc<Table>, at: usize) -> Result<()> {
        let column = &table.columns[at];
        let Some(domain) = &column.domain else { return Ok(()) };
        let always = Stored::read("true").ok_or_else(|| EngineError::internal("true is an expression"))?;
        if domain.takes_no_null() && column.missing.is_null() && self.has_row(table, always.expr()).await? {
            return Err(no_nulls(domain));
        }
        for check in domain.all_checks() {
            let condition = stored::of_check(&over_column(check, &column.name)?)?.expr().clone();
            let broken = Expr { at: condition.at, kind: ExprKind::Not(Box::new(condition)) };
            if self.has_row(table, &broken).await? {
                return Err(violated(domain, check));
            }
        }
        Ok(())
    }
}

/// The domains over this one, each behind those that it is over.
fn over(catalog: &Catalog, domain: &Domain) -> Vec<Arc<Domain>> {
    let is_over = |own: &&Arc<Domain>| own.oid != domain.oid && own.is_over(domain.oid);
    let mut over: Vec<Arc<Domain>> = catalog.domains().filter(is_over).cloned().collect();
    over.sort_by_key(|own| (own.line().count(), own.oid));
    over
}

/// The columns of a domain, and of those over it.
pub(super) fn columns_of(catalog: &Catalog, domain: &Domain) -> Vec<(Arc<Table>, usize)> {
    let of_table = |table: &Arc<Table>| {
        let is_of = |column: &ColumnDef| column.domain.as_ref().is_some_and(|own| own.is_over(domain.oid));
        let found = table.columns.iter().enumerate().filter(|(_, column)| !column.dropped && is_of(column));
        found.map(|(at, _)| (table.clone(), at)).collect::<Vec<_>>()
    };
    catalog.tables().flat_map(of_table).collect()
}

fn shown_column(table: &Table, at: usize, catalog: &Catalog) -> String {
    let shown = shown_relation(table.space, &table.name, catalog);
    format!("column {} of table {shown}", quoted(&table.columns[at].name))
}
