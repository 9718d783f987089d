//! What asks about the system: its relations, its types, and what psql and drivers ask of them.
//!
//! 1. A relation is looked for in `pg_catalog`, then among the user's tables; with a schema, there alone.
//! 2. `::regclass` and its kind make a name of an object its OID, and an OID the name that is shown.
//! 3. SELECT from a relation that never has rows has none, whatever stands in it: it may call what Terrace has not.
use super::from::Source;
use super::query::{Around, parameter_number};
use super::reads::Read;
use super::scope::{Ctes, Scope, TABLE_OID};
use super::{Binder, Bound, Fault, Result, fail, unsupported, wrong};
use crate::error::undefined_table;
use crate::functions::builtin;
use crate::parse::identity::Identity;
use crate::parse::titles;
use crate::pgcatalog;
use crate::pgcatalog::AUTHID_OID;
use crate::plan::rules::compute;
use crate::plan::sequence_relations;
use crate::values::arrays::items_of;
use crate::values::{PG_TYPE, enum_of, field_type};
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlanBuilder, Operator};
use std::collections::BTreeSet;
use terrace_engine::types::array::read_items;
use terrace_engine::{DataType, Step};
use terrace_grammar::statement::{
    self as tree, Alias, At, Body, ExprKind, Literal, Node, Query, Select, Statement, TypeName, walk,
};
use terrace_grammar::{Options, parse};

impl Binder<'_> {
    /// A relation of the system (invariant 1).
    pub(super) fn of_system(&self, parts: &[&str], alias: Option<&Alias>, at: At) -> Result<Option<Source>> {
        let schemas: Vec<&str> = match parts {
            [own] => self.schemas_of_system(own),
            [schema, _] if pgcatalog::is_schema(schema) => vec![*schema],
            _ => return Ok(None),
        };
        let own = *parts.last().expect("a name has a part");
        for schema in schemas {
            if let Some(source) = self.in_system((schema, own), alias)? {
                return Ok(Some(source));
            }
        }
        match parts {
            [_] => Ok(None),
            _ => fail(at, undefined_table(parts.join("."))),
        }
    }

    /// The schemas of the system in which a name is looked up before it is a user's relation.
    fn schemas_of_system(&self, own: &str) -> Vec<&'static str> {
        let catalog = self.catalog();
        let found = catalog.space_of_relation(own);
        let before = catalog.steps().iter().take_while(|step| match step {
            Step::In(space) => Some(*space) != found,
            Step::Own => catalog.own_space().is_none_or(|own| Some(own) != found),
            Step::System(_) => true,
        });
        before.filter_map(|step| if let Step::System(schema) = step { Some(*schema) } else { None }).collect()
    }

    fn in_system(&self, (schema, own): (&str, &str), alias: Option<&Alias>) -> Result<Option<Source>> {
        let shown = alias.map_or(own, |alias| alias.name.name.as_str());
        let actor = self.planner.info.actor(self.planner.catalog);
        if let Some(text) = sequence_relations::text_of(schema, own, self.planner.catalog, &actor) {
            return self.of_sequences(&text, (schema, shown), alias).map(Some);
        }
        let found = pgcatalog::relation(schema, own, self.planner.catalog, self.planner.info)?;
        let Some(provider) = found else { return Ok(None) };
        self.of_system.set(true);
        if let ("pg_catalog", "pg_authid") = (schema, own) {
            self.note_relation(Read::of_system(AUTHID_OID, own));
        }
        let called = TableReference::bare(self.relation_name(shown));
        let plan = LogicalPlanBuilder::scan(called, provider_as_source(provider), None)?.build()?;
        let mut source = self.named(plan, None, shown, alias)?;
        source.relations[0].schemas.extend(alias.is_none().then(|| schema.to_owned()));
        if source.visible.last().is_some_and(|(name, _)| name == TABLE_OID) {
            source.visible.pop();
            source.relations[0].table_oid = source.relations[0].columns.pop().map(|(_, column)| column);
        }
        source.empty = schema == "pg_catalog" && pgcatalog::is_always_empty(own);
        Ok(Some(source))
    }

    /// A relation that a query over the rows of all sequences gives.
    pub(super) fn of_sequences(
        &self,
        text: &str,
        (schema, shown): (&str, &str),
        alias: Option<&Alias>,
    ) -> Result<Source> {
        let mut statements = parse(text, Options::default()).map_err(|_| broken(text))?;
        let statement = statements.pop().ok_or_else(|| broken(text))?.into_statement();
        let Statement::Query(query) = statement else { return Err(broken(text)) };
        let bound = self.within_system(|| self.query(&query, None, &Ctes::none()))?;
        self.of_system.set(true);
        let mut source = self.derived(bound.plan, bound.titles, shown, alias)?;
        source.relations[0].schemas.extend(alias.is_none().then(|| schema.to_owned()));
        Ok(source)
    }

    /// Invariant 2; `None`: the type is none of the system's.
    pub(super) fn cast_to_system(
        &self,
        arg: &tree::Expr,
        to: &TypeName,
        at: At,
        scope: &Scope<'_>,
    ) -> Result<Option<Expr>> {
        if is_oids(to)
            && let ExprKind::Literal(Literal::Text(text)) = &arg.kind
        {
            return oids(text).map(Some);
        }
        if is_oids(to)
            && let ExprKind::Parameter(number) = arg.kind
        {
            let numbers = DataType::Int8.array().expect("a number is no array");
            self.settle_parameter(parameter_number(number)?, numbers);
            return self.expr(arg, scope).map(Some);
        }
        if is_array_of(to, "regtype") {
            return self.names_of_types(arg, scope).map(Some);
        }
        let Some(kind) = system_type(to) else { return Ok(None) };
        match kind {
            "char" => return self.cast_to_one_byte(arg, scope).map(Some),
            "regproc" | "regprocedure" => return self.cast_to_procedure(kind, arg, scope).map(Some),
            _ => {}
        }
        let is_name = self.is_written_name(arg)?;
        let schema = &scope.schema;
        if let ("oid", ExprKind::Cast { arg: named, to, .. }) = (kind, &arg.kind)
            && system_type(to) == Some("regclass")
        {
            return super::Placed::at(self.oid_of_class(named, scope), at).map(Some);
        }
        let mut bound = self.expr(arg, scope)?;
        if kind == "oid" {
            bound = oid_behind(bound);
        }
        let of = bound.get_type(schema)?;
        if enum_of(&of).is_some() && kind != "name" {
            return wrong(at, "42846", format!("cannot cast type {} to {kind}", builtin::type_name(&of)));
        }
        let call = |name: &str, args: Vec<Expr>| self.function_of(name, args, schema);
        let made = match (kind, is_name) {
            ("regclass", true) => call("regclass_oid", vec![bound]),
            ("regclass" | "regtype" | "regrole", false) => {
                let is_text = bound.get_type(schema)? == ArrowType::Utf8;
                let oid = if is_text { call(&format!("{kind}_oid"), vec![bound])? } else { bound };
                call(&format!("{kind}_name"), vec![oid])
            }
            ("regtype", true) => call("regtype_oid", vec![bound]),
            ("regnamespace", true) => call("regnamespace_oid", vec![bound]),
            ("regnamespace", false) => call("regnamespace_name", vec![bound]),
            ("regrole", true) => call("regrole_oid", vec![bound]),
            ("oid", _) => call("to_oid", vec![bound]),
            ("xid", _) => self.cast_to(bound, DataType::Int8, schema),
            _ => self.cast_to(bound, DataType::Text, schema),
        };
        let made = super::Placed::at(made, at)?;
        if matches!(kind, "regclass" | "regtype" | "regrole" | "regnamespace") {
            look_up(&made, arg)?;
        }
        Ok(Some(made))
    }

    /// Whether a name is given as it is written, or will be: a parameter is a text.
    fn is_written_name(&self, arg: &tree::Expr) -> Result<bool> {
        if let ExprKind::Parameter(number) = arg.kind {
            self.settle_parameter(parameter_number(number)?, DataType::Text);
        }
        Ok(matches!(arg.kind, ExprKind::Parameter(_) | ExprKind::Literal(Literal::Text(_))))
    }

    /// `x::regtype[]`, of an array of OIDs.
    fn names_of_types(&self, arg: &tree::Expr, scope: &Scope<'_>) -> Result<Expr> {
        let bound = self.expr(arg, scope)?;
        match items_of(&bound.get_type(&scope.schema)?).map(|item| item.data_type().clone()) {
            Some(ArrowType::UInt32) => self.function_of("regtype_names", vec![bound], &scope.schema),
            _ => unsupported("this cast to regtype[]"),
        }
    }

    /// `x::regclass::oid`.
    pub(super) fn oid_of_class(&self, named: &tree::Expr, scope: &Scope<'_>) -> Result<Expr> {
        let bound = self.expr(named, scope)?;
        let of = bound.get_type(&scope.schema)?;
        let call = |name: &str, args: Vec<Expr>| self.function_of(name, args, &scope.schema);
        let made = match of {
            ArrowType::Utf8 => call("regclass_oid", vec![bound]),
            _ => call("to_oid", vec![bound]),
        }?;
        look_up(&made, named)?;
        Ok(made)
    }

    /// The type "char", one byte, of columns of the system: what is beside them is cut to it. No other value is of it.
    fn cast_to_one_byte(&self, arg: &tree::Expr, scope: &Scope<'_>) -> Result<Expr> {
        let text = |text: &str| Ok(Expr::Literal(ScalarValue::Utf8(Some(text.to_owned())), None));
        match &arg.kind {
            ExprKind::Literal(Literal::Text(written)) => match one_byte(written) {
                0 => text(""),
                byte @ 1..=127 => text(char::from(byte).encode_utf8(&mut [0; 4])),
                _ => unsupported("a byte that is no character"),
            },
            ExprKind::Cast { arg, to, .. }
                if is_text(to) && matches!(arg.kind, ExprKind::Literal(Literal::Text(_))) =>
            {
                self.cast_to_one_byte(arg, scope)
            }
            _ if !self.of_system.get() => unsupported("the type \"char\""),
            ExprKind::Literal(Literal::Null) => Ok(Expr::Literal(ScalarValue::Utf8(None), None)),
            _ => {
                let bound = self.expr(arg, scope)?;
                let of = bound.to_field(&scope.schema)?.1;
                match of.metadata().get(PG_TYPE).is_some_and(|name| name == "char") {
                    true => Ok(bound),
                    false => unsupported("a cast to the type \"char\""),
                }
            }
        }
    }

    /// A subscript of what is no array. And `typname[0]`: a name is an array of bytes in PostgreSQL, and the first has
    /// the number 0.
    pub(super) fn subscript(&self, whole: &tree::Expr, scope: &Scope<'_>) -> Result<Expr> {
        if let Some(made) = self.subscript_of_array(whole, scope)? {
            return Ok(made);
        }
        let ExprKind::Subscript { arg, subscript, .. } = &whole.kind else { return unsupported("a subscript") };
        let bound = self.expr(arg, scope)?;
        let of = bound.to_field(&scope.schema)?.1;
        if field_type(&of) == Some(DataType::Jsonb) {
            return self.part_of_jsonb(bound, subscript, scope);
        }
        let is_name = of.metadata().get(PG_TYPE).is_some_and(|name| name == "name");
        let number = |number: i64| Expr::Literal(ScalarValue::Int64(Some(number)), None);
        match subscript {
            tree::Subscript::Index(index) if is_name => match &index.kind {
                ExprKind::Literal(Literal::Int(at @ 0..=63)) if self.of_system.get() => {
                    self.function_of("substr", vec![bound, number(at + 1), number(1)], &scope.schema)
                }
                _ => unsupported("a subscript"),
            },
            tree::Subscript::Slice(..) if is_name => unsupported("a slice"),
            _ => super::arrays::no_subscripts(of.data_type(), arg.at),
        }
    }

    /// `'name'::regclass` as an item of a statement shows the name.
    pub(super) fn shown_class(&self, item: &tree::Expr, bound: Expr, scope: &Scope<'_>) -> Result<Expr> {
        match class_of(item) {
            Some(class) if scope.around.is_none() => self.name_of_class(class, bound, scope),
            _ => Ok(bound),
        }
    }

    /// The name of an object whose OID this is.
    pub(super) fn name_of_class(&self, class: &str, oid: Expr, scope: &Scope<'_>) -> Result<Expr> {
        match class {
            "regclass" => self.function_of("regclass_name", vec![oid], &scope.schema),
            "regnamespace" => self.function_of("regnamespace_name", vec![oid], &scope.schema),
            "regrole" => self.function_of("regrole_name", vec![oid], &scope.schema),
            "regproc" => self.function_of("regproc_name", vec![oid], &scope.schema),
            "regprocedure" => self.function_of("regprocedure_name", vec![oid], &scope.schema),
            _ => self.function_of("regtype_name", vec![oid], &scope.schema),
        }
    }

    /// Invariant 3; `None`: it is bound as any other.
    pub(super) fn without_rows(&self, select: &Select, scope: &Scope<'_>) -> Result<Option<Bound>> {
        if select.group.is_some() || select.having.is_some() {
            return Ok(None);
        }
        let (mut names, mut types) = (vec![], vec![]);
        for item in &select.items {
            if matches!(item.expr.kind, ExprKind::Star(_)) {
                let (titles, columns) = self.items(std::slice::from_ref(item), scope)?;
                names.extend(titles);
                for column in columns {
                    types.push(column.get_type(&scope.schema)?);
                }
                continue;
            }
            names.push(titles::title(item));
            types.push(match self.expr(&item.expr, scope) {
                Ok(bound) if has_aggregate(&bound)? => return Ok(None),
                Ok(bound) => match bound.get_type(&scope.schema)? {
                    ArrowType::Null => ArrowType::Utf8,
                    of => of,
                },
                Err(fault) if is_missing(&fault) => ArrowType::Utf8,
                Err(fault) => return Err(fault),
            });
        }
        let columns = names.iter().zip(&types).map(|(name, of)| {
            let null = Expr::Literal(ScalarValue::try_from(of)?, None);
            Ok(null.alias(self.column_name(name)))
        });
        let columns = columns.collect::<Result<Vec<Expr>>>()?;
        let mut nothing = LogicalPlanBuilder::empty(false);
        for parameter in self.parameters_of(select)? {
            nothing = nothing.filter(parameter.is_not_null())?;
        }
        let plan = nothing.project(columns)?.build()?;
        Ok(Some(Bound::new(plan, names)))
    }

    /// The parameters of a SELECT that is not bound: texts, where nothing else tells what they are.
    fn parameters_of(&self, select: &Select) -> Result<Vec<Expr>> {
        let mut numbers = BTreeSet::new();
        for part in select.filter.iter().chain(select.items.iter().map(|item| &item.expr)) {
            walk(Node::Expr(part), &mut |node| {
                if let Node::Expr(tree::Expr { kind: ExprKind::Parameter(number), .. }) = node {
                    numbers.insert(*number);
                }
                true
            });
        }
        let parameter = |number| {
            self.settle_parameter(parameter_number(number)?, DataType::Text);
            self.parameter(number)
        };
        numbers.into_iter().map(parameter).collect()
    }

    /// An array of what a query answers that has no rows, as psql asks for privileges and options.
    pub(super) fn array_of_query(&self, query: &Query, at: At, scope: &Scope<'_>) -> Result<Expr> {
        if let Body::Select(select) = &query.body
            && self.of_system.get()
        {
            if of_options(&select.from) {
                return self.function_of("no_items", vec![], &scope.schema);
            }
            let around = Around { scope: Some(scope), ctes: scope.ctes };
            // Where no column has privileges of its own; and there are no domains to be constrained.
            let catalog = self.planner.catalog;
            let of_columns = catalog.accesses().any(|(_, access)| !access.columns.is_empty());
            let absent: &[&str] = if of_columns { &["contypid"] } else { &["attacl", "contypid"] };
            let of_nothing = select.filter.as_ref().is_some_and(|filter| mentions(filter, absent));
            let source = self.from(&select.from, around)?;
            if self.of_system.get() && (source.empty || of_nothing) {
                return self.function_of("no_items", vec![], &scope.schema);
            }
        }
        self.array_of_rows(query, at, scope)
    }

    /// What is known of columns of the system without a query.
    pub(super) fn known_of_system(&self, query: &Query) -> Option<Expr> {
        let Body::Select(select) = &query.body else { return None };
        let filter = select.filter.as_ref()?;
        // A column's collation is its type's, for there is one. Where no column is an identity column, a query
        // about them finds nothing.
        let none = !self.planner.catalog.tables().flat_map(|table| &table.columns).any(|c| Identity::of(c).is_some());
        let of_identity = none && mentions(filter, &["attidentity"]);
        (compares_collations(filter) || of_identity).then(|| Expr::Literal(ScalarValue::Utf8(None), None))
    }
}

/// Whether an expression makes an OID of a name (invariant 2), and of which kind of object.
pub(super) fn class_of(expr: &tree::Expr) -> Option<&'static str> {
    match &expr.kind {
        ExprKind::Cast { arg, to, .. } if matches!(arg.kind, ExprKind::Literal(Literal::Text(_))) => {
            system_type(to).filter(|class| class.starts_with("reg"))
        }
        ExprKind::Call(call) => match call.name.last().name.as_str() {
            "to_regclass" => Some("regclass"),
            "to_regtype" => Some("regtype"),
            "to_regnamespace" => Some("regnamespace"),
            "to_regrole" => Some("regrole"),
            _ => None,
        },
        _ => None,
    }
}

fn broken(text: &str) -> Fault {
    terrace_engine::EngineError::new("XX000", format!("{text} is no query")).into()
}

pub(super) fn has_aggregate(expr: &Expr) -> Result<bool> {
    let mut found = false;
    expr.apply(|expr| {
        found |= matches!(expr, Expr::AggregateFunction(_));
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether it failed for something that Terrace has not.
fn is_missing(fault: &Fault) -> bool {
    match fault {
        Fault::Unsupported(_) => true,
        Fault::Wrong { error, .. } => matches!(error.state.0, "42883" | "0A000" | "42704" | "42P01"),
    }
}

/// Whether a condition asks for a collation that is another's.
fn compares_collations(expr: &tree::Expr) -> bool {
    let collation = |arg: &tree::Expr| match &arg.kind {
        ExprKind::Column(name) => name.last().name.ends_with("collation"),
        _ => false,
    };
    match &expr.kind {
        ExprKind::And(args) => args.iter().any(compares_collations),
        ExprKind::Binary { op, args } => op.symbol == "<>" && args.iter().all(collation),
        _ => false,
    }
}

/// Whether a condition names one of these columns, through what psql's conditions are made of.
fn mentions(expr: &tree::Expr, columns: &[&str]) -> bool {
    match &expr.kind {
        ExprKind::Column(name) => columns.contains(&name.last().name.as_str()),
        ExprKind::And(args) | ExprKind::Or(args) => args.iter().any(|arg| mentions(arg, columns)),
        ExprKind::Binary { args, .. } => args.iter().any(|arg| mentions(arg, columns)),
        ExprKind::Not(arg) | ExprKind::Is { arg, .. } | ExprKind::Cast { arg, .. } => mentions(arg, columns),
        ExprKind::Unary { arg, .. } => mentions(arg, columns),
        _ => false,
    }
}

/// Whether it is about options of foreign data alone, of which there are none.
fn of_options(from: &[tree::FromItem]) -> bool {
    let [tree::FromItem::Functions { functions, .. }] = from else { return false };
    functions.iter().all(|function| match &function.call.kind {
        ExprKind::Call(call) => call.name.last().name == "pg_options_to_table",
        _ => false,
    })
}

/// The options in `array_to_string(c.reloptions || array(..), ..)`: those of what is stored beside a relation, which
/// stand behind them, are none.
pub(super) fn options_of(call: &tree::Call) -> Option<&tree::Expr> {
    let ExprKind::Binary { args, .. } = &call.args.first()?.value.kind else { return None };
    let is_options = |expr: &tree::Expr| match &expr.kind {
        ExprKind::Column(name) => name.last().name == "reloptions",
        _ => false,
    };
    args.first().filter(|first| call.name.last().name == "array_to_string" && is_options(first))
}

/// Takes `a.atthasdef` of an outer query out of a condition: pg_attrdef has a row exactly where it is true, and a
/// condition on the outer query alone would keep DataFusion from making a join.
pub(super) fn without_implied(condition: Expr) -> Expr {
    let implied = |e: &Expr| matches!(e, Expr::OuterReferenceColumn(_, column) if column.name == "atthasdef");
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            let (left, right) = (without_implied(*left), without_implied(*right));
            match (implied(&left), implied(&right)) {
                (_, true) => left,
                (true, false) => right,
                _ => Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op: Operator::And, right: Box::new(right) }),
            }
        }
        other => other,
    }
}

/// The type, if it is one of the system's that Arrow does not have.
pub(super) fn system_type(to: &TypeName) -> Option<&'static str> {
    let plain = to.modifiers.is_empty() && to.dimensions.is_empty() && !to.set_of && !to.of_column;
    let own = match to.name.parts() {
        [own] => own.name.as_str(),
        [schema, own] if schema.name == "pg_catalog" && own.name != "text" => own.name.as_str(),
        _ => return None,
    };
    let known =
        ["regclass", "regtype", "regnamespace", "regproc", "regprocedure", "regrole", "oid", "xid", "name", "char"];
    known.into_iter().find(|known| plain && *known == own)
}

/// The byte that a text is as a "char": its first one, or what `\ooo` means.
fn one_byte(text: &str) -> u8 {
    let is_octal = |digits: &&str| digits.len() == 3 && digits.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
    match text.strip_prefix('\\').filter(is_octal).map(|digits| u16::from_str_radix(digits, 8)) {
        Some(Ok(number)) => (number & 0xff) as u8,
        _ => text.bytes().next().unwrap_or(0),
    }
}

/// Whether it is the type text itself.
fn is_text(to: &TypeName) -> bool {
    let own = to.name.last().name == "text" && to.name.qualifier().iter().all(|schema| schema.name == "pg_catalog");
    own && to.modifiers.is_empty() && to.dimensions.is_empty() && !to.set_of && !to.of_column
}

/// The OID of oid, and of oid[], which are no types of columns.
pub(crate) fn system_oid(to: &TypeName) -> Option<u32> {
    match system_type(to) {
        Some("oid") => Some(26),
        _ => is_oids(to).then_some(1028),
    }
}

/// Whether it is `oid[]`.
fn is_oids(to: &TypeName) -> bool {
    is_array_of(to, "oid")
}

fn is_array_of(to: &TypeName, item: &str) -> bool {
    let one = TypeName { dimensions: vec![], ..to.clone() };
    to.dimensions.len() == 1 && system_type(&one) == Some(item)
}

/// `'{1,2}'::oid[]`, as pg_dump lists the tables that it asks about.
fn oids(text: &str) -> Result<Expr> {
    let mut items = vec![];
    for item in read_items(text)? {
        let oid = item.map(|item| pgcatalog::oid_of_text(&item)).transpose()?;
        items.push(ScalarValue::UInt32(oid));
    }
    let list = ScalarValue::new_list_nullable(&items, &ArrowType::UInt32);
    Ok(Expr::Literal(ScalarValue::List(list), None))
}

/// Whether it is of type int2vector or oidvector, whose texts are `1 2`, and whose first items have the number 0.
pub(super) fn is_vector(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    let (_, field) = expr.to_field(schema)?;
    Ok(field.metadata().get(PG_TYPE).is_some_and(|name| matches!(name.as_str(), "int2vector" | "oidvector")))
}

/// A name that is written is looked up when the statement is bound, whether a row comes to it or not.
fn look_up(made: &Expr, written: &tree::Expr) -> Result<()> {
    match written.kind {
        ExprKind::Literal(_) => super::Placed::at(compute(made), written.at).map(drop),
        _ => Ok(()),
    }
}

/// Whether it is what a cast to `regclass` and its kind shows (invariant 2).
pub(super) fn is_name_of_oid(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if NAMES.contains(&call.name()) && call.args.len() == 1)
}

/// The OID whose name a cast to `regclass` and its kind shows (invariant 2); of anything else, itself.
pub(super) fn oid_behind(shown: Expr) -> Expr {
    match shown {
        Expr::ScalarFunction(mut call) if NAMES.contains(&call.name()) && call.args.len() == 1 => call.args.remove(0),
        other => other,
    }
}

/// Whether a function asks about an object that may be given as one of type regclass and its kind.
pub(super) fn is_about_objects(function: &str) -> bool {
    let is_asked = function.starts_with("pg_") || function.starts_with("has_");
    is_asked && function != "pg_size_pretty" || matches!(function, "obj_description" | "col_description")
}

/// What shows names of objects.
const NAMES: [&str; 6] =
    ["regclass_name", "regnamespace_name", "regproc_name", "regprocedure_name", "regrole_name", "regtype_name"];
