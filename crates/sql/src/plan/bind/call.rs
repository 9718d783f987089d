//! Calls: functions, aggregates and window functions.
//!
//! 1. A name is a function's before it is an aggregate's; with OVER it is an aggregate's or a window function's. Which
//!    functions there are, and which arguments they take, is [`builtin`](crate::functions::builtin)'s to say.
//! 2. An aggregate belongs to the innermost query that has a column of its arguments ([`super::outer_aggregates`]).
//! 3. Aggregates and windows stand where PostgreSQL lets them (42803, 42P20).
use super::outer_aggregates::{Called, home_of};
use super::scope::{Clause, Scope};
use super::select::Order;
use super::unnest::is_expandarray;
use super::{Binder, Fault, Placed, Result, json, named, system, unsupported, wrong};
use crate::functions::arrays::{array, gathered};
use crate::functions::arrays::{calls, item_type};
use crate::functions::convert::is_open;
use crate::functions::date_time;
use crate::functions::framed::Inner;
use crate::functions::{advisory, builtin, enums};
use crate::pgcatalog::FORMAT_OF_ITEMS;
use crate::values::arrays::is_array;
use crate::values::{PG_TYPE, engine_type, field_type};
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, ScalarFunction, Sort as By, WindowFunction};
use datafusion::logical_expr::{AggregateUDF, Expr, ExprSchemable, WindowFunctionDefinition, lit};
use std::sync::Arc;
use terrace_engine::DataType;
use terrace_grammar::statement::{self as tree, At, Call, ExprKind, Literal, Over, Sort, SpecialFunction};

/// Functions that are casts to the type of the name.
const CASTS: [(&str, DataType); 9] = [
    ("int2", DataType::Int2),
    ("int4", DataType::Int4),
    ("int8", DataType::Int8),
    ("float4", DataType::Float4),
    ("float8", DataType::Float8),
    ("text", DataType::Text),
    ("bool", DataType::Bool),
    ("date", DataType::Date),
    ("timestamptz", DataType::Timestamptz),
];

/// Functions of a relation that is given as a regclass.
const SIZES: [&str; 4] = ["pg_indexes_size", "pg_relation_size", "pg_table_size", "pg_total_relation_size"];

/// The keys of an order, without those that stand there a second time: they order nothing.
///
/// Upstream: accumulators keep a key for each time that it is written, and get one.
fn once_each(order: Vec<By>) -> Vec<By> {
    let mut kept: Vec<By> = Vec::with_capacity(order.len());
    for by in order {
        if kept.iter().all(|other| other.expr != by.expr) {
            kept.push(by);
        }
    }
    kept
}

impl Binder<'_> {
    /// A function that is known to be there, of these arguments.
    pub(super) fn function_of(&self, name: &str, args: Vec<Expr>, schema: &DFSchema) -> Result<Expr> {
        match self.planner.scalar(name) {
            Some(function) => self.made(Expr::ScalarFunction(ScalarFunction::new_udf(function, args)), schema),
            None => unsupported("this function"),
        }
    }

    pub(super) fn special(
        &self,
        function: SpecialFunction,
        args: &[tree::Expr],
        at: At,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        use SpecialFunction::{Coalesce, Greatest, Least, NullIf};
        if !matches!(function, Coalesce | Greatest | Least | NullIf) && !args.is_empty() {
            return unsupported("the precision of a time");
        }
        let twice = matches!(function, Coalesce | NullIf);
        let arg = |(number, arg): (usize, &tree::Expr)| match twice && number + 1 < args.len() {
            true => self.doubled(|| self.expr(arg, scope)),
            false => self.expr(arg, scope),
        };
        let bound = args.iter().enumerate().map(arg).collect::<Result<Vec<Expr>>>()?;
        if function == Coalesce && bound.iter().rev().skip(1).any(Expr::is_volatile) {
            return unsupported("a volatile function in COALESCE, but for the last argument");
        }
        let other = if function == NullIf { None } else { self.mismatched(&bound, &scope.schema) };
        let at = other.map_or(at, |number| args[number].at);
        let name = match function {
            SpecialFunction::CurrentRole | SpecialFunction::User => "current_user",
            SpecialFunction::CurrentCatalog => "current_database",
            other => other.name(),
        };
        let made = self.function_of(name, bound, &scope.schema);
        made.at_value_of(&args.iter().collect::<Vec<_>>()).at(at)
    }

    pub(super) fn call(&self, call: &Call, at: At, scope: &Scope<'_>) -> Result<Expr> {
        let name = match call.name.parts() {
            [name] => name.name.as_str(),
            [schema, name] if schema.name == "pg_catalog" => name.name.as_str(),
            _ if is_expandarray(call) => return self.expanded(call, at, scope),
            _ => return unsupported("a function of another schema"),
        };
        if call.args.iter().any(|arg| arg.name.is_some()) {
            return match named::in_places(call, at) {
                Some(in_places) if !call.variadic => self.call(&in_places, at, scope),
                None if !call.variadic && named::has_names(name) => self.unknown(name, call, at, scope),
                _ => unsupported("an argument by name"),
            };
        }
        if call.variadic {
            return match self.json_of_items(name, call, at, scope)? {
                Some(made) => Ok(made),
                None => self.call_of_items(name, call, at, scope),
            };
        }
        match self.call_of_its_own(name, call, at, scope)? {
            Some(made) => Ok(made),
            None => self.general_call(name, call, at, scope),
        }
    }

    /// A call with VARIADIC: of the items of an array.
    fn call_of_items(&self, name: &str, call: &Call, at: At, scope: &Scope<'_>) -> Result<Expr> {
        let args = call.args.iter().map(|arg| self.expr(&arg.value, scope)).collect::<Result<Vec<Expr>>>()?;
        let Some((items, before)) = args.split_last() else { return unsupported("VARIADIC of nothing") };
        let known = matches!((name, before.len()), ("concat", 0) | ("concat_ws" | "format", 1));
        if !known || call.over.is_some() || call.filter.is_some() || call.distinct || !call.order.is_empty() {
            return unsupported("VARIADIC");
        }
        let of = items.get_type(&scope.schema)?;
        if is_open(items) || !is_array(&of) {
            let place = call.args.last().map_or(at, |arg| arg.value.at);
            return wrong(place, "42804", "VARIADIC argument must be an array");
        }
        let first = match before {
            [] => lit(""),
            [first]
                if is_open(first) || engine_type(&first.get_type(&scope.schema)?).is_some_and(DataType::is_text) =>
            {
                self.cast_to(first.clone(), DataType::Text, &scope.schema)?
            }
            _ => return self.unknown(name, call, at, scope),
        };
        if name != "format" {
            return self.array_call("array_to_string", call, vec![items.clone(), first], at, scope);
        }
        if item_type(&of).is_some_and(|item| matches!(item, DataType::Char(_))) {
            return unsupported("VARIADIC of chars");
        }
        self.function_of(FORMAT_OF_ITEMS, vec![first, items.clone()], &scope.schema).at(at)
    }

    /// Functions that are not called as all others are; `None`: it is another one.
    fn call_of_its_own(&self, name: &str, call: &Call, at: At, scope: &Scope<'_>) -> Result<Option<Expr>> {
        let args = || call.args.iter().map(|arg| self.expr(&arg.value, scope)).collect::<Result<Vec<Expr>>>();
        let made = match name {
            "age" if call.args.len() == 1 => {
                let time = self.expr(&call.args[0].value, scope)?;
                self.refuse_untyped((name, std::slice::from_ref(&time)), call, at, scope)?;
                let today = self.function_of("current_date", vec![], &scope.schema)?;
                self.function_of("age", vec![today, time], &scope.schema).at(at)
            }
            "pg_typeof" if call.args.len() == 1 && !call.star => self.type_of_arg(&call.args[0].value, scope),
            "pg_sequence_last_value" if call.args.len() == 1 && !call.star => {
                self.last_value(&call.args[0].value, scope)
            }
            "pg_terminate_backend" if call.args.len() == 2 => unsupported("a timeout of pg_terminate_backend"),
            _ if enums::is_function(name, call.args.len()) && !call.star && call.over.is_none() => {
                self.of_enum(name, call, at, scope)
            }
            "unnest" if call.over.is_none() => self.unnest(call, at, scope),
            "string_to_table" | "regexp_split_to_table" if call.over.is_none() => {
                self.split_to_rows(name, call, at, scope)
            }
            "width_bucket" if call.args.len() == 2 => self.array_call("width_bucket array", call, args()?, at, scope),
            "generate_subscripts" => self.subscripts_of_list(call, at, scope),
            "pg_listening_channels" if call.args.is_empty() => self.listening_channels(scope),
            "pg_partition_ancestors" if call.args.len() == 1 => self.ancestors(call, scope),
            "array_to_string" if self.of_system.get() && system::options_of(call).is_some() => {
                let options = system::options_of(call).map(|options| self.expr(options, scope)).transpose()?;
                let separator = Expr::Literal(ScalarValue::Utf8(Some(", ".to_owned())), None);
                let args = options.into_iter().chain([separator]).collect();
                self.function_of("array_to_string", args, &scope.schema).at(at)
            }
            "generate_series" if matches!(call.args.len(), 2 | 3) && call.over.is_none() => {
                let args = args()?;
                self.refuse_untyped((name, &args), call, at, scope)?;
                match self.series_of(args, scope).at(at)? {
                    Some(list) => self.rows_of_list(list, at, scope),
                    None => unsupported("this function that answers rows"),
                }
            }
            "regexp_matches" if call.over.is_none() => {
                let list = self.matches_list(call, at, scope)?;
                self.rows_of_list(list, at, scope)
            }
            "regexp_matches" | "generate_series" if call.over.is_some() => {
                let message = format!("OVER specified, but {name} is not a window function nor an aggregate function");
                wrong(at, "42809", message)
            }
            "generate_series" => unsupported("this function that answers rows"),
            _ => return Ok(None),
        };
        made.map(Some)
    }

    fn general_call(&self, name: &str, call: &Call, at: At, scope: &Scope<'_>) -> Result<Expr> {
        if let ([arg], false, None) = (call.args.as_slice(), call.star, &call.over)
            && let Some((_, of)) = CASTS.iter().find(|(known, _)| *known == name)
        {
            let value = self.expr(&arg.value, scope)?;
            let untyped = matches!(value, Expr::Placeholder(_)) && is_open(&value);
            if untyped && !matches!(of, DataType::Text | DataType::Date) {
                return self.not_unique(name, call, at, scope);
            }
            return self.cast_to(value, *of, &scope.schema).at_value_of(&[&arg.value]).at(at);
        }
        if let Some(made) = self.json_call(name, call, at, scope)? {
            return Ok(made);
        }
        if let (true, Some(of)) = (SIZES.contains(&name), call.args.first())
            && let ExprKind::Literal(Literal::Text(_)) = of.value.kind
        {
            self.oid_of_class(&of.value, scope)?; // Whether a row comes to it or not.
        }
        if advisory::has_effect(name) {
            self.effects.set(true);
        }
        if let Some(over) = &call.over {
            let made = self.window_call(name, call, over, at, scope)?;
            return self.of_gathered(name, made, scope);
        }
        if let Some(made) = self.within_group(name, call, at, scope)? {
            return Ok(made);
        }
        if self.planner.scalar(name).is_some() || calls::is_function(name) || matches!(name, "extract" | "position") {
            return self.function(name, call, at, scope);
        }
        match self.planner.aggregate(name) {
            Some(function) => {
                let made = self.aggregate(name, function, call, at, scope)?;
                self.of_gathered(name, made, scope)
            }
            None if self.planner.window(name).is_some() => {
                wrong(at, "42809", format!("window function {name} requires an OVER clause"))
            }
            None => self.unknown(name, call, at, scope),
        }
    }

    /// A function of enums.
    fn of_enum(&self, name: &str, call: &Call, at: At, scope: &Scope<'_>) -> Result<Expr> {
        let args = call.args.iter().map(|arg| self.expr(&arg.value, scope)).collect::<Result<Vec<Expr>>>()?;
        match enums::call(name, args, &scope.schema).map_err(Fault::from).at(at)? {
            Some(made) => self.made(made, &scope.schema).at(at),
            None => self.unknown(name, call, at, scope),
        }
    }

    /// What an aggregate of JSON makes of what it has gathered; the values of others stay.
    fn of_gathered(&self, name: &str, made: Expr, scope: &Scope<'_>) -> Result<Expr> {
        match json::gathers(name) {
            Some(jsonb) => self.gathered(name, jsonb, made, scope),
            None => Ok(made),
        }
    }

    /// `pg_typeof(x)`: the name of the type.
    fn type_of_arg(&self, arg: &tree::Expr, scope: &Scope<'_>) -> Result<Expr> {
        let bound = self.expr(arg, scope)?;
        if system::has_aggregate(&bound)? {
            // Its type alone would stand for it, and the rows would not be gathered.
            return unsupported("pg_typeof of an aggregate");
        }
        if let ExprKind::Cast { to, .. } = &arg.kind
            && let Some(own) = system::system_type(to)
        {
            return Ok(lit(if own == "char" { "\"char\"" } else { own }));
        }
        self.asks_null(&bound);
        let open = is_open(&bound);
        let (_, field) = bound.to_field(&scope.schema)?;
        let own = field
            .metadata()
            .get(PG_TYPE)
            .filter(|name| !matches!(name.as_str(), "varchar" | "bpchar" | "_varchar" | "_bpchar"));
        let name = match (own, field_type(&field)) {
            _ if open => "unknown".to_owned(),
            (Some(name), _) if name == "char" => "\"char\"".to_owned(),
            (Some(name), _) => name.strip_prefix('_').map_or_else(|| name.clone(), |item| format!("{item}[]")),
            (None, Some(of)) => of.base_name().to_owned(),
            (None, None) => builtin::type_name(field.data_type()),
        };
        Ok(lit(name))
    }

    /// 42883 of min and max of a type that has none in PostgreSQL.
    fn require_extremes(&self, name: &str, (args, call): (&[Expr], &Call), at: At, scope: &Scope<'_>) -> Result<()> {
        let ([arg], "min" | "max") = (args, name) else { return Ok(()) };
        use DataType::{Bool, Bytea, Composite, Json, Jsonb, Uuid};
        let of = arg.get_type(&scope.schema)?;
        let lacks = match engine_type(&of) {
            Some(known) => matches!(known, Bool | Bytea | Composite(_) | Json | Jsonb | Uuid),
            None => matches!(of, ArrowType::Struct(_)),
        };
        if lacks { self.unknown(name, call, at, scope) } else { Ok(()) }
    }

    fn function(&self, name: &str, call: &Call, at: At, scope: &Scope<'_>) -> Result<Expr> {
        let found = [
            (call.distinct, "DISTINCT"),
            (!call.within.is_empty(), "WITHIN GROUP"),
            (!call.order.is_empty(), "ORDER BY"),
            (call.filter.is_some(), "FILTER"),
        ];
        if let Some((_, what)) = found.iter().find(|(is, _)| *is) {
            let message = format!("{what} specified, but {name} is not an aggregate function");
            return wrong(at, "42809", message);
        }
        if call.star {
            let message = format!("{name}(*) specified, but {name} is not an aggregate function");
            return wrong(at, "42809", message);
        }
        if name == "extract"
            && let [field, value] = call.args.as_slice()
            && let ExprKind::Literal(Literal::Text(field)) = &field.value.kind
        {
            let value = self.expr(&value.value, scope)?;
            let extracted = date_time::extract(field, value).at(at)?;
            return self.made(extracted, &scope.schema).at(at);
        }
        let args = call.args.iter().map(|arg| self.expr(&arg.value, scope)).collect::<Result<Vec<Expr>>>()?;
        let args =
            if system::is_about_objects(name) { args.into_iter().map(system::oid_behind).collect() } else { args };
        self.refuse_untyped((name, &args), call, at, scope)?;
        self.refuse_void((name, &args), call, at, scope)?;
        match name {
            "array_lower" if self.of_vector(&args, scope)? => self.function_of("pg_vector_lower", args, &scope.schema),
            "array_upper" if self.of_vector(&args, scope)? => self.function_of("pg_vector_upper", args, &scope.schema),
            "extract" => unsupported("this form of EXTRACT"),
            "position" => self.function_of("strpos", args, &scope.schema).at(at),
            _ if calls::is_function(name) && !self.of_system_alone(&args, &scope.schema)? => {
                self.array_call(name, call, args, at, scope)
            }
            _ => {
                let written: Vec<&tree::Expr> = call.args.iter().map(|arg| &arg.value).collect();
                self.function_of(name, args, &scope.schema).at_value_of(&written).at(at)
            }
        }
    }

    /// Whether it is a vector of the system's, and a dimension.
    fn of_vector(&self, args: &[Expr], scope: &Scope<'_>) -> Result<bool> {
        Ok(args.len() == 2 && system::is_vector(&args[0], &scope.schema)?)
    }

    /// Whether there is an array among values that only the system has.
    fn of_system_alone(&self, args: &[Expr], schema: &DFSchema) -> Result<bool> {
        for arg in args {
            let of = arg.get_type(schema)?;
            if is_array(&of) && item_type(&of).is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn aggregate(
        &self,
        name: &str,
        function: Arc<AggregateUDF>,
        call: &Call,
        at: At,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let bind = || -> Result<(Vec<Expr>, Vec<By>, Vec<By>)> {
            let args = self.arguments(name, call, scope)?;
            Ok((args, self.keys(&call.order, scope)?, self.keys(&call.within, scope)?))
        };
        let (args, order, within) = scope.within(Clause::Aggregate, bind)?;
        let of_filter = |filter| scope.within(Clause::Filter, || self.condition(filter, "FILTER", scope)).map(Box::new);
        let filter = call.filter.as_ref().map(of_filter).transpose()?;
        let mut parts = Called { args, order, within, filter };
        match home_of(&parts, scope).at(at)? {
            None => self.aggregate_of((name, function), call, parts, at, scope),
            Some(home) => {
                self.may_aggregate(at, home)?;
                if !home.selects.get() {
                    return unsupported("an aggregate of columns of the outer query only");
                }
                parts.move_to(home)?;
                let made = self.aggregate_of((name, function), call, parts, at, home)?;
                self.aggregate_around(made, home)
            }
        }
    }

    /// The same, where its own query is that of the scope.
    fn aggregate_of(
        &self,
        (name, function): (&str, Arc<AggregateUDF>),
        call: &Call,
        parts: Called,
        at: At,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let Called { mut args, mut order, within, filter } = parts;
        self.refuse_untyped((name, &args), call, at, scope)?;
        self.require_extremes(name, (&args, call), at, scope)?;
        self.may_aggregate(at, scope)?;
        if matches!(name, "first_value" | "last_value" | "nth_value") {
            return wrong(at, "42809", format!("window function {name} requires an OVER clause"));
        }
        // PostgreSQL looks for a function of all arguments, those of WITHIN GROUP too.
        match (name == "percentile_cont", args.len(), within.len()) {
            (false, _, 0) | (true, _, 1..) => {}
            (false, 0, 1) => {
                let message = format!("{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP");
                return wrong(at, "42809", message);
            }
            (true, 2, 0) => {
                return wrong(at, "42809", format!("WITHIN GROUP is required for ordered-set aggregate {name}"));
            }
            _ => return self.unknown(name, call, at, scope),
        }
        if name == "string_agg"
            && !call.distinct
            && let Some(made) = self.bytes_joined(&args, &order, filter.as_deref(), scope).at(at)?
        {
            return Ok(made);
        }
        if !within.is_empty() {
            let ([key], true) = (within.as_slice(), order.is_empty()) else {
                return unsupported("this form of WITHIN GROUP");
            };
            args.insert(0, key.expr.clone());
            order = within;
        } else if call.distinct && order.is_empty() && matches!(function.name(), "array_agg" | "string_agg") {
            // PostgreSQL sorts values to find equal ones, and gathers them in this order.
            order = args.iter().take(1).map(|arg| arg.clone().sort(true, false)).collect();
        } else if call.distinct && order.iter().any(|by| !args.contains(&by.expr)) {
            let message = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
            return wrong(at, "42P10", message);
        }
        let distinct = call.distinct && !matches!(function.name(), "min" | "max");
        let made = AggregateFunction::new_udf(function, args, distinct, filter, once_each(order), None);
        let made = self.made(Expr::AggregateFunction(made), &scope.schema);
        // Whether there is one of these types is told with the type of its result.
        let typed = made.and_then(|made| match made.get_type(&scope.schema)? {
            _ if name == "array_agg" => Ok(gathered(made, &scope.schema)?),
            _ => Ok(made),
        });
        match typed {
            Err(Fault::Wrong { error, .. }) if error.state.0 == "42883" => self.unknown(name, call, at, scope),
            made => made.at(at),
        }
    }

    /// Whether an aggregate may stand here (invariant 3).
    pub(super) fn may_aggregate(&self, at: At, scope: &Scope<'_>) -> Result<()> {
        match scope.clause.get() {
            Clause::Items | Clause::Having | Clause::Order | Clause::DistinctOn => Ok(()),
            Clause::Window | Clause::Definition => Ok(()),
            Clause::Aggregate => wrong(at, "42803", "aggregate function calls cannot be nested"),
            Clause::Locking => wrong(at, "0A000", "FOR UPDATE is not allowed with aggregate functions"),
            clause => {
                let message = format!("aggregate functions are not allowed in {}", clause.name());
                wrong(at, "42803", message)
            }
        }
    }

    /// The arguments of an aggregate or a window function.
    fn arguments(&self, name: &str, call: &Call, scope: &Scope<'_>) -> Result<Vec<Expr>> {
        let mut args = self.arguments_of_any(name, call, scope)?;
        if let ("array_agg", [arg]) = (name, args.as_mut_slice())
            && let of = arg.get_type(&scope.schema)?
            && matches!(of, ArrowType::List(_))
        {
            *arg = array(std::mem::take(arg));
        }
        Ok(args)
    }

    fn arguments_of_any(&self, name: &str, call: &Call, scope: &Scope<'_>) -> Result<Vec<Expr>> {
        if call.star {
            return match name {
                "count" => Ok(vec![lit(ScalarValue::Int64(Some(1)))]),
                _ => unsupported("* for the arguments of this function"),
            };
        }
        if json::gathers(name).is_some() {
            return self.to_gather(name, call, call.name.at(), scope);
        }
        if name == "count" && call.args.is_empty() {
            let message = "count(*) must be used to call a parameterless aggregate function";
            return wrong(call.name.at(), "42809", message);
        }
        if name == "count" && call.args.len() > 1 {
            return self.unknown(name, call, call.name.at(), scope);
        }
        let arg = |arg: &tree::Argument| match &arg.value.kind {
            ExprKind::Star(Some(table)) if name == "count" && !call.distinct && table.qualifier().is_empty() => {
                self.rows_of(&table.last().name, arg.value.at, scope)
            }
            _ => self.expr(&arg.value, scope),
        };
        call.args.iter().map(arg).collect()
    }

    /// `count(t.*)` counts the rows of t, not those that an outer join pads: a column that is never NULL.
    fn rows_of(&self, table: &str, at: At, scope: &Scope<'_>) -> Result<Expr> {
        let relation = scope.source.relations.iter().find(|relation| relation.name == table);
        if scope.clause.get() == Clause::Window {
            scope.rows.borrow_mut().push((table.to_owned(), at));
        }
        let Some(relation) = relation else {
            return wrong(at, "42P01", format!("missing FROM-clause entry for table \"{table}\""));
        };
        self.note_named(relation.columns.iter().map(|(_, column)| column));
        match (relation.never_null, relation.columns.first()) {
            (Some(column), _) => Ok(relation.columns[column].1.clone()),
            // Each row counts.
            (None, Some((_, column))) if !relation.padded => Ok(column.clone().is_null()),
            _ => unsupported("a row of a table as a value"),
        }
    }

    pub(super) fn keys(&self, keys: &[Sort], scope: &Scope<'_>) -> Result<Vec<By>> {
        keys.iter().map(|by| Ok(Order::of(by)?.sort(self.expr(&by.expr, scope)?))).collect()
    }

    fn window_call(&self, name: &str, call: &Call, over: &Over, at: At, scope: &Scope<'_>) -> Result<Expr> {
        let by_value = matches!(name, "first_value" | "last_value" | "nth_value");
        let function: WindowFunctionDefinition = match (self.planner.aggregate(name), self.planner.window(name)) {
            (Some(aggregate), _) if !by_value => aggregate.into(),
            (_, Some(window)) => window.into(),
            _ if self.planner.scalar(name).is_some() => {
                let message = format!("OVER specified, but {name} is not a window function nor an aggregate function");
                return wrong(at, "42809", message);
            }
            _ => return self.unknown(name, call, at, scope),
        };
        let of_window = matches!(function, WindowFunctionDefinition::WindowUDF(_));
        if of_window && builtin::window_arguments(name).is_some_and(|takes| !takes.contains(&call.args.len())) {
            return self.unknown(name, call, at, scope);
        }
        match scope.clause.get() {
            Clause::Items | Clause::Order | Clause::DistinctOn => {}
            Clause::Window => return wrong(at, "42P20", "window function calls cannot be nested"),
            Clause::Locking => return wrong(at, "0A000", "FOR UPDATE is not allowed with window functions"),
            Clause::Aggregate => {
                return wrong(at, "42803", "aggregate function calls cannot contain window function calls");
            }
            clause => {
                return wrong(at, "42P20", format!("window functions are not allowed in {}", clause.name()));
            }
        }
        if !call.order.is_empty() {
            return wrong(at, "0A000", "aggregate ORDER BY is not implemented for window functions");
        }
        if !call.within.is_empty() || (of_window && (call.distinct || call.filter.is_some())) {
            return unsupported("this clause of a window function");
        }
        let args = scope.within(Clause::Window, || self.arguments(name, call, scope))?;
        self.refuse_untyped((name, &args), call, at, scope)?;
        self.require_extremes(name, (&args, call), at, scope)?;
        let filter = call
            .filter
            .as_ref()
            .map(|filter| scope.within(Clause::Filter, || self.condition(filter, "FILTER", scope)).map(Box::new));
        let defined = self.over(over, scope)?;
        let inner = match &function {
            WindowFunctionDefinition::AggregateUDF(aggregate) => Some(Inner::Aggregate(aggregate.clone())),
            WindowFunctionDefinition::WindowUDF(_) => match name {
                "first_value" => Some(Inner::First),
                "last_value" => Some(Inner::Last),
                "nth_value" => Some(Inner::Nth),
                "lag" => Some(Inner::Lag),
                "lead" => Some(Inner::Lead),
                _ => None,
            },
        };
        if matches!(inner, Some(Inner::Nth | Inner::Lag | Inner::Lead))
            && let Some(number) = args.get(1).filter(|number| !is_open(number))
            && !matches!(number.get_type(&scope.schema)?, ArrowType::Int16 | ArrowType::Int32)
        {
            return self.unknown(name, call, at, scope);
        }
        let mut made = WindowFunction::new(function, args);
        made.params.filter = filter.transpose()?;
        made.params.distinct = call.distinct;
        let made = self.over_frames(made, defined, inner, scope).at(at)?;
        Ok(if name == "array_agg" { gathered(made, &scope.schema)? } else { made })
    }

    pub(super) fn grouping(&self, args: &[tree::Expr], at: At, scope: &Scope<'_>) -> Result<Expr> {
        if !matches!(scope.clause.get(), Clause::Items | Clause::Having | Clause::Order | Clause::DistinctOn) {
            return unsupported("GROUPING here");
        }
        let Some(function) = self.planner.aggregate("grouping") else { return unsupported("GROUPING") };
        let args = self.exprs(args, scope)?;
        let made = AggregateFunction::new_udf(function, args, false, None, vec![], None);
        self.made(Expr::AggregateFunction(made), &scope.schema).at(at)
    }
}
