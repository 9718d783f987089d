//! ALTER TABLE ... ALTER COLUMN ... TYPE.
//!
//! 1. Where each value stays as it is stored, the definition alone changes: to the same type, between text and varchar
//!    of any length that the values have, to a numeric of more digits and as many places.
//! 2. Otherwise the table gets new rows, as TRUNCATE gives it none: a new object, filled by a query over the old one.
//!    Nobody else uses the table, so the query sees every row that is committed. Under REPEATABLE READ it would not.
//! 3. The other columns keep their values. So no foreign key is looked at; one of the column itself is refused.
use crate::cast::{Castable, castable};
use crate::error::unsupported;
use crate::parse;
use crate::parse::identity::Identity;
use crate::parse::types::{domain_named, of_column};
use crate::statement::computed::{computed_of, generated_of};
use crate::statement::indexes::class_of;
use crate::statement::run::Run;
use crate::values::{assign_array, check_assignable, check_not_null, live_columns};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use std::sync::Arc;
use terrace_engine::{Catalog, ColumnDef, DataType, Datum, EngineError, Isolation, Result, Table};
use terrace_grammar::quoted;
use terrace_grammar::statement::{Expr, ExprKind, Ident, Statement, TypeName, Written};

impl Run<'_> {
    pub(crate) async fn set_type(
        &self,
        table: &Arc<Table>,
        column: &Ident,
        to: &TypeName,
        using: Option<&Written>,
    ) -> Result<Arc<Table>> {
        let (at, definition) = self.definition(table, column)?;
        let catalog = self.begin_statement().await;
        self.info.permit_type(&catalog, to)?;
        if domain_named(to, &catalog).is_some() {
            return Err(unsupported("ALTER COLUMN TYPE to a domain"));
        }
        let (to, digits, _) = of_column(to, &catalog)?;
        if let Some(view) = self.begin_statement().await.views_on((table.space, &table.name), Some(at)).first() {
            let (view, column) = (quoted(&view.name), quoted(&column.name));
            let detail = format!("rule _RETURN on view {view} depends on column {column}");
            let error = EngineError::new("0A000", "cannot alter type of a column used by a view or rule");
            return Err(error.with_detail(detail));
        }
        refuse_generated(table, &definition)?;
        let is_itself = using.is_none_or(|using| is_column(&using.expr, &column.name, to, &catalog));
        if is_itself && to.is_stored_as(definition.data_type) && (digits.is_none() || digits == definition.digits) {
            return self
                .change_column(table, at, ColumnDef { data_type: to, domain: None, digits, ..definition })
                .await;
        }
        if using.is_none() && castable(definition.data_type, to) != Castable::ByAssignment {
            let name = &definition.name;
            let message = format!("column \"{name}\" cannot be cast automatically to type {}", to.base_name());
            let hint = format!("You might need to specify \"USING {}::{to}\".", quoted(name));
            return Err(EngineError::new("42804", message).with_hint(hint));
        }
        let column = ColumnDef { data_type: to, missing: Datum::Null, domain: None, digits, ..definition };
        self.refuse_rewrite(table, at, &column).await?;
        let value = using.map_or(quoted(&column.name), |using| using.text.clone());
        Box::pin(self.rewrite(table, at, column, &value)).await
    }

    /// What stands against new rows (invariants 2 and 3), and a default that is none of the new type.
    async fn refuse_rewrite(&self, table: &Table, at: usize, column: &ColumnDef) -> Result<()> {
        let (catalog, name) = (self.begin_statement().await, &column.name);
        let own = table.foreign_keys.iter().find(|key| key.columns.contains(&at));
        let others = catalog.tables().flat_map(|other| other.foreign_keys.iter());
        let mut others = others.filter(|key| key.referenced == table.oid);
        if let Some(key) = own.or_else(|| others.find(|key| key.key.contains(&at))) {
            let hint = "Drop the constraint, alter the types of both of its columns, and add it again.";
            return Err(unsupported(format!(
                "ALTER COLUMN TYPE of \"{name}\", which is part of foreign key constraint \
                \"{}\",",
                key.name
            ))
            .with_hint(hint));
        }
        if Identity::of(column).is_some() {
            return Err(unsupported("ALTER COLUMN TYPE of an identity column"));
        }
        if !computed_of(table, name).is_empty() {
            let error = unsupported(format!("ALTER COLUMN TYPE of \"{name}\", which an expression of an index names,"));
            return Err(error.with_hint("Drop the index, alter the type, and create it again."));
        }
        for index in &table.indexes {
            for (place, _) in index.keys().iter().enumerate().filter(|(_, key)| **key == at) {
                class_of(index.key_option(place).class.as_deref(), column.data_type)?;
            }
        }
        if self.cell.lock().await.open().isolation() != Isolation::ReadCommitted {
            return Err(unsupported("ALTER COLUMN TYPE that writes rows anew under REPEATABLE READ or SERIALIZABLE"));
        }
        let Some(default) = &column.default_sql else { return Ok(()) };
        let text = format!("ALTER TABLE t ALTER c SET DEFAULT {default}");
        let parsed = parse::statement(&text)?.expect("it is one statement");
        let Statement::AlterTable(alter) = parsed.statement() else { unreachable!("{text} is ALTER TABLE") };
        let [terrace_grammar::statement::AlterAction::SetDefault { value, .. }] = alter.actions.as_slice() else {
            unreachable!("{text} sets a default")
        };
        self.check_default(value, column, table.temporary.is_some()).await.map_err(|_| {
            let to = column.data_type.base_name();
            let message = format!("default for column \"{name}\" cannot be cast automatically to type {to}");
            EngineError::new("42804", message)
        })
    }

    /// Invariant 2.
    async fn rewrite(&self, table: &Arc<Table>, at: usize, column: ColumnDef, value: &str) -> Result<Arc<Table>> {
        let positions: Vec<usize> = live_columns(table).map(|(at, _)| at).collect();
        let values = positions.iter().map(|position| match *position == at {
            true => format!("({value})"),
            false => quoted(&table.columns[*position].name),
        });
        let text = {
            let (values, schema) = (values.collect::<Vec<_>>().join(", "), parse::numbered(table.space));
            format!("SELECT {values} FROM {schema}.{}", quoted(&table.name))
        };
        let parsed = parse::statement(&text)?.expect("a query is a statement");
        let Statement::Query(query) = parsed.statement() else { unreachable!("{text} is a query") };
        let plan = self.plan_own(query).await?;
        refuse_but_values(&plan)?;
        let place = positions.iter().position(|position| *position == at).expect("the column is a live one");
        let given = plan.schema().field(place).data_type().clone();
        check_assignable(&given, &column, false).map_err(|error| match error.state.0 {
            "42804" => {
                let to = column.data_type.base_name();
                let name = &column.name;
                let message =
                    format!("result of USING clause for column \"{name}\" cannot be cast automatically to type {to}");
                EngineError::new("42804", message).with_hint("You might need to add an explicit cast.")
            }
            _ => error,
        })?;
        let mut stream = self.begin(&plan, None).await?;
        // The query has begun to read the table as it is.
        let mut next = self.next_batch(&mut stream).await?;
        let retype = async { self.cell.lock().await.open().retype_column(table, at, column).await };
        let new = self.cancel.run(retype).await?;
        let checking = self.checking(&new).await?;
        let mut bare = Table::clone(&new);
        bare.foreign_keys.clear();
        while let Some(batch) = next {
            let mut rows = vec![vec![Datum::Null; new.columns.len()]; batch.num_rows()];
            for (position, array) in positions.iter().zip(batch.columns()) {
                let values = assign_array(array, &new.columns[*position])?;
                rows.iter_mut().zip(values).for_each(|(row, value)| row[*position] = value);
            }
            for row in &rows {
                check_not_null(&new, row)?;
            }
            if let Some(by) = &checking {
                Box::pin(self.finish_by(&new, by, &mut rows.iter_mut().collect::<Vec<_>>())).await?;
            }
            for row in &rows {
                self.store(&bare, row).await?;
            }
            next = self.next_batch(&mut stream).await?;
        }
        Ok(new)
    }
}

/// 0A000 of a generated column, and of one that such a column names.
fn refuse_generated(table: &Table, column: &ColumnDef) -> Result<()> {
    let name = &column.name;
    if let Some(other) = generated_of(table, name).first() {
        let other = &table.columns[*other].name;
        let error = EngineError::new("0A000", "cannot alter type of a column used by a generated column");
        return Err(error.with_detail(format!("Column \"{name}\" is used by generated column \"{other}\".")));
    }
    match column.generated {
        Some(_) => Err(unsupported("ALTER COLUMN TYPE of a generated column")),
        None => Ok(()),
    }
}

/// A row for each row: nothing that joins, counts or multiplies them.
fn refuse_but_values(plan: &LogicalPlan) -> Result<()> {
    let mut plain = true;
    let found = plan.apply_with_subqueries(|node| {
        plain &= matches!(node, LogicalPlan::Projection(_) | LogicalPlan::TableScan(_) | LogicalPlan::SubqueryAlias(_));
        Ok(TreeNodeRecursion::Continue)
    });
    found.map_err(crate::error::from_datafusion)?;
    match plain {
        true => Ok(()),
        false => Err(unsupported("ALTER COLUMN TYPE ... USING such a value")),
    }
}

/// Whether an expression is the column, or the column cast to its new type.
fn is_column(expr: &Expr, column: &str, to: DataType, catalog: &Catalog) -> bool {
    match &expr.kind {
        ExprKind::Column(name) => matches!(name.parts(), [own] if own.name == column),
        ExprKind::Cast { arg, to: of, .. } => {
            of_column(of, catalog).is_ok_and(|(of, ..)| of == to) && is_column(arg, column, to, catalog)
        }
        _ => false,
    }
}
