//! Types: of literals and parameters, of operators, of casts, and of what becomes one value.
//!
//! 1. How PostgreSQL resolves types is said in [`operators`](crate::plan::operators), [`resolve`], [`choosers`] and
//!    [`chars`](crate::functions::chars). Each expression goes through them once, when it is bound over expressions
//!    that have gone through them already.
//! 2. An expression that gets deep is cut when it is bound: what stands above it asks for its type again.
//! 3. A parameter that is cast at once is of the type that it is cast to; one that is a condition is boolean.
use super::composites::Becomes;
use super::query::parameter_number;
use super::scope::Scope;
use super::{Binder, Fault, Placed, Result, system, unsupported, wrong};
use crate::cast::LOOSE;
use crate::functions::arrays::item_type;
use crate::functions::chars::labelled;
use crate::functions::convert::{convert_scalar, is_open};
use crate::functions::interval::{self, Limits};
use crate::functions::{builtin, domains};
use crate::parse::stored::{Stored, VALUE};
use crate::parse::{literals, types};
use crate::pgcatalog::type_with_digits;
use crate::plan::choosers::{self, Chooser};
use crate::plan::{operators, resolve, rules};
use crate::values::decimal::is_decimal;
use crate::values::{arrow_interval, arrow_type, field_of, field_type, is_void};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{Cast, Placeholder};
use datafusion::logical_expr::{Expr, ExprSchemable, Operator};
use std::borrow::Cow;
use std::sync::Arc;
use terrace_engine::Domain;
use terrace_engine::{DataType, EngineError};
use terrace_grammar::statement::{self as tree, At, ExprKind, Literal, TypeName};

/// A constant of a time is read at once, in the zone and the style of when the statement was parsed.
fn constant_time(text: &str, of: DataType) -> datafusion::common::Result<Option<Expr>> {
    use DataType::{Date, Interval, Time, Timestamp, Timestamptz};
    // Of any type: what is wrong with it is told here.
    let read = Expr::Literal(convert_scalar(&ScalarValue::Utf8(Some(text.to_owned())), of)?, None);
    Ok(match of.item().unwrap_or(of) {
        // Constants of the two compare as equal, casts do not.
        Timestamp | Timestamptz => Some(Expr::Cast(Cast::new_from_field(Box::new(read), cast_field(of)))),
        Date | Time | Interval => Some(read),
        _ => None,
    })
}

impl Binder<'_> {
    /// An expression with its type settled, over expressions that have theirs (invariants 1 and 2).
    pub(super) fn made(&self, expr: Expr, schema: &DFSchema) -> Result<Expr> {
        let expr = resolve::rewrite(expr, schema)?.data;
        self.learn(&expr)?;
        Ok(if rules::is_deep(&expr) { rules::cut(expr, schema)? } else { expr })
    }

    pub(super) fn literal(&self, literal: &Literal) -> Result<Expr> {
        let value = match literal {
            Literal::Null => ScalarValue::Null,
            Literal::Bool(value) => ScalarValue::Boolean(Some(*value)),
            Literal::Int(value) => match i32::try_from(*value) {
                Ok(value) => ScalarValue::Int32(Some(value)),
                Err(_) => ScalarValue::Int64(Some(*value)),
            },
            Literal::Number(text) => number(text)?,
            Literal::Text(text) => ScalarValue::Utf8(Some(text.clone())),
            Literal::Bits { .. } => return unsupported("a constant of bits"),
        };
        Ok(Expr::Literal(value, None))
    }

    pub(super) fn parameter(&self, number: u32) -> Result<Expr> {
        let number = parameter_number(number)?;
        let id = format!("${number}");
        let Some(of) = self.type_of(number) else {
            self.open.borrow_mut().insert(number);
            return Ok(Expr::Placeholder(Placeholder { id, field: None }));
        };
        Ok(Expr::Placeholder(Placeholder { id, field: Some(Arc::new(field_of("", of, true))) }))
    }

    /// Two values beside an operator.
    pub(super) fn compared(&self, symbol: &str, left: Expr, right: Expr, schema: &DFSchema) -> Result<Expr> {
        // A name that a cast to `regclass` and its kind shows is the OID, beside one.
        let is_oid = |expr: &Expr| Ok::<bool, Fault>(expr.get_type(schema)? == ArrowType::UInt32);
        let (left, right) = match (system::is_name_of_oid(&left), system::is_name_of_oid(&right)) {
            (true, _) if is_oid(&right)? => (system::oid_behind(left), right),
            (_, true) if is_oid(&left)? => (left, system::oid_behind(right)),
            _ => (left, right),
        };
        if let Some(made) = self.array_operator(symbol, &left, &right, schema)? {
            return self.made(made, schema);
        }
        if let Some(made) = self.json_operator(symbol, &left, &right, schema)? {
            return Ok(made);
        }
        if let Some(made) = self.row_operator(symbol, &left, &right, schema)? {
            return Ok(made);
        }
        let sides = [left, right];
        self.refuse_sides(symbol, &sides, schema)?;
        let [left, right] = sides;
        if symbol == "^" {
            return self.function_of("power", vec![left, right], schema);
        }
        if matches!(symbol, "~" | "~*" | "!~" | "!~*" | "~~" | "~~*" | "!~~" | "!~~*") {
            texts(symbol, &[&left, &right], schema)?;
        }
        let Some(operator) = operator(symbol) else {
            return unknown_operator(symbol, &[left, right], schema);
        };
        self.made(operators::operated(operator, left, right, schema)?, schema)
    }

    /// Refuses what has an operator here alone: void (42883), and two values without a type (42725).
    fn refuse_sides(&self, symbol: &str, sides: &[Expr; 2], schema: &DFSchema) -> Result<()> {
        let mut void = false;
        for side in sides {
            void |= is_void(side.to_field(schema)?.1.as_ref());
        }
        if void && symbol != "||" || beside_oid(sides, schema)? {
            return no_operator(symbol, sides, schema).map(drop);
        }
        let written = sides.iter().all(|side| matches!(side, Expr::Literal(..)) && is_open(side));
        match symbol {
            "+" | "-" | "*" | "/" | "%" | "&" | "|" | "#" | "<<" | ">>" if written => {
                Err(not_unique(&format!("unknown {symbol} unknown")).into())
            }
            _ => Ok(()),
        }
    }

    /// A condition: what is none is refused. `what`: the part of the statement that it is.
    pub(super) fn condition(&self, expr: &tree::Expr, what: &'static str, scope: &Scope<'_>) -> Result<Expr> {
        if let ExprKind::Parameter(number) = expr.kind {
            self.settle_parameter(parameter_number(number)?, DataType::Bool);
        }
        let bound = self.expr(expr, scope)?;
        if matches!(what, "WHERE" | "HAVING") {
            self.refuse_untold(false)?;
        }
        self.boolean(bound, what, expr.at, &scope.schema)
    }

    fn boolean(&self, bound: Expr, what: &str, at: At, schema: &DFSchema) -> Result<Expr> {
        if let Expr::Literal(value @ (ScalarValue::Utf8(_) | ScalarValue::Null), None) = &bound {
            return Ok(Expr::Literal(convert_scalar(value, DataType::Bool).at_value(at)?, None));
        }
        let of = bound.get_type(schema)?;
        if matches!(of, ArrowType::Boolean | ArrowType::Null) {
            return Ok(bound);
        }
        let name = builtin::type_name(&of);
        wrong(at, "42804", format!("argument of {what} must be type boolean, not type {name}"))
    }

    pub(super) fn cast(&self, arg: &tree::Expr, to: &TypeName, at: At, scope: &Scope<'_>) -> Result<Expr> {
        if let Some(cast) = self.cast_to_system(arg, to, at, scope)? {
            return Ok(cast);
        }
        self.permit_type(to)?;
        types::refuse_hidden(to, self.catalog()).map_err(Fault::from).at(to.at)?;
        if let Some(domain) = types::domain_named(to, self.catalog()).filter(|_| target(to).is_err()) {
            if !to.dimensions.is_empty() {
                return unsupported("an array of a domain");
            }
            return self.cast_to_domain(arg, domain.clone(), at, scope);
        }
        let to = &*with_own_length(arg, to);
        let target = match types::of_user(to, self.catalog()) {
            Some(of) if target(to).is_err() => of,
            _ => target(to).map_err(|fault| types::no_schema(to, self.catalog()).map_or(fault, Fault::from))?,
        };
        if let Some(shown) = self.vector_as_text(arg, target, at, scope)? {
            return Ok(shown);
        }
        if let ExprKind::Parameter(number) = &arg.kind {
            self.settle_cast(*number, target)?;
        }
        let limits = limits(to)?;
        if let (Some(limits), ExprKind::Literal(Literal::Text(text)), DataType::Interval) = (limits, &arg.kind, target)
        {
            let read = limits.read(text).at_value(arg.at)?;
            return Ok(Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(arrow_interval(read))), None));
        }
        if let Some(row) = self.written_as(arg, target, Becomes::Cast, scope).at(at)? {
            return Ok(row);
        }
        let bound = match &arg.kind {
            ExprKind::Array(items) if target.item().is_some() => {
                let each = TypeName { dimensions: vec![], ..to.clone() };
                let own = types::item_name(to).unwrap_or(each);
                return self.array_of_cast(items, (to, &own), (target, at), scope);
            }
            _ => self.expr(arg, scope)?,
        };
        let bound = match system::class_of(arg) {
            Some(class) if target.is_text() => self.name_of_class(class, bound, scope)?,
            _ => bound,
        };
        if let ExprKind::Literal(Literal::Text(text)) = &arg.kind
            && !target.is_text()
            && let Some(read) = constant_time(text, target).at_value(arg.at)?
        {
            return Ok(limits.map_or(read.clone(), |limits| interval::limited(read, limits)));
        }
        let field = cast_field(target);
        let cast = Expr::Cast(Cast::new_from_field(Box::new(bound), field));
        let cast = self.made(cast, &scope.schema).at_value_of(&[arg]).at(at)?;
        if let Some((_, Some(digits))) = types::numeric_digits(to)? {
            let modifier = Expr::Literal(ScalarValue::Int32(Some(digits.number())), None);
            return self.function_of("numeric", vec![cast, modifier], &scope.schema).at_value_of(&[arg]).at(at);
        }
        Ok(match limits {
            Some(limits) => interval::limited(cast, limits),
            None => cast,
        })
    }

    /// A column of the system that is a vector, as its text.
    fn vector_as_text(&self, arg: &tree::Expr, to: DataType, at: At, scope: &Scope<'_>) -> Result<Option<Expr>> {
        let ExprKind::Column(_) = &arg.kind else { return Ok(None) };
        if !to.is_text() {
            return Ok(None);
        }
        let column = self.expr(arg, scope)?;
        if !system::is_vector(&column, &scope.schema)? {
            return Ok(None);
        }
        let args = vec![column, Expr::Literal(ScalarValue::Utf8(Some(" ".into())), None)];
        let shown = self.function_of("array_to_string", args, &scope.schema).at(at)?;
        let shown = if to == DataType::Text { shown } else { self.cast_to(shown, to, &scope.schema).at(at)? };
        Ok(Some(shown))
    }

    /// `ARRAY[a, b]::t[]`: its items are cast, and those of arrays within.
    fn array_of_cast(
        &self,
        items: &[tree::Expr],
        (whole, own): (&TypeName, &TypeName),
        (target, at): (DataType, At),
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let empty = || self.cast_to(Expr::Literal(ScalarValue::Utf8(Some("{}".into())), None), target, &scope.schema);
        if items.is_empty() {
            return empty();
        }
        let nested = items.iter().any(|item| matches!(item.kind, ExprKind::Array(_)));
        let mut made = vec![];
        for item in items {
            made.push(match nested {
                true => self.cast(item, whole, at, scope)?,
                false => {
                    let bound = self.cast(item, own, at, scope)?;
                    // An array of what is an array already.
                    let is = item_type(&bound.get_type(&scope.schema)?).is_some();
                    if is { self.cast(item, whole, at, scope)? } else { bound }
                }
            });
        }
        let made = operators::array(made, &scope.schema)?;
        // What its items' type does not tell.
        self.cast_to(made, target, &scope.schema).at(at)
    }

    /// A parameter that is cast. What is written behind the type cuts or rounds the value, which comes as it is.
    fn settle_cast(&self, number: u32, target: DataType) -> Result<()> {
        let whole = |of: DataType| match of {
            DataType::Varchar(_) | DataType::Char(_) => DataType::Text,
            DataType::Numeric(_) => DataType::Numeric(None),
            other => other,
        };
        let of = target.item().map_or(whole(target), |item| whole(item).array().expect("an item is no array"));
        self.settle_parameter(parameter_number(number)?, of);
        Ok(())
    }

    /// `x::domain`: a value of the base type that meets the domain's conditions, with x in the place of VALUE.
    fn cast_to_domain(&self, arg: &tree::Expr, domain: Arc<Domain>, at: At, scope: &Scope<'_>) -> Result<Expr> {
        let base = type_with_digits(domain.base, domain.digits);
        let broken = || EngineError::internal(format!("{base} is no type"));
        let to = types::type_name(&base).ok_or_else(broken)?;
        let value = tree::Expr {
            at: arg.at,
            kind: ExprKind::Cast { arg: Box::new(arg.clone()), to: Box::new(to), word_at: at },
        };
        let bound = self.expr(&value, scope)?;
        let checks = domain.all_checks();
        if bound.is_volatile() && !checks.is_empty() {
            return unsupported("a cast of a volatile value to a domain");
        }
        let mut args = vec![bound];
        for check in checks {
            let text = Stored::read(&check.sql).ok_or_else(|| EngineError::internal("a condition is an expression"))?;
            let mut condition = text.expr().clone();
            in_place_of_value(&mut condition, &value);
            args.push(self.expr(&condition, scope).map_err(|fault| match fault {
                Fault::Wrong { error, .. } => Fault::Wrong { error, at: None },
                fault => fault,
            })?);
        }
        Ok(domains::checked(domain.clone(), args))
    }

    pub(super) fn cast_to(&self, expr: Expr, to: DataType, schema: &DFSchema) -> Result<Expr> {
        if !to.is_text() {
            read_now(&expr, to)?;
        }
        let cast = Expr::Cast(Cast::new_from_field(Box::new(expr), cast_field(to)));
        self.made(cast, schema)
    }

    /// Which of several is of another kind than the first that has a type.
    pub(super) fn mismatched<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>, schema: &DFSchema) -> Option<usize> {
        let types = exprs.into_iter().enumerate().filter(|(_, expr)| !is_open(expr));
        let mut types = types.filter_map(|(at, expr)| Some((at, expr.get_type(schema).ok()?)));
        let (_, first) = types.next()?;
        types.find(|(_, other)| choosers::cannot_be_compared(&first, other)).map(|(at, _)| at)
    }

    /// The columns of VALUES, each of one type.
    pub(super) fn one_type_each(&self, rows: &mut [Vec<Expr>], scope: &Scope<'_>) -> Result<()> {
        if rows.len() < 2 {
            return Ok(());
        }
        for column in 0..rows[0].len() {
            let exprs: Vec<Expr> = rows.iter_mut().map(|row| std::mem::take(&mut row[column])).collect();
            let made = choosers::of_one_type(Chooser::Case, exprs, &scope.schema);
            let (made, of) = made.map_err(|error| match Fault::from(error) {
                Fault::Wrong { mut error, at } => {
                    error.message = error.message.replacen("CASE types", "VALUES types", 1);
                    Fault::Wrong { error, at }
                }
                fault => fault,
            })?;
            if of.as_ref().and_then(field_type).map(|of| of.item().unwrap_or(of)) == Some(LOOSE) {
                return unsupported("chars of different lengths in VALUES");
            }
            let of_text = of.as_ref().and_then(field_type) == Some(DataType::Text);
            for (row, expr) in rows.iter_mut().zip(made) {
                let field = expr.to_field(&scope.schema)?.1;
                row[column] = match field_type(&field) {
                    Some(DataType::Varchar(_)) if of_text => labelled(expr, DataType::Text),
                    _ => choosers::answered(expr, of.as_ref()),
                };
            }
        }
        Ok(())
    }
}

/// `'x'::bpchar`, as dumps have it: a char as long as the constant.
fn with_own_length<'t>(arg: &tree::Expr, to: &'t TypeName) -> Cow<'t, TypeName> {
    match &arg.kind {
        ExprKind::Literal(Literal::Text(text)) if types::is_open_char(to) && !text.is_empty() => {
            let kind = ExprKind::Literal(Literal::Int(text.chars().count() as i64));
            Cow::Owned(TypeName { modifiers: vec![tree::Expr { at: to.at, kind }], ..to.clone() })
        }
        _ => Cow::Borrowed(to),
    }
}

/// A number with a point or an exponent, or one that no bigint holds.
fn number(text: &str) -> Result<ScalarValue> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    if let Ok(whole) = text.parse::<i64>() {
        return Ok(ScalarValue::Int64(Some(whole)));
    }
    let digits_of = literals::digits(digits).map(|(precision, scale)| (precision as u8, scale as u8));
    let of = DataType::Numeric(digits_of);
    Ok(convert_scalar(&ScalarValue::Utf8(Some(format!("{sign}{digits}"))), of)?)
}

/// What `interval day to second(3)`, `interval(3)`, `timestamp(3)` and their like keep; `None`: all.
fn limits(name: &TypeName) -> Result<Option<Limits>> {
    let digits = match name.modifiers.as_slice() {
        [tree::Expr { kind: ExprKind::Literal(Literal::Int(digits @ 0..=6)), .. }] => Some(*digits as u8),
        _ => None,
    };
    let own = name.name.last().name.as_str();
    if !matches!(own, "interval" | "time" | "timestamp" | "timestamptz") || !name.dimensions.is_empty() {
        return Ok(None);
    }
    let Some(fields) = &name.fields else {
        return Ok(digits.map(|digits| Limits { fields: None, digits: Some(digits) }));
    };
    let Some(fields) = interval::fields(fields) else { return unsupported("these fields of an interval") };
    Ok(Some(Limits { fields: Some(fields), digits }))
}

/// Puts a value in the place of VALUE.
fn in_place_of_value(condition: &mut tree::Expr, value: &tree::Expr) {
    let is_value =
        matches!(&condition.kind, ExprKind::Column(name) if matches!(name.parts(), [one] if one.name == VALUE));
    match is_value {
        true => *condition = value.clone(),
        false => tree::children_mut(condition, &mut |child| in_place_of_value(child, value)),
    }
}

/// The field of what is cast. Arrow's type says all of a numeric, and a literal's digits are not to be told as a
/// column's. A cast to a field without name and metadata keeps the metadata of what is cast: a char would stay one.
fn cast_field(to: DataType) -> FieldRef {
    Arc::new(match to {
        numeric @ DataType::Numeric(_) => Field::new("", arrow_type(numeric), true),
        DataType::Text => field_of("text", DataType::Text, true),
        of => field_of("", of, true),
    })
}

pub(super) fn is_json_path(name: &TypeName) -> bool {
    let parts: Vec<&str> = name.name.parts().iter().map(|part| part.name.as_str()).collect();
    matches!(parts.as_slice(), ["jsonpath"] | ["pg_catalog", "jsonpath"]) && name.dimensions.is_empty()
}

fn target(name: &TypeName) -> Result<DataType> {
    if name.set_of || name.of_column {
        return unsupported("this type");
    }
    if let Some(item) = types::item_name(name).filter(|_| name.modifiers.is_empty())
        && let Some(array) = target(&item).ok().and_then(DataType::array)
    {
        return Ok(array);
    }
    // How many dimensions are written, and how many items, means nothing.
    let single = single(name)?;
    Ok(if name.dimensions.is_empty() { single } else { single.array().expect("a name without brackets is no array's") })
}

/// Those that Terrace has, as far as they take other modifiers than Terrace's.
const KNOWN: &[&str] = &[
    "int2",
    "int4",
    "int8",
    "float4",
    "float8",
    "bool",
    "text",
    "bytea",
    "date",
    "uuid",
    "json",
    "jsonb",
    "timestamp",
    "timestamptz",
    "numeric",
    "varchar",
    "bpchar",
    "interval",
    "time",
    "oid",
    "name",
    "char",
    "xid",
    "regclass",
    "regtype",
    "regproc",
    "regprocedure",
    "regnamespace",
    "regrole",
];

/// PostgreSQL's types that Terrace has not.
const OTHERS: &[&str] = &[
    "jsonpath",
    "timetz",
    "money",
    "inet",
    "cidr",
    "macaddr",
    "macaddr8",
    "point",
    "line",
    "lseg",
    "box",
    "path",
    "polygon",
    "circle",
    "bit",
    "varbit",
    "xml",
    "tsvector",
    "tsquery",
    "int4range",
    "int8range",
    "numrange",
    "tsrange",
    "tstzrange",
    "daterange",
    "record",
    "refcursor",
    "tid",
    "cid",
    "xid8",
    "pg_lsn",
    "int2vector",
    "oidvector",
    "regoper",
    "regoperator",
    "regconfig",
    "regdictionary",
    "regcollation",
    "void",
    "unknown",
    "cstring",
    "aclitem",
    "pg_node_tree",
    "anyarray",
    "anyelement",
];

/// A type that is no array.
fn single(name: &TypeName) -> Result<DataType> {
    let parts: Vec<&str> = name.name.parts().iter().map(|part| part.name.as_str()).collect();
    let (of_system, own) = match parts.as_slice() {
        ["pg_catalog", own] => (true, *own),
        [own] => (false, *own),
        _ => return unsupported("a type of another schema"),
    };
    let Some(modifiers) = types::modifiers(name) else { return unsupported("this modifier of a type") };
    let of = match (own, modifiers.as_slice()) {
        ("int2", []) => DataType::Int2,
        ("int4", []) => DataType::Int4,
        ("int8", []) => DataType::Int8,
        ("float4", []) => DataType::Float4,
        ("float8", []) => DataType::Float8,
        ("bool", []) => DataType::Bool,
        ("text", []) => DataType::Text,
        ("bytea", []) => DataType::Bytea,
        ("date", []) => DataType::Date,
        ("uuid", []) => DataType::Uuid,
        ("json", []) => DataType::Json,
        ("jsonb", []) => DataType::Jsonb,
        ("timestamp", [] | [0..=6]) => DataType::Timestamp,
        ("timestamptz", [] | [0..=6]) => DataType::Timestamptz,
        ("numeric", []) => DataType::Numeric(None),
        ("numeric", [_, ..]) => match types::numeric_digits(name).map_err(Fault::from).at(name.at)? {
            Some((of, digits)) if digits.is_none() || name.dimensions.is_empty() => of,
            _ => return unsupported("an array of a numeric with more than 38 digits"),
        },
        ("varchar", []) => DataType::Varchar(0),
        ("varchar", [length @ 1..=0xFFFF_FFFF]) => DataType::Varchar(*length as u32),
        ("bpchar", [length @ 1..=0xFFFF_FFFF]) if of_system || own == "bpchar" => DataType::Char(*length as u32),
        ("interval", [] | [0..=6]) => DataType::Interval,
        ("time", [] | [0..=6]) => DataType::Time,
        ("varchar" | "bpchar", [length]) if *length < 1 => {
            let shown = if own == "bpchar" { "char" } else { own };
            return wrong(name.at, "22023", format!("length for type {shown} must be at least 1"));
        }
        _ if OTHERS.contains(&own) || KNOWN.contains(&own) => return unsupported("this type"),
        _ => return wrong(name.at, "42704", format!("type \"{}\" does not exist", name.name.shown())),
    };
    of.check().map_err(|error: EngineError| Fault::from(error)).at(name.at)?;
    Ok(of)
}

/// PostgreSQL's operators that Terrace has not.
const OTHER_OPERATORS: &[&str] = &[
    "->", "->>", "#>", "#>>", "#-", "@>", "<@", "?", "?|", "?&", "&&", "@@", "@@@", "@?", "<->", "-|-", "<<|", "|>>",
    "&<", "&>", "&<|", "|&>", "<^", ">^", "?#", "?-", "?-|", "?||", "~=", "@-@", "##", "<<=", ">>=", "!!", "^@", "~<~",
    "~>~", "~<=~", "~>=~", "*=", "*<>", "*<", "*>", "*<=", "*>=",
];

/// 42883 where PostgreSQL has none of that name.
fn unknown_operator(symbol: &str, sides: &[Expr], schema: &DFSchema) -> Result<Expr> {
    match OTHER_OPERATORS.contains(&symbol) {
        true => unsupported("this operator"),
        false => no_operator(symbol, sides, schema),
    }
}

/// What LIKE and regular expressions are given: texts. 42883
pub(super) fn texts(symbol: &str, sides: &[&Expr; 2], schema: &DFSchema) -> Result<()> {
    for side in sides {
        let of = side.get_type(schema)?;
        let void = is_void(side.to_field(schema)?.1.as_ref());
        if void || !is_open(side) && !matches!(of, ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Null) {
            let sides = sides.map(Expr::clone);
            return no_operator(symbol, &sides, schema).map(drop);
        }
    }
    Ok(())
}

/// Reads a quoted literal as a value of the type: PostgreSQL does it when it plans, also where no row comes to it.
pub(super) fn read_now(literal: &Expr, to: DataType) -> Result<()> {
    if let Expr::Literal(ScalarValue::Utf8(Some(text)), None) = literal {
        to.parse(text)?;
    }
    Ok(())
}

/// 42883
pub(super) fn no_operator(symbol: &str, sides: &[Expr], schema: &DFSchema) -> Result<Expr> {
    let mut names = vec![];
    for side in sides {
        names.push(match side.to_field(schema)?.1 {
            _ if is_open(side) => "unknown".to_owned(),
            field if is_void(&field) => "void".to_owned(),
            field => builtin::type_name(field.data_type()),
        });
    }
    let shown = match names.as_slice() {
        [left, right] => format!("{left} {symbol} {right}"),
        _ => format!("{symbol} {}", names.concat()),
    };
    let error = EngineError::new("42883", format!("operator does not exist: {shown}"));
    Err(operators::with_operator_hint(error).into())
}

/// Whether an oid stands beside a number with a fraction, or a text that is written as one: nothing compares them.
fn beside_oid(sides: &[Expr; 2], schema: &DFSchema) -> Result<bool> {
    let types = [sides[0].get_type(schema)?, sides[1].get_type(schema)?];
    let other = match &types {
        [ArrowType::UInt32, _] => 1,
        [_, ArrowType::UInt32] => 0,
        _ => return Ok(false),
    };
    let written = matches!(sides[other], Expr::Cast(_) | Expr::Literal(..)) && !is_open(&sides[other]);
    Ok(match &types[other] {
        ArrowType::Utf8 => written && !sides[other].any_column_refs(),
        of => of.is_floating() || of.is_decimal() || is_decimal(of),
    })
}

/// 42725
pub(super) fn not_unique(operator: &str) -> EngineError {
    let error = EngineError::new("42725", format!("operator is not unique: {operator}"));
    error.with_hint("Could not choose a best candidate operator. You might need to add explicit type casts.")
}

/// An operator as DataFusion knows it.
fn operator(symbol: &str) -> Option<Operator> {
    Some(match symbol {
        "=" => Operator::Eq,
        "<>" => Operator::NotEq,
        "<" => Operator::Lt,
        "<=" => Operator::LtEq,
        ">" => Operator::Gt,
        ">=" => Operator::GtEq,
        "+" => Operator::Plus,
        "-" => Operator::Minus,
        "*" => Operator::Multiply,
        "/" => Operator::Divide,
        "%" => Operator::Modulo,
        "||" => Operator::StringConcat,
        "&" => Operator::BitwiseAnd,
        "|" => Operator::BitwiseOr,
        "#" => Operator::BitwiseXor,
        "<<" => Operator::BitwiseShiftLeft,
        ">>" => Operator::BitwiseShiftRight,
        "~" => Operator::RegexMatch,
        "~*" => Operator::RegexIMatch,
        "!~" => Operator::RegexNotMatch,
        "!~*" => Operator::RegexNotIMatch,
        "~~" => Operator::LikeMatch,
        "~~*" => Operator::ILikeMatch,
        "!~~" => Operator::NotLikeMatch,
        "!~~*" => Operator::NotILikeMatch,
        _ => return None,
    })
}
