//! ALTER TABLE ... ALTER COLUMN ... TYPE, where each value stays as it is stored: to the same type, between text and
//! varchar of any length that the values have, to a numeric of more digits and as many places. What would write the
//! table's rows anew is refused.
use crate::error::unsupported;
use crate::parse::types::data_type;
use crate::statement::run::Run;
use std::sync::Arc;
use terrace_engine::{ColumnDef, DataType, EngineError, Result, Table};
use terrace_grammar::quoted;
use terrace_grammar::statement::{Expr, ExprKind, Ident, TypeName};

impl Run<'_> {
    pub(crate) async fn set_type(
        &self,
        table: &Table,
        column: &Ident,
        to: &TypeName,
        using: Option<&Expr>,
    ) -> Result<Arc<Table>> {
        let (at, definition) = self.definition(table, column)?;
        let to = data_type(to)?;
        if using.is_some_and(|using| !is_column(using, &column.name, to)) {
            return Err(unsupported("ALTER COLUMN TYPE ... USING another value than the column's"));
        }
        if let Some(view) = self.begin_statement().await.views_on(&table.name, Some(at)).first() {
            let (view, column) = (quoted(&view.name), quoted(&column.name));
            let detail = format!("rule _RETURN on view {view} depends on column {column}");
            let error = EngineError::new("0A000", "cannot alter type of a column used by a view or rule");
            return Err(error.with_detail(detail));
        }
        if !to.is_stored_as(definition.data_type) {
            let refused = unsupported(format!("ALTER COLUMN TYPE from {} to {to}", definition.data_type));
            return Err(refused.with_hint("Add a column of the new type, copy the values, and drop the old one."));
        }
        self.change_column(table, at, ColumnDef { data_type: to, ..definition }).await
    }
}

/// Whether an expression is the column, or the column cast to its new type.
fn is_column(expr: &Expr, column: &str, to: DataType) -> bool {
    match &expr.kind {
        ExprKind::Column(name) => matches!(name.parts(), [own] if own.name == column),
        ExprKind::Cast { arg, to: of, .. } => data_type(of).is_ok_and(|of| of == to) && is_column(arg, column, to),
        _ => false,
    }
}
