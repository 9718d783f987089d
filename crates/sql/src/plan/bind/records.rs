//! Functions of JSON whose rows are records: `json_to_record`, `json_to_recordset` and those of jsonb. What stands
//! behind them in FROM says which columns a record has.
//!
//! 1. A column is the member of its name, cast from its text; NULL where there is no such member, or a JSON null.
//! 2. Types whose casts cut values to their length are refused (0A000): PostgreSQL gives an error for a value that is
//!    too long. So are arrays and domains.
use super::from::{Source, columns};
use super::sets::Standing;
use super::{Binder, Placed, Result, unsupported, wrong};
use crate::functions::json::spread::{self as spreads, Spread};
use crate::parse::types;
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, when};
use terrace_engine::DataType;
use terrace_grammar::statement::{Call, ColumnDefinition};

/// 42601: the function's rows have columns of their own.
pub(super) fn refuse_columns(columns: &[ColumnDefinition]) -> Result<()> {
    match columns.first() {
        Some(column) => {
            let message = "a column definition list is only allowed for functions returning \"record\"";
            wrong(column.name.at, "42601", message)
        }
        None => Ok(()),
    }
}

impl Binder<'_> {
    /// The function, if its rows are records. 42601 where it has no columns, or has some and no need of them.
    pub(super) fn record_of(&self, call: &Call, standing: Standing<'_>) -> Result<Option<&'static Spread>> {
        let spread = spreads::function(&call.name.last().name).filter(|spread| spread.is_of_records());
        match (spread, standing.columns) {
            (None, columns) => refuse_columns(columns).map(|()| None),
            (Some(_), []) => {
                let message = "a column definition list is required for functions returning \"record\"";
                wrong(call.name.at(), "42601", message)
            }
            (Some(_), [first, ..]) if standing.numbered => {
                wrong(first.name.at, "42601", "WITH ORDINALITY cannot be used with a column definition list")
            }
            (spread, _) => Ok(spread),
        }
    }

    /// The records of a source's one column, taken apart (invariant 1).
    pub(super) fn with_columns(&self, mut source: Source, of: &Spread, wanted: &[ColumnDefinition]) -> Result<Source> {
        let [relation] = source.relations.as_mut_slice() else { unreachable!("one relation was made") };
        let (_, record) = relation.columns.pop().expect("a function of records has one column");
        let kind = if of.jsonb { "jsonb" } else { "json" };
        let schema = source.plan.schema().clone();
        let mut all: Vec<Expr> = columns(&source.plan).collect();
        for column in wanted {
            let called = &column.name.name;
            if relation.columns.iter().any(|(title, _)| title == called) {
                let message = format!("column name \"{called}\" specified more than once");
                return wrong(column.name.at, "42701", message);
            }
            let name = || Expr::Literal(called.as_str().into(), None);
            let text = self.function_of(&format!("{kind}_object_field_text"), vec![record.clone(), name()], &schema)?;
            let value = match self.type_of_member(column).at(column.data_type.at)? {
                DataType::Text => text,
                to @ (DataType::Json | DataType::Jsonb) => {
                    let of = vec![record.clone(), name()];
                    let member = self.function_of(&format!("{kind}_object_field"), of, &schema)?;
                    let member = self.cast_to(member, to, &schema)?;
                    when(text.is_null(), Expr::Literal(ScalarValue::Null, None)).otherwise(member)?
                }
                to => self.cast_to(text, to, &schema)?,
            };
            let made = self.column_name(called);
            all.push(value.alias(&made));
            relation.columns.push((called.clone(), Expr::Column(Column::new_unqualified(made))));
        }
        source.plan = LogicalPlanBuilder::from(source.plan).project(all)?.build()?;
        source.visible.clone_from(&relation.columns);
        Ok(source)
    }

    /// Invariant 2.
    fn type_of_member(&self, column: &ColumnDefinition) -> Result<DataType> {
        match types::of_column(&column.data_type, self.catalog())? {
            (DataType::Varchar(0), None, None) => Ok(DataType::Text),
            (DataType::Varchar(_) | DataType::Char(_) | DataType::Array(_), ..) | (_, Some(_), _) | (_, _, Some(_)) => {
                unsupported("a column of this type in a column definition list")
            }
            (of, None, None) => Ok(of),
        }
    }
}
