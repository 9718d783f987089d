//! ALTER TABLE.
//!
//! 1. The transaction locks the table for itself alone before it looks at the first action. Each action sees the
//!    results of those before it.
//! 2. The default of a new column is evaluated once, for all rows that exist; so it must give the same value for all of
//!    them.
use crate::access::{Actor, kind_of, role_named, securable};
use crate::error::{from_datafusion, missing_relation, undefined_column, unsupported};
use crate::parse::constants::constant;
use crate::parse::identity::Identity;
use crate::parse::sequence_calls::{calls_within, sequence_of};
use crate::parse::{relation, stored};
use crate::plan::rules::is_volatile;
use crate::statement::computed::generated_of;
use crate::statement::ddl::{
    Key, check_name, choose_name, column_def, duplicate, find_index, position, storage_options, table_key,
};
use crate::statement::enums::undefined_type;
use crate::statement::foreign_keys::{NewKey, constraint_exists, dependents, refuse_dependents, two_constraints};
use crate::statement::grant::with_owner;
use crate::statement::outcome::notice;
use crate::statement::run::Run;
use crate::statement::sequence::numbered;
use crate::statement::views::{dependent_views, refuse_views};
use crate::values::{assign_array, is_owned, is_sequence};
use std::sync::Arc;
use terrace_engine::catalog::access::{Access, DATABASE_OWNER, FIRST_OWNER, Grant, Rights, Securable};
use terrace_engine::{
    Catalog, ColumnDef, DataType, Datum, EngineError, ForeignKey, RelationName, Result, Space, Table,
};
use terrace_grammar::quoted;
use terrace_grammar::statement::{
    AlterAction, AlterTable, Column, ColumnConstraintKind, Deferral, Ident, Name, ObjectKind, Owner, TableConstraint,
    TableConstraintKind, Written,
};
use terrace_storage::ObjectId;

type Notices = Vec<EngineError>;

impl Run<'_> {
    pub(crate) async fn alter_table(&self, alter: &AlterTable) -> Result<Notices> {
        let mut notices = vec![];
        if let [AlterAction::Owner(owner)] = alter.actions.as_slice() {
            return self.set_owner(&alter.name, alter.if_exists, owner).await;
        }
        let (name, catalog) = (relation(&alter.name)?, self.begin_statement().await);
        if let Some(view) = catalog.view(&name) {
            return Box::pin(self.alter_view(view.oid, &alter.actions)).await;
        }
        if alter.kind == ObjectKind::View && catalog.relation_exists(&name) {
            return Err(EngineError::new("42809", format!("\"{}\" is not a view", name.name)));
        }
        let Some(mut table) = self.altered(&alter.name, alter.if_exists, &mut notices).await? else {
            return Ok(notices);
        };
        for action in &alter.actions {
            table = Box::pin(self.alter_one(&table, action, &mut notices)).await?;
        }
        Ok(notices)
    }

    /// OWNER TO, of what is no table.
    pub(crate) async fn owner(&self, owner: &Owner) -> Result<Notices> {
        let catalog = self.begin_statement().await;
        let name = owner.name.last().name.as_str();
        let named = || relation(&owner.name);
        match owner.kind {
            // PostgreSQL asks for the role first.
            ObjectKind::Schema => self.own_schema(name, &owner.to, &catalog).await,
            ObjectKind::Sequence if !catalog.table(&named()?).is_none_or(|table| is_sequence(table)) => {
                Err(EngineError::new("42809", format!("\"{name}\" is not a sequence")))
            }
            ObjectKind::View if catalog.view(&named()?).is_none() && catalog.relation_exists(&named()?) => {
                Err(EngineError::new("42809", format!("\"{name}\" is not a view")))
            }
            ObjectKind::Domain => match catalog.domain(&named()?) {
                Some(domain) => self.give_to(ObjectId(domain.oid), domain.space, None, ("type", name), &owner.to).await,
                None => Err(undefined_type(&owner.name)),
            },
            ObjectKind::Type => match catalog.own_type(&named()?).and_then(DataType::own) {
                Some(of) => {
                    let space = catalog.space_of_type(of.oid).unwrap_or(Space::PUBLIC);
                    self.give_to(ObjectId(of.oid), space, None, ("type", of.name), &owner.to).await
                }
                None => Err(undefined_type(&owner.name)),
            },
            _ => self.set_owner(&owner.name, owner.if_exists, &owner.to).await,
        }
    }

    async fn own_schema(&self, name: &str, owner: &Ident, catalog: &Catalog) -> Result<Notices> {
        let space = Self::schema_named(name, catalog)?;
        let is_first = catalog.owner(space.0) == DATABASE_OWNER;
        // The database's owner is the first role: nothing changes.
        if is_first && matches!(self.new_owner(catalog, owner)?, FIRST_OWNER | DATABASE_OWNER) {
            return Ok(vec![]);
        }
        self.give_to(space.0, space, Some(Securable::Schema), ("schema", name), owner).await
    }

    /// OWNER TO, of a table, a sequence, an index or a view. An index belongs to its table's owner, and a sequence that
    /// a column has goes with its table.
    async fn set_owner(&self, name: &Name, if_exists: bool, owner: &Ident) -> Result<Notices> {
        self.lock_definitions().await?;
        let catalog = self.begin_statement().await;
        let name = relation(name)?;
        if !catalog.relation_exists(&name) {
            return match if_exists {
                true => Ok(vec![notice("00000", format!("relation \"{}\" does not exist, skipping", name.name))]),
                false => Err(missing_relation(&catalog, &name)),
            };
        }
        let actor = self.info.actor(&catalog);
        if let Some(view) = catalog.view(&name) {
            let named = ("view", view.name.as_str());
            actor.require_owner(&catalog, view.oid, named)?;
            return self.give_to(view.oid, view.space, Some(Securable::Table), named, owner).await;
        }
        let Some(table) = catalog.table(&name) else {
            if let Some((table, index)) = find_index(&catalog, &name) {
                actor.require_owner(&catalog, table.oid, ("index", &index.name))?;
            }
            self.new_owner(&catalog, owner)?;
            let warning = notice("01000", format!("cannot change owner of index \"{name}\""));
            return Ok(vec![warning.with_hint("Change the ownership of the index's table, instead.")]);
        };
        let object = (kind_of(table), table.name.as_str());
        actor.require_owner(&catalog, table.oid, object)?;
        let notices = self.give_to(table.oid, table.space, Some(securable(table)), object, owner).await?;
        let owned = table.columns.iter().filter(|c| !c.dropped).filter_map(sequence_of);
        for sequence in owned.filter_map(|name| catalog.table(&name)).filter(|sequence| is_owned(sequence)) {
            let object = ("sequence", sequence.name.as_str());
            self.give_to(sequence.oid, sequence.space, Some(Securable::Sequence), object, owner).await?;
        }
        Ok(notices)
    }

    /// Gives an object another owner, who gets the privileges of the old one. 42501
    async fn give_to(
        &self,
        object: ObjectId,
        space: Space,
        securable: Option<Securable>,
        named: (&str, &str),
        owner: &Ident,
    ) -> Result<Notices> {
        let catalog = self.begin_statement().await;
        let (actor, old) = (self.info.actor(&catalog), catalog.owner(object));
        let new = self.new_owner(&catalog, owner)?;
        if new == old {
            return Ok(vec![]);
        }
        actor.require_owner(&catalog, object, named)?;
        if !actor.is_superuser() {
            if !actor.may_become(&catalog, new) {
                return Err(EngineError::new("42501", format!("must be member of role \"{}\"", owner.name)));
            }
            match securable {
                Some(Securable::Schema) => actor.permit_database(&catalog, Rights::CREATE)?,
                _ => Actor::of_oid(new, &catalog).permit_schema(&catalog, space, Rights::CREATE)?,
            }
        }
        let renamed = |acl: &[Grant]| with_owner(acl, old, new);
        let acl = catalog.stated_acl(object).filter(|_| securable.is_some()).map(renamed);
        let columns = catalog.column_acls(object).map(|(at, acl)| (at, renamed(acl))).collect();
        let access = Access { owner: new, acl, columns };
        let set = async { self.cell.lock().await.open().set_access(object, access).await };
        self.cancel.run(set).await.map(|()| vec![])
    }

    /// 42704
    fn new_owner(&self, catalog: &Catalog, owner: &Ident) -> Result<u32> {
        role_named(&owner.name, self.info, catalog).map(|role| role.oid)
    }

    /// 42501 where the current role does not own the table of that name, if there is one.
    pub(super) async fn require_owner_named(&self, name: &RelationName) -> Result<()> {
        let catalog = self.begin_statement().await;
        match catalog.table(name) {
            Some(table) => self.info.actor(&catalog).require_owner_of(&catalog, table),
            None => Ok(()),
        }
    }

    /// The table to be changed; `None`: it does not exist, and IF EXISTS is given.
    pub(super) async fn altered(
        &self,
        name: &Name,
        if_exists: bool,
        notices: &mut Notices,
    ) -> Result<Option<Arc<Table>>> {
        let name = relation(name)?;
        self.require_owner_named(&name).await?;
        match self.alone(&name).await {
            Err(error) if if_exists && matches!(error.state.0, "42P01" | "3F000") => {
                notices.push(notice("00000", format!("relation \"{}\" does not exist, skipping", name.name)));
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    async fn alter_one(&self, table: &Arc<Table>, action: &AlterAction, notices: &mut Notices) -> Result<Arc<Table>> {
        match action {
            AlterAction::AddConstraint(constraint) => self.add_constraint(table, constraint, notices).await,
            AlterAction::AddColumn { if_not_exists, column } => {
                self.add_column(table, column, *if_not_exists, notices).await
            }
            AlterAction::DropColumn { column, if_exists, cascade } => {
                self.drop_column(table, &column.name, (*if_exists, *cascade), notices).await
            }
            AlterAction::DropConstraint { if_exists, name, cascade } => {
                self.drop_constraint(table, &name.name, (*if_exists, *cascade), notices).await
            }
            AlterAction::SetNotNull { column } => {
                let (at, definition) = self.definition(table, column)?;
                self.change_column(table, at, ColumnDef { not_null: true, ..definition }).await
            }
            AlterAction::DropNotNull { column } => {
                let (at, definition) = self.definition(table, column)?;
                refuse_identity(table, &definition)?;
                if table.primary_key().is_some_and(|key| key.columns.contains(&at)) {
                    let message = format!("column \"{}\" is in a primary key", definition.name);
                    return Err(EngineError::new("42P16", message));
                }
                self.change_column(table, at, ColumnDef { not_null: false, ..definition }).await
            }
            AlterAction::SetDefault { column, value } => self.set_default(table, column, Some(value)).await,
            AlterAction::DropDefault { column } => self.set_default(table, column, None).await,
            AlterAction::SetStorage(options) => {
                notices.extend(storage_options(options)?);
                Ok(table.clone())
            }
            AlterAction::SetType { collation: Some(_), .. } => Err(unsupported("ALTER COLUMN TYPE ... COLLATE")),
            AlterAction::SetType { column, data_type, collation: None, using } => {
                self.set_type(table, column, data_type, using.as_ref()).await
            }
            AlterAction::AddIdentity { column, always, options } => {
                let identity = if *always { Identity::Always } else { Identity::ByDefault };
                self.add_identity((table, column), identity, options).await
            }
            AlterAction::SetIdentity { column, always, options } => {
                self.set_identity((table, column), *always, options).await
            }
            AlterAction::DropIdentity { column, if_exists } => {
                self.drop_identity((table, column), *if_exists, notices).await
            }
            AlterAction::DropExpression { column, if_exists } => {
                self.drop_expression((table, column), *if_exists, notices).await
            }
            AlterAction::ValidateConstraint(name) => self.validate_constraint(table, &name.name).await,
            AlterAction::AlterConstraint { name, deferral } => {
                self.alter_constraint(table, &name.name, *deferral).await
            }
            AlterAction::Owner(_) => Err(unsupported("OWNER TO")),
            AlterAction::ResetStorage(_) => Err(unsupported("RESET of storage parameters")),
        }
    }

    async fn add_constraint(
        &self,
        table: &Arc<Table>,
        constraint: &TableConstraint,
        notices: &mut Notices,
    ) -> Result<Arc<Table>> {
        if let Some(key) = NewKey::of(constraint) {
            return self.add_foreign_keys(table.clone(), &[key]).await;
        }
        match &constraint.kind {
            _ if constraint.not_valid => Err(unsupported("NOT VALID of a constraint that is no foreign key")),
            TableConstraintKind::Check { expr, no_inherit } => {
                let name = constraint.name.as_ref().map(|name| name.name.as_str());
                self.add_check(table, expr, (*no_inherit, constraint.deferral), name, None).await
            }
            TableConstraintKind::UsingIndex { index, primary } => {
                self.add_constraint_using_index(table, constraint, (index, *primary), notices).await
            }
            _ => self.add_key(table, table_key(constraint, &table.columns)?).await,
        }
    }

    /// SET DEFAULT and DROP DEFAULT. 42601 of identity and generated columns.
    async fn set_default(&self, table: &Arc<Table>, column: &Ident, value: Option<&Written>) -> Result<Arc<Table>> {
        let (at, definition) = self.definition(table, column)?;
        let hinted = |refused: EngineError, drops: &str| match value {
            Some(_) => refused,
            None => refused.with_hint(format!("Use ALTER TABLE ... ALTER COLUMN ... {drops} instead.")),
        };
        refuse_identity(table, &definition).map_err(|refused| hinted(refused, "DROP IDENTITY"))?;
        refuse_generated(table, &definition).map_err(|refused| hinted(refused, "DROP EXPRESSION"))?;
        let default_sql = match value {
            Some(value) => {
                self.check_default(value, &definition, table.temporary.is_some()).await?;
                Some(self.kept_default(&definition, &value.text).await?)
            }
            None => None,
        };
        self.change_column(table, at, ColumnDef { default_sql, ..definition }).await
    }

    async fn drop_expression(
        &self,
        (table, column): (&Arc<Table>, &Ident),
        if_exists: bool,
        notices: &mut Notices,
    ) -> Result<Arc<Table>> {
        let (at, definition) = self.definition(table, column)?;
        if definition.generated.is_some() {
            return self.change_column(table, at, ColumnDef { generated: None, ..definition }).await;
        }
        let (name, of) = (&definition.name, &table.name);
        let message = format!("column \"{name}\" of relation \"{of}\" is not a stored generated column");
        if !if_exists {
            return Err(EngineError::new("55000", message));
        }
        notices.push(notice("00000", format!("{message}, skipping")));
        Ok(table.clone())
    }

    pub(super) fn definition(&self, table: &Table, column: &Ident) -> Result<(usize, ColumnDef)> {
        let at = self.column(table, column)?;
        Ok((at, table.columns[at].clone()))
    }

    async fn drop_constraint(
        &self,
        table: &Arc<Table>,
        name: &str,
        (if_exists, cascade): (bool, bool),
        notices: &mut Notices,
    ) -> Result<Arc<Table>> {
        if let Some(key) = table.foreign_keys.iter().find(|key| key.name == name) {
            return self.drop_foreign_key(table, key.oid).await;
        }
        if table.checks.iter().any(|c| c.name == name) {
            let kept = table.checks.iter().filter(|c| c.name != name).cloned().collect();
            return self.set_checks(table, kept).await;
        }
        match table.indexes.iter().find(|i| i.is_constraint() && i.name == name) {
            Some(index) => {
                let needs = |key: &ForeignKey| key.index == index.oid;
                let what = format!("constraint {name} on table {}", table.name);
                self.free(table, &what, cascade, needs, format!("index {name}"), notices).await?;
                let drop = async { self.cell.lock().await.open().drop_key(table, index.oid).await };
                let table = self.cancel.run(drop).await?;
                let views = self.views_without_key(&table, &what).await?;
                if !cascade {
                    refuse_views(&what, &views)?;
                }
                self.drop_dependent_views(&views, notices).await?;
                Ok(table)
            }
            None if if_exists => {
                notices.push(notice("00000", format!("{}, skipping", undefined_constraint(name, table).message)));
                Ok(table.clone())
            }
            None => Err(undefined_constraint(name, table)),
        }
    }

    /// With CASCADE, drops the foreign keys that need what goes; otherwise refuses where there are any (2BP01). `what`
    /// goes, of which `object` is needed.
    async fn free(
        &self,
        table: &Table,
        what: &str,
        cascade: bool,
        needs: impl Fn(&ForeignKey) -> bool,
        object: String,
        notices: &mut Notices,
    ) -> Result<()> {
        let catalog = self.begin_statement().await;
        let dependents = dependents(&catalog, table, &[], needs);
        if !cascade {
            return refuse_dependents(what, &dependents, &catalog, |_| object.clone());
        }
        self.drop_dependents(&dependents, notices).await
    }

    async fn validate_constraint(&self, table: &Arc<Table>, name: &str) -> Result<Arc<Table>> {
        match table.foreign_keys.iter().find(|key| key.name == name) {
            Some(key) => self.alter_foreign_key(table, ForeignKey { validated: true, ..ForeignKey::clone(key) }).await,
            // These hold for all rows.
            None if table.checks.iter().any(|check| check.name == name) => Ok(table.clone()),
            None if constraint_exists(table, name) => {
                let message = format!(
                    "constraint \"{name}\" of relation \"{}\" is not a foreign key or check constraint",
                    table.name
                );
                Err(EngineError::new("42809", message))
            }
            None => Err(undefined_constraint(name, table)),
        }
    }

    pub(super) fn column(&self, table: &Table, name: &Ident) -> Result<usize> {
        table.column(&name.name).ok_or_else(|| undefined_column(&name.name, &table.name))
    }

    pub(super) async fn change_column(&self, table: &Table, at: usize, column: ColumnDef) -> Result<Arc<Table>> {
        check_name(&column.name)?;
        let change = async { self.cell.lock().await.open().alter_column(table, at, column).await };
        self.cancel.run(change).await
    }

    /// ALTER CONSTRAINT of a foreign key. 42704, 42809
    async fn alter_constraint(&self, table: &Arc<Table>, name: &str, deferral: Deferral) -> Result<Arc<Table>> {
        let of = || format!("constraint \"{name}\" of relation \"{}\"", table.name);
        let Some(key) = table.foreign_keys.iter().find(|key| key.name == name) else {
            return Err(match constraint_exists(table, name) {
                true => EngineError::new("42809", format!("{} is not a foreign key constraint", of())),
                false => EngineError::new("42704", format!("{} does not exist", of())),
            });
        };
        let (deferrable, deferred) = (deferral.deferrable, deferral.initially_deferred);
        self.alter_foreign_key(table, ForeignKey { deferrable, deferred, ..ForeignKey::clone(key) }).await
    }

    /// PRIMARY KEY or UNIQUE.
    async fn add_key(&self, table: &Arc<Table>, key: Key) -> Result<Arc<Table>> {
        let catalog = self.begin_statement().await;
        self.info.actor(&catalog).permit_beside(&catalog, table)?;
        let taken = |n: &str| catalog.name_taken(table.space, n);
        let name = match &key.name {
            Some(given) if taken(given) => return Err(duplicate(given)),
            Some(given) if constraint_exists(table, given) => return Err(two_constraints(given, &table.name)),
            Some(given) => given.clone(),
            None if key.primary => choose_name(&[&table.name], "pkey", &taken),
            None => {
                let taken = |n: &str| taken(n) || constraint_exists(table, n);
                let columns = key.named_after().map(|at| table.columns[at].name.as_str());
                choose_name(&[table.name.as_str()].into_iter().chain(columns).collect::<Vec<_>>(), "key", &taken)
            }
        };
        check_name(&name)?;
        let spec = key.into_spec(name);
        let add = async {
            let mut slot = self.cell.lock().await;
            match spec.primary {
                true => slot.open().add_primary_key(table, spec).await,
                false => slot.open().create_index(table, spec).await,
            }
        };
        self.cancel.run(add).await
    }

    pub(super) async fn add_column(
        &self,
        table: &Arc<Table>,
        column: &Column,
        if_not_exists: bool,
        notices: &mut Notices,
    ) -> Result<Arc<Table>> {
        let mut plain = column.clone();
        if let Some(numbering) = numbered(&mut plain) {
            return self.add_numbered(table, (column, plain), numbering, (if_not_exists, notices)).await;
        }
        let mut keys = vec![];
        let catalog = self.begin_statement().await;
        self.info.permit_type(&catalog, &column.data_type)?;
        let mut definition = column_def(column, table.columns.len(), &mut keys, &catalog)?;
        if table.column(&definition.name).is_some() && if_not_exists {
            let message =
                format!("column \"{}\" of relation \"{}\" already exists, skipping", definition.name, table.name);
            notices.push(notice("42701", message));
            return Ok(table.clone());
        }
        check_name(&definition.name)?;
        if definition.generated.is_some() && table.column(&definition.name).is_some() {
            let message = format!("column \"{}\" of relation \"{}\" already exists", definition.name, table.name);
            return Err(EngineError::new("42701", message));
        }
        for constraint in &column.constraints {
            if let ColumnConstraintKind::Default(default) = &constraint.kind {
                self.check_default(default, &definition, table.temporary.is_some()).await?;
                definition.missing = self.value_of(default, &definition).await?;
                definition.default_sql = Some(self.kept_default(&definition, &default.text).await?);
            }
        }
        if let (None, Some(of_domain)) = (&definition.default_sql, definition.default()) {
            let default = Written { expr: stored::of_default(of_domain)?.expr().clone(), text: of_domain.to_owned() };
            definition.missing = self.value_of(&default, &definition).await?;
        }
        if let Some(digits) = definition.digits {
            definition.missing = digits.keep(definition.missing)?;
        }
        if keys.iter().any(|key| key.primary) && table.primary_key().is_some() {
            let message = format!("multiple primary keys for table \"{}\" are not allowed", table.name);
            return Err(EngineError::new("42P16", message));
        }
        let generated_not_null = definition.generated.is_some() && definition.not_null;
        if definition.generated.is_some() {
            definition.not_null = false;
            let columns = table.columns.iter().chain([&definition]).cloned().collect();
            let with = Arc::new(Table::new(ObjectId(0), table.name.clone(), columns, vec![]));
            definition.generated = Some(self.new_generated(&with, table.columns.len()).await?);
        }
        let fills = definition.generated.is_some();
        let add = async { self.cell.lock().await.open().add_column(table, definition).await };
        let mut table = self.cancel.run(add).await?;
        if fills {
            self.fill_computed(&table).await?;
        }
        if generated_not_null {
            let at = table.columns.len() - 1;
            table = self.change_column(&table, at, table.columns[at].clone().not_null()).await?;
        }
        self.check_added(&table, table.columns.len() - 1).await?;
        self.add_constraints(table, column, keys).await
    }

    /// Those of a column that was added.
    pub(super) async fn add_constraints(
        &self,
        mut table: Arc<Table>,
        column: &Column,
        keys: Vec<Key>,
    ) -> Result<Arc<Table>> {
        for key in keys {
            table = self.add_key(&table, key).await?;
        }
        for constraint in &column.constraints {
            if let ColumnConstraintKind::Check { expr, no_inherit } = &constraint.kind {
                let name = constraint.name.as_ref().map(|name| name.name.as_str());
                let form = (*no_inherit, constraint.deferral);
                table = self.add_check(&table, expr, form, name, Some(&column.name.name)).await?;
            }
        }
        self.add_foreign_keys(table, &NewKey::of_column(column)).await
    }

    /// The value of a default for rows that exist (invariant 2).
    async fn value_of(&self, default: &Written, column: &ColumnDef) -> Result<Datum> {
        if let Some(value) = constant(&default.expr, column) {
            return value;
        }
        if calls_within(&default.expr) {
            return Err(unsupported("a new column with a default that differs from row to row"));
        }
        let plan = self.plan_default(default, column).await?;
        if is_volatile(&plan).map_err(from_datafusion)? {
            return Err(unsupported("a new column with a default that differs from row to row"));
        }
        let batches = self.collect(&plan, None).await?;
        let batch = batches.iter().find(|b| b.num_rows() == 1).expect("a SELECT without FROM gives one row");
        Ok(assign_array(batch.column(0), column)?.pop().expect("one row"))
    }

    pub(super) async fn drop_column(
        &self,
        table: &Arc<Table>,
        name: &str,
        (if_exists, cascade): (bool, bool),
        notices: &mut Notices,
    ) -> Result<Arc<Table>> {
        let Some(at) = position(&table.columns, name) else {
            let missing = undefined_column(name, &table.name);
            if if_exists {
                notices.push(notice("00000", format!("{}, skipping", missing.message)));
                return Ok(table.clone());
            }
            return Err(missing);
        };
        let checks = stored::without(&table.checks, name)?;
        let what = format!("column {} of table {}", quoted(name), quoted(&table.name));
        if let Some(generated) = generated_of(table, name).first() {
            let other = table.columns[*generated].name.clone();
            if !cascade {
                let error = EngineError::new("2BP01", format!("cannot drop {what} because other objects depend on it"));
                let detail = format!("column {} of table {} depends on {what}", quoted(&other), quoted(&table.name));
                let hint = "Use DROP ... CASCADE to drop the dependent objects too.";
                return Err(error.with_detail(detail).with_hint(hint));
            }
            let gone = format!("drop cascades to column {} of table {}", quoted(&other), quoted(&table.name));
            notices.push(notice("00000", gone));
            let table = Box::pin(self.drop_column(table, &other, (false, true), notices)).await?;
            return Box::pin(self.drop_column(&table, name, (false, true), notices)).await;
        }
        // Those of the table itself that have the column go with it.
        let needs = |key: &ForeignKey| key.key.contains(&at) && !(key.table == table.oid && key.columns.contains(&at));
        self.free(table, &what, cascade, needs, what.clone(), notices).await?;
        let mut views = vec![];
        dependent_views(&*self.begin_statement().await, (table.space, &table.name), Some(at), &what, &mut views);
        if !cascade {
            refuse_views(&what, &views)?;
        }
        self.drop_dependent_views(&views, notices).await?;
        let table = self.drop_computed_of(table, name).await?;
        let drop = async { self.cell.lock().await.open().drop_column(&table, at).await };
        let dropped = table.columns[at].clone();
        let table = self.cancel.run(drop).await?;
        // Those of partial indexes that have the column in their keys.
        let table = self.tidy_computed(table).await?;
        self.drop_owned(&[dropped]).await?;
        if checks.len() == table.checks.len() { Ok(table) } else { self.set_checks(&table, checks).await }
    }
}

/// 42601: what an identity column has is not changed so.
fn refuse_identity(table: &Table, column: &ColumnDef) -> Result<()> {
    let message = || format!("column \"{}\" of relation \"{}\" is an identity column", column.name, table.name);
    Identity::of(column).map_or(Ok(()), |_| Err(EngineError::new("42601", message())))
}

/// 42601: a generated column has no default.
fn refuse_generated(table: &Table, column: &ColumnDef) -> Result<()> {
    let message = || format!("column \"{}\" of relation \"{}\" is a generated column", column.name, table.name);
    column.generated.as_ref().map_or(Ok(()), |_| Err(EngineError::new("42601", message())))
}

fn undefined_constraint(name: &str, table: &Table) -> EngineError {
    EngineError::new("42704", format!("constraint \"{name}\" of relation \"{}\" does not exist", table.name))
}
