//! The statements that run in a transaction: each is passed to the code that carries it out.
use crate::access::kind_of;
use crate::error::{missing_relation, unsupported};
use crate::parse;
use crate::parse::constants::constant;
use crate::parse::qualified::shown_relation;
use crate::parse::sequence_calls::{Call, call_of};
use crate::parse::stored;
use crate::plan::bind::over::{Over, Part, Wanted};
use crate::plan::planner::Asked;
use crate::statement::changes::alone_over;
use crate::statement::ddl::{duplicate, find_index};
use crate::statement::describe::Sources;
use crate::statement::foreign_keys::{NewKey, dependents, refuse_dependents};
use crate::statement::generic::Slot;
use crate::statement::kind::{Kind, Task, Writes};
use crate::statement::maintain::Options;
use crate::statement::outcome::{Done, Outcome, notice};
use crate::statement::roles::role_name;
use crate::statement::run::{PlanFor, Run};
use crate::statement::target::Target;
use crate::statement::views::{dependent_views, refuse_views, with_views};
use crate::statement::within::first_change;
use crate::statement::{ddl, explain, like, sequence};
use crate::through::Called;
use crate::values::is_sequence;
use datafusion::logical_expr::LogicalPlan;
use std::sync::Arc;
use terrace_engine::catalog::access::{Rights, Securable};
use terrace_engine::{
    Among, Catalog, ColumnDef, DataType, EngineError, ForeignKey, RelationName, Result, Table, TableSpec, View,
};
use terrace_grammar::statement::{
    ColumnConstraintKind, CreateTable, Drop, ExprKind, ObjectKind, Query, Statement, Written,
};
use terrace_storage::ObjectId;

fn commanded(tag: &str, notices: Vec<EngineError>) -> Done {
    Done::Command(Outcome::Command { tag: tag.into(), notices })
}

impl Run<'_> {
    /// Carries a task out. `tag`: what the statement is called.
    pub(crate) async fn statement(&self, task: (&'static str, Task<'_>)) -> Result<Done> {
        match Box::pin(self.carry_out(task)).await {
            Err(refused) if refused.state.0 == "42501" => Err(self.named_first(refused).await),
            done => done,
        }
    }

    /// PostgreSQL asks for privileges when all names are known. So of a statement with a name that means nothing, that
    /// is said.
    async fn named_first(&self, refused: EngineError) -> EngineError {
        let Some(tree) = self.tree.filter(|_| self.earlier.is_none()) else { return refused };
        let catalog = self.cell.lock().await.open().catalog();
        let sources = Sources { state: self.state, catalog: &catalog, info: self.info, tree: self.tree, parts: &[] };
        let types: Vec<Option<DataType>> = self.types.iter().copied().map(Some).collect();
        match sources.describe(tree.statement(), &types) {
            Err(wrong) if wrong.state.0.starts_with("42") && !matches!(wrong.state.0, "42501" | "42P18") => wrong,
            _ => refused,
        }
    }

    async fn carry_out(&self, (tag, task): (&'static str, Task<'_>)) -> Result<Done> {
        if let Some(done) = Box::pin(self.with_changes(task)).await? {
            return Ok(done);
        }
        self.permit_names(task).await?;
        let notices = match task {
            Task::Query(query) => return Box::pin(self.query(query)).await,
            Task::Insert(insert) => return Ok(Box::pin(self.insert(insert)).await?.done("INSERT 0")),
            Task::Update(update) => return Ok(Box::pin(self.update(update)).await?.done("UPDATE")),
            Task::Delete(delete) => return Ok(Box::pin(self.delete(delete)).await?.done("DELETE")),
            Task::Explain(explain, of) => return Ok(Done::Rows(Box::pin(self.explain(explain, of)).await?)),
            Task::Copy(copy) => return Ok(Done::Copy(Box::pin(self.copy(copy)).await?)),
            Task::CreateTableAs(create) => return Box::pin(self.create_table_as(create)).await,
            Task::CreateView(create) => Box::pin(self.create_view(create)).await?,
            Task::CreateTable(create) => Box::pin(self.create_table(create)).await?,
            Task::CreateIndex(create) => Box::pin(self.create_index(create)).await?,
            Task::CreateSequence(create) => Box::pin(self.create_sequence_statement(create)).await?,
            Task::AlterSequence(alter) => Box::pin(self.alter_sequence(alter)).await?,
            Task::CreateEnum(create) => Box::pin(self.create_enum(create)).await?,
            Task::CreateComposite(create) => Box::pin(self.create_composite(create)).await?,
            Task::CreateDomain(create) => Box::pin(self.create_domain(create)).await?,
            Task::CreateRole(role) => Box::pin(self.create_role(role)).await?,
            Task::CreateSchema(create) => Box::pin(self.create_schema(create)).await?,
            Task::SetSchema(set) => Box::pin(self.set_schema(set)).await?,
            Task::AlterTable(alter) => Box::pin(self.alter_table(alter)).await?,
            Task::AlterEnum(alter) => Box::pin(self.alter_enum(alter)).await?,
            Task::AlterComposite(alter) => Box::pin(self.alter_composite(alter)).await?,
            Task::AlterDomain(alter) => Box::pin(self.alter_domain(alter)).await?,
            Task::AlterRole(role) => Box::pin(self.alter_role(role)).await?,
            Task::Rename(rename) => Box::pin(self.rename(rename)).await?,
            Task::Owner(owner) => Box::pin(self.owner(owner)).await?,
            Task::Drop(drop) => Box::pin(self.drop(tag, drop)).await?,
            Task::Comment(comment) => Box::pin(self.comment(comment)).await?,
            Task::Grant(grant) => Box::pin(self.grant(grant)).await?,
            Task::GrantRole(grant) => Box::pin(self.grant_role(grant)).await?,
            Task::DefaultPrivileges(alter) => Box::pin(self.alter_default_privileges(alter)).await?,
            Task::Truncate(truncate) => Box::pin(self.truncate(truncate)).await?,
            Task::Lock(lock) => Box::pin(self.lock_tables(lock)).await?,
            Task::Analyze(maintain) => {
                Options::of(tag, maintain)?;
                Box::pin(self.analyze(maintain)).await?
            }
        };
        Ok(commanded(tag, notices))
    }

    async fn query(&self, query: &Query) -> Result<Done> {
        if !query.locking.is_empty() {
            return Box::pin(self.select_locking(query)).await;
        }
        let plan = self.plan_again(Slot::Query, Asked::Query(query)).await?;
        Ok(Done::Rows(plan.origins().told(self.stream_again(&plan, None, Arc::default()).await?)))
    }

    pub(crate) async fn create_table(&self, create: &CreateTable) -> Result<Vec<EngineError>> {
        let catalog = self.begin_statement().await;
        let target = Target::of_table(create, &catalog)?;
        if target.is_taken(&target.name, &catalog) {
            return skip_existing(&target.name, create.if_not_exists);
        }
        let actor = self.info.actor(&catalog);
        actor.permit_creation(&catalog, target.placing)?;
        for column in &create.columns {
            self.info.permit_type(&catalog, &column.data_type)?;
        }
        for like in &create.likes {
            let name = parse::relation(&like.name)?;
            self.info.permit_lookup(&catalog, &name)?;
            catalog.table(&name).map_or(Ok(()), |table| actor.permit(&catalog, table, Rights::SELECT))?;
            let read = |view: &Arc<View>| {
                let object = (view.oid, Securable::Table);
                actor.permit_object(&catalog, object, Rights::SELECT, ("view", &view.name))
            };
            catalog.view(&name).map_or(Ok(()), read)?;
        }
        let (create, indexes) = like::expand(create, &catalog)?;
        let (create, sequences) = sequence::expand(&create, &catalog)?;
        let create = &create;
        let mut spec = ddl::table_spec(create, &catalog)?;
        let checks = self.new_checks(create, &spec).await?;
        let notices = ddl::storage_options(&create.storage)?;
        for new in &sequences {
            self.create_sequence(new).await?;
        }
        for (column, definition) in create.columns.iter().zip(&mut spec.columns) {
            for constraint in &column.constraints {
                if let ColumnConstraintKind::Default(default) = &constraint.kind {
                    self.check_default(default, definition, target.is_temporary()).await?;
                    definition.default_sql = Some(self.kept_default(definition, &default.text).await?);
                }
            }
        }
        self.keep_generated(&mut spec).await?;
        let run = async {
            let mut slot = self.cell.lock().await;
            let table = slot.open().create_table_in(spec, target.placing).await?;
            match checks.is_empty() {
                true => Ok(table),
                false => slot.open().set_checks(&table, checks).await,
            }
        };
        let table = self.cancel.run(run).await?;
        self.own_in(table.oid, Some((table.space, Securable::Table))).await?;
        self.add_foreign_keys(table, &NewKey::of_table(create)).await?;
        for index in &indexes {
            self.create_index(index).await?;
        }
        Ok(notices)
    }

    /// The expressions of generated columns, as they are kept.
    async fn keep_generated(&self, spec: &mut TableSpec) -> Result<()> {
        let table = Arc::new(Table::new(ObjectId(0), spec.name.clone(), spec.columns.clone(), vec![]));
        for (at, column) in spec.columns.iter_mut().enumerate().filter(|(_, column)| column.generated.is_some()) {
            column.generated = Some(self.new_generated(&table, at).await?);
        }
        Ok(())
    }

    /// A default must plan without columns, and be of a type that the column takes. `temporary`: its table is.
    pub(crate) async fn check_default(&self, default: &Written, column: &ColumnDef, temporary: bool) -> Result<()> {
        stored::of_default(&default.text)?;
        if let Some(value) = constant(&default.expr, column) {
            return value.map(|_| ());
        }
        if let Some(call) = call_of(&default.expr) {
            return match (call?, column.data_type) {
                (Call::Next(name), DataType::Int2 | DataType::Int4 | DataType::Int8) => {
                    let catalog = self.begin_statement().await;
                    let found = catalog.table(&name);
                    if !temporary && found.is_some_and(|t| t.temporary.is_some()) {
                        return Err(unsupported("a temporary sequence as a default of what is permanent"));
                    }
                    match found {
                        Some(table) if is_sequence(table) => Ok(()),
                        Some(_) => Err(EngineError::new("42809", format!("\"{}\" is not a sequence", name.name))),
                        None => Err(missing_relation(&catalog, &name)),
                    }
                }
                _ => Err(unsupported("this function of a sequence as a default")),
            };
        }
        if matches!(default.expr.kind, ExprKind::Parameter(_)) {
            return Err(EngineError::new("42P02", "there is no parameter in a DEFAULT"));
        }
        self.plan_default(default, column).await.map(drop)
    }

    /// A default, planned: it is of a type that the column takes.
    pub(crate) async fn plan_default(&self, default: &Written, column: &ColumnDef) -> Result<LogicalPlan> {
        let table = Arc::new(Table::new(ObjectId(0), "defaults".into(), vec![column.clone()], vec![]));
        let called = Called::so(&table.name);
        let wanted = vec![Wanted::Value { column, value: &default.expr }];
        let over = Over { kept: false, ..alone_over(&table, &called, Part::Default, wanted) };
        self.plan_asked(Asked::Over(&over), PlanFor { calls: false, judged: true }).await
    }

    async fn drop(&self, tag: &str, drop: &Drop) -> Result<Vec<EngineError>> {
        if drop.concurrently && drop.names.len() > 1 {
            return Err(unsupported("DROP INDEX CONCURRENTLY of several"));
        }
        if drop.concurrently && drop.cascade {
            return Err(unsupported("CASCADE with CONCURRENTLY"));
        }
        if drop.kind == ObjectKind::View {
            return self.drop_views(&drop.names, (drop.if_exists, drop.cascade)).await;
        }
        if drop.kind == ObjectKind::Domain {
            return self.drop_domains(drop).await;
        }
        if drop.kind == ObjectKind::Type {
            return self.drop_types(drop).await;
        }
        if drop.kind == ObjectKind::Schema {
            return self.drop_schemas(drop).await;
        }
        if drop.cascade && !matches!(drop.kind, ObjectKind::Table | ObjectKind::Index | ObjectKind::Sequence) {
            return Err(unsupported("CASCADE"));
        }
        let mut notices = vec![];
        if drop.kind == ObjectKind::Table {
            self.free_tables(drop, &mut notices).await?;
        }
        for name in &drop.names {
            if drop.kind == ObjectKind::Role {
                self.drop_role_named(&role_name(name)?, drop.if_exists, &mut notices).await?;
                continue;
            }
            let name = parse::relation(name)?;
            let catalog = self.begin_statement().await;
            if let Some(told) = without_schema(&name, &catalog, drop.if_exists)? {
                notices.push(told);
                continue;
            }
            if catalog.composite_type(&name).is_some() && !catalog.relation_exists(&name) {
                let what = match drop.kind {
                    ObjectKind::Index => "an index",
                    ObjectKind::Sequence => "a sequence",
                    _ => "a table",
                };
                let error = EngineError::new("42809", format!("\"{}\" is not {what}", name.name));
                return Err(error.with_hint("Use DROP TYPE to remove a type."));
            }
            let (kind, dropped) = match drop.kind {
                ObjectKind::Table => ("table", self.drop_table(&name, &catalog).await),
                ObjectKind::Index => ("index", self.drop_index(&name, &catalog, (drop.cascade, &mut notices)).await),
                ObjectKind::Sequence => ("sequence", self.drop_sequence(&name, &catalog).await),
                ObjectKind::Role | ObjectKind::View | ObjectKind::Schema | ObjectKind::Type | ObjectKind::Domain => {
                    return Err(unsupported(tag));
                }
            };
            match dropped {
                Err(error) if drop.if_exists && matches!(error.state.0, "42P01" | "42704") => {
                    notices.push(notice("00000", format!("{kind} \"{}\" does not exist, skipping", name.name)));
                }
                // CASCADE of a sequence has an effect only where it would drop what depends on it.
                Err(error) if drop.cascade && error.message.ends_with("because other objects depend on it") => {
                    return Err(unsupported("CASCADE"));
                }
                other => other?,
            }
        }
        Ok(notices)
    }

    async fn drop_role_named(&self, name: &str, if_exists: bool, notices: &mut Vec<EngineError>) -> Result<()> {
        match self.drop_role(name).await {
            Err(error) if if_exists && error.state.0 == "42704" => {
                notices.push(notice("00000", format!("role \"{name}\" does not exist, skipping")));
                Ok(())
            }
            other => other,
        }
    }

    /// Drops the foreign keys that refer to tables which will be dropped; without CASCADE only those of these tables
    /// themselves. 2BP01 where another table's is left.
    async fn free_tables(&self, drop: &Drop, notices: &mut Vec<EngineError>) -> Result<()> {
        let names = drop.names.iter().map(parse::relation).collect::<Result<Vec<RelationName>>>()?;
        let catalog = self.begin_statement().await;
        let is_needed = |name: &RelationName| {
            let referenced = catalog.table(name).is_some_and(|table| !table.referenced_by.is_empty());
            let is_read = |table: &Arc<Table>| !catalog.views_on((table.space, &table.name), None).is_empty();
            referenced || catalog.table(name).is_some_and(is_read)
        };
        if !names.iter().any(is_needed) {
            return Ok(());
        }
        let mut tables = vec![];
        for name in &names {
            let Some(table) = catalog.table(name) else { continue };
            let object = (table.oid, table.space);
            self.info.actor(&catalog).require_dropper(&catalog, object, (kind_of(table), &table.name))?;
            tables.push(self.alone(name).await?);
        }
        let catalog = self.begin_statement().await;
        let names: Vec<RelationName> = tables.iter().map(|table| table.full_name()).collect();
        let (mut others, mut own) = (vec![], vec![]);
        for table in tables.iter().filter_map(|table| catalog.table_by_oid(table.oid)) {
            others.extend(dependents(&catalog, table, &names, |_| true));
            own.extend(dependents(&catalog, table, &[], |key| key.table != table.oid));
        }
        let mut views = vec![];
        for table in names.iter().filter_map(|name| catalog.table(name)) {
            let what = format!("table {}", shown_relation(table.space, &table.name, &catalog));
            dependent_views(&catalog, (table.space, &table.name), None, &what, &mut views);
        }
        if !drop.cascade {
            let what = match names.as_slice() {
                [one] => format!(
                    "table {}",
                    catalog.table(one).map_or(String::new(), |t| shown_relation(t.space, &t.name, &catalog))
                ),
                _ => "desired object(s)".into(),
            };
            let table = |key: &ForeignKey| {
                let table = catalog.table_by_oid(key.referenced);
                table.map_or(String::new(), |table| shown_relation(table.space, &table.name, &catalog))
            };
            let needed = refuse_dependents(&what, &others, &catalog, |key| format!("table {}", table(key)));
            needed.map_err(|error| with_views(error, &views))?;
            refuse_views(&what, &views)?;
        }
        self.drop_dependent_views(&views, notices).await?;
        own.retain(|(key, _)| others.iter().all(|(other, _)| other.oid != key.oid));
        self.drop_dependents(&own, &mut vec![]).await?;
        self.drop_dependents(&others, notices).await
    }

    async fn drop_table(&self, name: &RelationName, catalog: &Catalog) -> Result<()> {
        let Some(table) = catalog.table(name) else {
            let other = EngineError::new("42809", format!("\"{}\" is not a table", name.name));
            if find_index(catalog, name).is_some() {
                return Err(other);
            }
            if catalog.view(name).is_some() {
                return Err(other.with_hint("Use DROP VIEW to remove a view."));
            }
            return Err(EngineError::new("42P01", format!("table \"{}\" does not exist", name.name)));
        };
        if is_sequence(table) {
            return Err(EngineError::new("42809", format!("\"{}\" is not a table", name.name)));
        }
        self.info.actor(catalog).require_dropper(catalog, (table.oid, table.space), ("table", &table.name))?;
        let run = async { self.cell.lock().await.open().drop_table(table).await };
        self.cancel.run(run).await?;
        self.drop_owned(&table.columns).await
    }
}

/// What DROP says of a name whose schema is not there. 3F000
pub(crate) fn without_schema(name: &RelationName, catalog: &Catalog, if_exists: bool) -> Result<Option<EngineError>> {
    let Among::Schema(schema) = &name.among else { return Ok(None) };
    match catalog.require_schema(schema) {
        Err(error) if if_exists => Ok(Some(notice("00000", format!("{}, skipping", error.message)))),
        other => other.map(|_| None),
    }
}

/// The answer of CREATE if the name is taken: a notice with IF NOT EXISTS, otherwise an error.
pub(crate) fn skip_existing(name: &str, may_exist: bool) -> Result<Vec<EngineError>> {
    match may_exist {
        true => Ok(vec![notice("42P07", format!("relation \"{name}\" already exists, skipping"))]),
        false => Err(duplicate(name)),
    }
}

/// CREATE or DROP INDEX CONCURRENTLY, by its name: no transaction goes around it.
pub(crate) fn concurrently(statement: &Statement) -> Option<&'static str> {
    match statement {
        Statement::CreateIndex(create) if create.concurrently => Some("CREATE INDEX CONCURRENTLY"),
        Statement::Drop(drop) if drop.concurrently => Some("DROP INDEX CONCURRENTLY"),
        _ => None,
    }
}

/// 25006 for statements that a read-only transaction may not run. (Calls of sequences' functions are checked when they
/// are made.)
pub(crate) fn refuse_write(statement: &Statement) -> Result<()> {
    let kind = Kind::of(statement);
    let what = match (kind.writes, statement) {
        (Writes::Never, _) => return Ok(()),
        (Writes::Always, _) => kind.tag,
        (Writes::AsExplained, Statement::Explain(explain)) if explain::analyzes(explain)? => {
            return refuse_write(&explain.statement);
        }
        (Writes::AsQuery, Statement::Query(query)) if !query.locking.is_empty() => "SELECT FOR UPDATE",
        (Writes::AsQuery, Statement::Declare(declare)) if !declare.query.locking.is_empty() => "SELECT FOR UPDATE",
        (Writes::AsQuery, Statement::Query(query)) => match first_change(query.with.as_ref()) {
            Some(change) => Kind::of(change).tag,
            None => return Ok(()),
        },
        (Writes::AsExplained | Writes::AsQuery, _) => return Ok(()),
    };
    Err(EngineError::new("25006", format!("cannot execute {what} in a read-only transaction")))
}
