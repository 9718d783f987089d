//! CREATE TABLE AS and SELECT INTO.
//!
//! 1. The query is planned before the table is there, so that it cannot read it. Its rows are stored while it runs.
//! 2. A column is of a type that a table can have, or the statement is refused: none is turned into another.
use crate::error::unsupported;
use crate::functions::builtin::type_name;
use crate::plan::naming::shown_schema;
use crate::plan::planner::typed;
use crate::statement::ddl::{check_name, storage_options};
use crate::statement::dispatch::skip_existing;
use crate::statement::outcome::{Done, Outcome};
use crate::statement::run::Run;
use crate::statement::target::Target;
use crate::values::{PG_TYPE, PG_TYPMOD, assign_array, field_type};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field};
use datafusion::logical_expr::LogicalPlan;
use terrace_engine::catalog::access::Securable;
use terrace_engine::{ColumnDef, DataType, EngineError, Result, Table, TableSpec};
use terrace_grammar::statement::{CreateTableAs, Ident};

impl Run<'_> {
    /// The tag says how many rows there were, or, where none were asked for, what the statement is.
    pub(crate) async fn create_table_as(&self, create: &CreateTableAs) -> Result<Done> {
        let done = |tag: String, notices| Ok(Done::Command(Outcome::Command { tag, notices }));
        let plan = self.plan_described(&create.query).await?;
        let columns = self.result_columns(plan)?;
        let catalog = self.begin_statement().await;
        let target = Target::of(&create.name, create.temporary, create.on_commit, &catalog)?;
        check_name(&target.name)?;
        if target.is_taken(&target.name, &catalog) {
            return done("CREATE TABLE AS".into(), skip_existing(&target.name, create.if_not_exists)?);
        }
        self.info.actor(&catalog).permit_creation(&catalog, target.placing)?;
        let too_many = || EngineError::new("42601", "too many column names were specified");
        let columns = called(columns, &create.columns, too_many)?;
        let notices = storage_options(&create.storage)?;
        // Before there is a table of the name (invariant 1).
        let plan = match create.with_data {
            true => Some(self.plan_tree(&create.query).await?),
            false => None,
        };
        let spec = TableSpec { name: target.name, columns, indexes: vec![] };
        let make = async { self.cell.lock().await.open().create_table_in(spec, target.placing).await };
        let table = self.cancel.run(make).await?;
        self.own_in(table.oid, Some((table.space, Securable::Table))).await?;
        match plan {
            Some(plan) => done(format!("SELECT {}", Box::pin(self.fill(&table, &plan)).await?), notices),
            None => done("CREATE TABLE AS".into(), notices),
        }
    }

    /// The columns that a query's result has. 0A000 where one is of a type that no table has (invariant 2).
    pub(crate) fn result_columns(&self, plan: LogicalPlan) -> Result<Vec<ColumnDef>> {
        let typed = typed(self.state.get(), plan)?;
        let schema = shown_schema(typed.schema().as_arrow());
        schema.fields().iter().map(|field| Ok(ColumnDef::new(field.name(), column_type(field)?))).collect()
    }

    /// Stores what a query answers, and counts it.
    async fn fill(&self, table: &Table, plan: &LogicalPlan) -> Result<u64> {
        let mut stream = self.begin(plan, None).await?;
        let mut count = 0;
        while let Some(batch) = self.next_batch(&mut stream).await? {
            assert_eq!(batch.num_columns(), table.columns.len(), "the table was made for it");
            let columns = table.columns.iter().zip(batch.columns());
            let columns: Vec<_> = columns.map(|(column, array)| assign_array(array, column)).collect::<Result<_>>()?;
            let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
            for _ in 0..batch.num_rows() {
                let row: Vec<_> = columns.iter_mut().map(|column| column.next().expect("a value a row")).collect();
                self.store(table, &row).await?;
                count += 1;
            }
        }
        Ok(count)
    }
}

pub(crate) fn column_type(field: &Field) -> Result<DataType> {
    let own = field.metadata().get(PG_TYPE).filter(|name| !matches!(name.as_str(), "varchar" | "bpchar"));
    match (field.data_type(), field_type(field)) {
        // A constant in quotes, and NULL.
        (ArrowType::Null, _) => Ok(DataType::Text),
        // What is computed has no precision, as in PostgreSQL.
        (ArrowType::Decimal128(..), _) if !field.metadata().contains_key(PG_TYPMOD) => Ok(DataType::Numeric(None)),
        (arrow, Some(of)) if own.is_none() && *arrow != ArrowType::UInt32 => Ok(of),
        (arrow, _) => {
            let of = own.cloned().unwrap_or_else(|| type_name(arrow));
            let error = unsupported(format!("a column \"{}\" of type {of}", field.name()));
            Err(error.with_hint("Cast it to a type that a table can have, e.g. text."))
        }
    }
}

/// The columns with other names, as far as those go; `too_many`: the error where there are more names than columns.
pub(crate) fn called(
    mut columns: Vec<ColumnDef>,
    names: &[Ident],
    too_many: impl Fn() -> EngineError,
) -> Result<Vec<ColumnDef>> {
    if names.len() > columns.len() {
        return Err(too_many());
    }
    for (column, name) in columns.iter_mut().zip(names) {
        column.name.clone_from(&name.name);
    }
    for (at, column) in columns.iter().enumerate() {
        if columns[..at].iter().any(|before| before.name == column.name) {
            return Err(EngineError::new("42701", format!("column \"{}\" specified more than once", column.name)));
        }
    }
    Ok(columns)
}
