//! Names of result columns as PostgreSQL gives them: a function's name, a column's, `?column?` for other expressions.
//!
//! DataFusion demands distinct names within one SELECT, PostgreSQL does not: a name that occurs again gets a suffix after
//! [`MARK`], which [`shown`] cuts off.
use datafusion::sql::sqlparser::ast::{Expr, Ident, SelectItem, SetExpr};

/// No name a user can write contains it.
const MARK: char = '\0';

pub(crate) fn shown(name: &str) -> &str {
    name.split(MARK).next().unwrap_or(name)
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
fn expr_name(expr: &Expr) -> String {
    strong_name(expr).unwrap_or_else(|| "?column?".into())
}

fn strong_name(expr: &Expr) -> Option<String> {
    let fold = crate::parse::fold;
    Some(match expr {
        Expr::Identifier(ident) => fold(ident),
        Expr::CompoundIdentifier(parts) => fold(parts.last()?),
        Expr::Function(function) => fold(function.name.0.last()?.as_ident()?),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => return strong_name(inner),
        Expr::Cast { expr, data_type, .. } => match strong_name(expr) {
            Some(name) => name,
            None => cast_name(&data_type.to_string().to_lowercase()),
        },
        Expr::Case { else_result, .. } => {
            else_result.as_ref().and_then(|e| strong_name(e)).unwrap_or_else(|| "case".into())
        }
        Expr::Exists { .. } => "exists".into(),
        Expr::Array(_) => "array".into(),
        Expr::AtTimeZone { .. } => "timezone".into(),
        Expr::Substring { .. } => "substring".into(),
        Expr::Trim { .. } => "btrim".into(),
        Expr::Position { .. } => "position".into(),
        Expr::Extract { .. } => "extract".into(),
        Expr::Ceil { .. } => "ceil".into(),
        Expr::Floor { .. } => "floor".into(),
        Expr::Subquery(query) => match query.body.as_ref() {
            SetExpr::Select(select) => match select.projection.first()? {
                SelectItem::UnnamedExpr(inner) => return strong_name(inner),
                SelectItem::ExprWithAlias { alias, .. } => fold(alias),
                _ => return None,
            },
            _ => return None,
        },
        _ => return None,
    })
}

/// PostgreSQL's internal name of a type.
fn cast_name(sql: &str) -> String {
    let base = sql.split('(').next().unwrap_or(sql).trim();
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
