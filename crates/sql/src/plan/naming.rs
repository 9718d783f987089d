//! Names of result columns as PostgreSQL gives them: a function's name, a column's, `?column?` for other expressions.
//!
//! DataFusion demands distinct names within one SELECT, PostgreSQL does not: a name that occurs again gets a suffix
//! after [`MARK`], which [`shown`] cuts off.
use datafusion::arrow::datatypes::Schema;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::sql::sqlparser::ast::{DataType, Expr, Ident, SelectItem, SetExpr, TrimWhereField};
use std::sync::Arc;

/// No name a user can write contains it.
const MARK: char = '\0';

pub(crate) fn shown(name: &str) -> &str {
    name.split(MARK).next().unwrap_or(name)
}

/// A name of this title that no other has whose number differs.
pub(crate) fn numbered(title: &str, number: usize) -> String {
    format!("{title}{MARK}{number}")
}

/// Gives every unnamed item of the SELECT lists in a query body its name.
pub(crate) fn name_columns(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => {
            let mut seen: Vec<String> = vec![];
            // `*` stands for names not known here: a column beside it may repeat one of them.
            let wildcard =
                |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
            let wild = select.projection.iter().any(wildcard);
            for item in &mut select.projection {
                name_item(item, &mut seen, wild);
            }
        }
        SetExpr::SetOperation { left, right, .. } => {
            name_columns(left);
            name_columns(right);
        }
        _ => {}
    }
}

fn name_item(item: &mut SelectItem, seen: &mut Vec<String>, wild: bool) {
    let (name, is_column) = match item {
        SelectItem::UnnamedExpr(expr) => {
            (expr_name(expr), matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)))
        }
        SelectItem::ExprWithAlias { alias, .. } => (crate::parse::fold(alias), false),
        _ => return,
    };
    let repeated = seen.contains(&name) || (wild && is_column);
    let distinct = if repeated { format!("{name}{MARK}{}", seen.len()) } else { name.clone() };
    seen.push(name);
    match item {
        // A column's own name is its name already.
        SelectItem::UnnamedExpr(_) if is_column && !repeated => {}
        SelectItem::UnnamedExpr(expr) => {
            // Moved: a clone would recurse over a deep tree once more.
            let expr = std::mem::replace(expr, Expr::Identifier(Ident::new("")));
            *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', distinct) };
        }
        SelectItem::ExprWithAlias { alias, .. } if repeated => *alias = Ident::with_quote('"', distinct),
        _ => {}
    }
}

/// As FigureColname of PostgreSQL's documentation on select lists describes it.
pub(crate) fn expr_name(expr: &Expr) -> String {
    found_name(expr).map_or_else(|| "?column?".into(), |name| name.text)
}

/// A type's name and `case` are weak: what stands around them names the column again.
struct Name {
    text: String,
    strong: bool,
}

fn strong(text: impl Into<String>) -> Option<Name> {
    Some(Name { text: text.into(), strong: true })
}

fn weak(text: impl Into<String>) -> Option<Name> {
    Some(Name { text: text.into(), strong: false })
}

fn found_name(expr: &Expr) -> Option<Name> {
    let fold = crate::parse::fold;
    match expr {
        Expr::Identifier(ident) => strong(fold(ident)),
        Expr::CompoundIdentifier(parts) => strong(fold(parts.last()?)),
        Expr::Function(function) => strong(fold(function.name.0.last()?.as_ident()?)),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => found_name(inner),
        Expr::Cast { expr, data_type, .. } => named_or(found_name(expr), || type_name(data_type)),
        Expr::TypedString(literal) => weak(type_name(&literal.data_type)),
        Expr::Interval(_) => weak("interval"),
        Expr::Case { else_result, .. } => {
            named_or(else_result.as_ref().and_then(|result| found_name(result)), || "case".into())
        }
        Expr::Exists { negated: false, .. } => strong("exists"),
        Expr::Array(_) => strong("array"),
        Expr::AtTimeZone { .. } => strong("timezone"),
        Expr::Substring { shorthand, .. } => strong(if *shorthand { "substr" } else { "substring" }),
        Expr::Overlay { .. } => strong("overlay"),
        Expr::Trim { trim_where, .. } => strong(match trim_where {
            Some(TrimWhereField::Leading) => "ltrim",
            Some(TrimWhereField::Trailing) => "rtrim",
            Some(TrimWhereField::Both) | None => "btrim",
        }),
        Expr::Position { .. } => strong("position"),
        Expr::Extract { .. } => strong("extract"),
        Expr::Ceil { .. } => strong("ceil"),
        Expr::Floor { .. } => strong("floor"),
        Expr::Subquery(query) => column_of(&query.body),
        _ => None,
    }
}

/// The name that a query's column has, whatever stands around the query.
fn column_of(body: &SetExpr) -> Option<Name> {
    match body {
        SetExpr::Select(select) => match select.projection.first()? {
            SelectItem::UnnamedExpr(inner) => strong(expr_name(inner)),
            SelectItem::ExprWithAlias { alias, .. } => strong(crate::parse::fold(alias)),
            _ => None,
        },
        SetExpr::SetOperation { left, .. } => column_of(left),
        SetExpr::Query(query) => column_of(&query.body),
        SetExpr::Values(_) => strong("column1"),
        _ => None,
    }
}

/// A strong name, or else this weak one.
fn named_or(found: Option<Name>, otherwise: impl FnOnce() -> String) -> Option<Name> {
    found.filter(|name| name.strong).or_else(|| weak(otherwise()))
}

fn type_name(sql: &DataType) -> String {
    cast_name(&sql.to_string().to_lowercase())
}

/// PostgreSQL's internal name of a type.
fn cast_name(sql: &str) -> String {
    // An array's name is its items'.
    let base = sql.split(['(', '[']).next().unwrap_or(sql).trim();
    match base {
        "int" | "integer" | "int4" => "int4",
        "bigint" | "int8" => "int8",
        "smallint" | "int2" => "int2",
        "double precision" | "float8" | "float" | "double" => "float8",
        "real" | "float4" => "float4",
        "boolean" | "bool" => "bool",
        "character varying" | "varchar" => "varchar",
        "character" | "char" => "bpchar",
        "decimal" | "dec" => "numeric",
        "timestamp without time zone" | "timestamp" => "timestamp",
        "timestamp with time zone" | "timestamptz" => "timestamptz",
        other => other,
    }
    .to_string()
}

/// With the names that the client sees. Any column may be NULL: nothing here depends on it.
pub(crate) fn shown_schema(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|f| f.as_ref().clone().with_name(shown(f.name())).with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
