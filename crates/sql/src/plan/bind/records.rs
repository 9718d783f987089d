//! Functions of JSON whose rows are records: `json_to_record`, `json_populate_record`, those of sets, and of jsonb.
//!
//! 1. What stands behind the function in FROM says which columns a record has. Of `json_populate_record(NULL::t, ...)`
//!    and `json_populate_record(ROW(...)::t, ...)` it is the table or the composite type t that says it.
//! 2. A column is the member of its name, as the column's type reads the member's text; NULL of a JSON null. Where
//!    there is no such member it is the column of the row that was given, or NULL.
//! 3. A text that is longer than a char or varchar is not cut, but refused (22001), as are other texts in INSERT.
use super::from::{Source, columns};
use super::scope::{Ctes, Scope};
use super::sets::Standing;
use super::{Binder, Fault, Placed, Result, fail, unsupported, wrong};
use crate::functions::builtin::type_name;
use crate::functions::chars::labelled;
use crate::functions::domains;
use crate::functions::json::populate;
use crate::functions::json::spread::{self as spreads, Spread};
use crate::parse::stored::Stored;
use crate::parse::{self, types};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlanBuilder, lit, when};
use std::sync::Arc;
use terrace_engine::types::CompositeType;
use terrace_engine::{ColumnDef, DataType, Domain, EngineError};
use terrace_grammar::statement::{At, Call, ColumnDefinition, Expr as Written, ExprKind, Literal, TypeName};

/// A column of the records.
pub(super) struct Member {
    name: String,
    at: At,
    of: DataType,
    domain: Option<Arc<Domain>>,
    /// Where there is no such member (invariant 2).
    otherwise: Option<Expr>,
}

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
    /// The columns of the function's records; `None`: its rows are no records. 42601 where there are none, or where
    /// they are said twice.
    pub(super) fn members_of(
        &self,
        call: &Call,
        standing: Standing<'_>,
        scope: &Scope<'_>,
    ) -> Result<Option<Vec<Member>>> {
        let spread = spreads::function(&call.name.last().name).filter(|spread| spread.is_of_records());
        let Some(spread) = spread else {
            return refuse_columns(standing.columns).map(|()| None);
        };
        let row = if spread.populates() { call.args.first().map(|arg| &arg.value) } else { None };
        if let Some(row) = row
            && let Some(members) = self.members_of_row((spread.name, row), standing, scope)?
        {
            return Ok(Some(members));
        }
        match standing.columns {
            [] => {
                let message = "a column definition list is required for functions returning \"record\"";
                wrong(call.name.at(), "42601", message)
            }
            [first, ..] if standing.numbered => {
                wrong(first.name.at, "42601", "WITH ORDINALITY cannot be used with a column definition list")
            }
            wanted => wanted.iter().map(|column| self.member(column)).collect::<Result<Vec<Member>>>().map(Some),
        }
    }

    /// Invariant 1; `None`: the row is a record of no type.
    fn members_of_row(
        &self,
        (function, row): (&str, &Written),
        standing: Standing<'_>,
        scope: &Scope<'_>,
    ) -> Result<Option<Vec<Member>>> {
        let (row, to) = match &row.kind {
            ExprKind::Cast { arg, to, .. } => (arg.as_ref(), Some(to.as_ref())),
            _ => (row, None),
        };
        let values = match &row.kind {
            ExprKind::Literal(Literal::Null) => None,
            ExprKind::Row { fields, .. } => Some(fields),
            _ => return unsupported("a row that is neither NULL nor written out, as an argument"),
        };
        match (to, values) {
            (Some(to), None) if is_record(to) => Ok(None),
            (Some(to), _) => self.members_of_table((function, row.at), to, values, standing, scope).map(Some),
            (None, Some(values)) => self.refuse_other_row(values, standing, scope),
            (None, None) => {
                let message = format!("could not determine row type for result of {function}");
                let hint = "Provide a non-null record argument, or call the function in the FROM clause using a column \
                    definition list.";
                fail(row.at, EngineError::new("42804", message).with_hint(hint))
            }
        }
    }

    fn members_of_table(
        &self,
        (function, at): (&str, At),
        to: &TypeName,
        values: Option<&Vec<Written>>,
        standing: Standing<'_>,
        scope: &Scope<'_>,
    ) -> Result<Vec<Member>> {
        if let Some(column) = standing.columns.first() {
            let message = "a column definition list is redundant for a function returning a named composite type";
            return wrong(column.name.at, "42601", message);
        }
        if self.defines_view() || self.is_of_text() {
            return unsupported("the row type of a table in a definition");
        }
        let live: Vec<ColumnDef> = match parse::relation(&to.name) {
            Ok(name) if types::known(to).is_err() && to.dimensions.is_empty() => {
                let composite = self.catalog().composite_type(&name).map(columns_of);
                let table = || self.catalog().table(&name).map(|table| table.columns.clone());
                let view = || self.catalog().view(&name).map(|view| view.columns.clone());
                let Some(columns) = composite.or_else(table).or_else(view) else {
                    return wrong(to.at, "42704", format!("type \"{}\" does not exist", to.name.shown()));
                };
                columns.into_iter().filter(|column| !column.dropped).collect()
            }
            _ => return wrong(at, "42804", format!("first argument of {function} must be a row type")),
        };
        if values.is_some_and(|values| values.len() != live.len()) {
            return wrong(at, "42846", format!("cannot cast type record to {}", to.name.shown()));
        }
        let mut members = vec![];
        for (number, column) in live.into_iter().enumerate() {
            if column.digits.is_some() {
                return unsupported("a column of this type in a record");
            }
            let otherwise = match values {
                None => None,
                Some(values) => {
                    let value = self.expr(&values[number], scope)?;
                    Some(self.cast_to(value, column.data_type, &scope.schema).at_value_of(&[&values[number]])?)
                }
            };
            let (of, domain) = (column.data_type, column.domain.clone());
            members.push(Member { name: column.name.clone(), at, of, domain, otherwise });
        }
        Ok(members)
    }

    /// `ROW(1, 2)` of no type: its columns have no names but in a list behind the function, which says the same types.
    fn refuse_other_row(
        &self,
        values: &[Written],
        standing: Standing<'_>,
        scope: &Scope<'_>,
    ) -> Result<Option<Vec<Member>>> {
        let Some(first) = standing.columns.first() else { return Ok(None) };
        let differs = |detail: String| {
            let message = "function return row and query-specified return row do not match";
            fail(first.name.at, EngineError::new("42804", message).with_detail(detail))
        };
        if values.len() != standing.columns.len() {
            let attributes = if values.len() == 1 { "attribute" } else { "attributes" };
            let (has, wanted) = (values.len(), standing.columns.len());
            return differs(format!("Returned row contains {has} {attributes}, but query expects {wanted}."));
        }
        for (number, (value, column)) in values.iter().zip(standing.columns).enumerate() {
            let has = type_name(&self.expr(value, scope)?.get_type(&scope.schema)?);
            let wanted = self.member(column)?.of.base_name();
            if has != wanted {
                let number = number + 1;
                return differs(format!(
                    "Returned type {has} at ordinal position {number}, but query expects {wanted}."
                ));
            }
        }
        unsupported("a row of no type, as an argument")
    }

    fn member(&self, column: &ColumnDefinition) -> Result<Member> {
        self.permit_type(&column.data_type)?;
        let (of, digits, domain) = types::of_column(&column.data_type, self.catalog()).at(column.data_type.at)?;
        if digits.is_some() {
            return unsupported("a column of this type in a column definition list");
        }
        Ok(Member { name: column.name.name.clone(), at: column.name.at, of, domain, otherwise: None })
    }

    /// The records of a source's one column, taken apart (invariant 2).
    pub(super) fn with_members(&self, mut source: Source, of: &Spread, members: Vec<Member>) -> Result<Source> {
        let [relation] = source.relations.as_mut_slice() else { unreachable!("one relation was made") };
        let (_, record) = relation.columns.pop().expect("a function of records has one column");
        let schema = source.plan.schema().clone();
        let before: Vec<Expr> = columns(&source.plan).collect();
        let (mut all, mut made) = (before.clone(), vec![]);
        for member in members {
            if relation.columns.iter().any(|(title, _)| *title == member.name) {
                let message = format!("column name \"{}\" specified more than once", member.name);
                return wrong(member.at, "42701", message);
            }
            let name = self.column_name(&member.name);
            all.push(self.member_value(&member, record.clone(), of, &schema)?.alias(&name));
            let column = Column::new_unqualified(name);
            relation.columns.push((member.name, Expr::Column(column.clone())));
            made.push((column, member.domain));
        }
        source.plan = LogicalPlanBuilder::from(source.plan.clone()).project(all)?.build()?;
        source.visible.clone_from(&relation.columns);
        if made.iter().all(|(_, domain)| domain.is_none()) {
            return Ok(source);
        }
        let mut all = before;
        for (column, domain) in made {
            let value = Expr::Column(column.clone());
            all.push(match domain {
                Some(domain) => self.met(value, domain, &source)?.alias(&column.name),
                None => value,
            });
        }
        source.plan = LogicalPlanBuilder::from(source.plan).project(all)?.build()?;
        Ok(source)
    }

    fn member_value(&self, member: &Member, record: Expr, of: &Spread, schema: &DFSchema) -> Result<Expr> {
        let kind = if of.jsonb { "jsonb" } else { "json" };
        let name = || Expr::Literal(member.name.as_str().into(), None);
        let part = || self.function_of(&format!("{kind}_object_field"), vec![record.clone(), name()], schema);
        let text = || self.function_of(&format!("{kind}_object_field_text"), vec![record.clone(), name()], schema);
        let null = || Expr::Literal(ScalarValue::Null, None);
        let value = match member.of {
            DataType::Text | DataType::Varchar(0) => text()?,
            to @ (DataType::Json | DataType::Jsonb) => {
                when(text()?.is_null(), null()).otherwise(self.cast_to(part()?, to, schema)?)?
            }
            to @ (DataType::Varchar(_) | DataType::Char(_) | DataType::Array(_)) if !populate::is_made(to) => {
                let item = to.item().unwrap_or(to);
                let length = match item {
                    DataType::Varchar(length) | DataType::Char(length) => length,
                    _ => 0,
                };
                let args = vec![
                    record.clone(),
                    name(),
                    Expr::Literal(item.base_name().into(), None),
                    lit(i64::from(length)),
                    lit(to.item().is_some()),
                ];
                self.cast_to(self.function_of("json member", args, schema)?, to, schema)?
            }
            to if populate::is_made(to) => populate::populated(part()?, to),
            to => self.cast_to(text()?, to, schema)?,
        };
        Ok(match &member.otherwise {
            Some(otherwise) => {
                let chosen = when(part()?.is_null(), otherwise.clone()).otherwise(value)?;
                // What Arrow's type does not tell.
                if member.of.is_text() { labelled(chosen, member.of) } else { chosen }
            }
            None => value,
        })
    }

    /// A value of a domain, which meets its conditions. They are about VALUE.
    fn met(&self, value: Expr, domain: Arc<Domain>, source: &Source) -> Result<Expr> {
        let mut of_value = source.clone();
        of_value.relations.truncate(1);
        of_value.relations[0].columns = vec![("value".to_owned(), value.clone())];
        of_value.visible.clone_from(&of_value.relations[0].columns);
        let ctes = Ctes::none();
        let scope = Scope::new(&of_value, None, &ctes);
        let mut args = vec![value];
        for check in domain.all_checks() {
            let text = Stored::read(&check.sql).ok_or_else(|| EngineError::internal("a condition is an expression"))?;
            args.push(self.expr(text.expr(), &scope).map_err(|fault| match fault {
                Fault::Wrong { error, .. } => Fault::Wrong { error, at: None },
                fault => fault,
            })?);
        }
        Ok(domains::checked(domain.clone(), args))
    }
}

/// The attributes of a composite type, as columns.
fn columns_of(of: CompositeType) -> Vec<ColumnDef> {
    of.def().attributes().map(|attribute| ColumnDef::new(&attribute.name, attribute.data_type)).collect()
}

fn is_record(to: &TypeName) -> bool {
    let parts: Vec<&str> = to.name.parts().iter().map(|part| part.name.as_str()).collect();
    matches!(parts.as_slice(), ["record"] | ["pg_catalog", "record"]) && to.dimensions.is_empty()
}
