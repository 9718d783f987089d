//! What is written out before DataFusion plans it, for it plans it otherwise than PostgreSQL.
//!
//! 1. `OVER (w ORDER BY ...)` takes PARTITION BY and ORDER BY from the window w, and `OVER w` is the window.
//! 2. Rows are compared column by column: `(a, b) < (c, d)` is `a < c OR (a = c AND b < d)`, NULL where that is NULL.
//! 3. `x op ANY (ARRAY[a, b])` is `x op a OR x op b`, ALL the same with AND; `=` and `<>` become IN and NOT IN.
//! 4. What would be evaluated more than once by that must not be volatile (0A000).
//! 5. `max(ts::date)` beside `max(ts)`: DataFusion leaves casts out of names, and then takes both for one (42701). Such
//!    a cast is wrapped in a function whose name says the type.
//! 6. HAVING makes one group of all rows, also without GROUP BY and without aggregates; so does an aggregate in a
//!    window that nobody uses.
//!
//! Upstream: the SQL planner ignores `WindowSpec::window_name`. It looks for the windows of subqueries in a select list
//! among those of the query around them. Tuples become structs, which Arrow compares with NULL as a value.
//! `> ANY (ARRAY[...])` is planned with the array's greatest item, without its NULLs, and columns of the outer query in
//! the array are not found. HAVING without GROUP BY and aggregates is refused. Windows that nobody uses are not looked
//! at.
use crate::error::unsupported;
use crate::parse::fold;
use crate::plan::refusals::has_call;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, GroupByExpr,
    Ident, NamedWindowDefinition, NamedWindowExpr, OrderByKind, Query, Select, SelectItem, SetExpr, Statement, Value,
    ValueWithSpan, Visit, VisitMut, Visitor, VisitorMut, WindowSpec, WindowType,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use terrace_engine::{EngineError, Result};

/// What is known of functions by their names.
#[derive(Clone, Copy)]
pub(crate) struct Functions<'f> {
    /// Whether one is evaluated anew for each row.
    pub(crate) volatile: &'f dyn Fn(&str) -> bool,
    pub(crate) aggregate: &'f dyn Fn(&str) -> bool,
}

pub(crate) fn write_out(statement: &mut Statement, functions: Functions<'_>) -> Result<()> {
    let mut writer = Writer { functions, calls: BTreeMap::new() };
    if let ControlFlow::Break(error) = VisitMut::visit(statement, &mut writer) {
        return Err(error);
    }
    if writer.calls.values().any(|(calls, casts)| *calls > 1 && *casts) {
        let _ = VisitMut::visit(statement, &mut Casts { functions, within: 0 });
    }
    Ok(())
}

/// Invariant 5: casts within aggregates are seen in their names.
struct Casts<'f> {
    functions: Functions<'f>,
    /// Aggregates that have been entered.
    within: usize,
}

impl VisitorMut for Casts<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if function_name(expr).is_some_and(|name| (self.functions.aggregate)(&name)) {
            self.within += 1;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if function_name(expr).is_some_and(|name| (self.functions.aggregate)(&name)) {
            self.within -= 1;
        }
        if self.within > 0
            && let Expr::Cast { data_type, .. } = expr
        {
            let name = format!("\0as {}", data_type.to_string().to_lowercase());
            let cast = std::mem::replace(expr, Expr::Value(Value::Null.into()));
            *expr = call(Ident::with_quote('"', name), vec![cast]);
        }
        ControlFlow::Continue(())
    }
}

/// A call of a function.
pub(crate) fn call(name: Ident, arguments: Vec<Expr>) -> Expr {
    let args = arguments.into_iter().map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))).collect();
    let list = FunctionArgumentList { duplicate_treatment: None, args, clauses: vec![] };
    Expr::Function(Function {
        name: vec![name].into(),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(list),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    })
}

/// Whether something calls a volatile function.
pub(crate) fn calls_volatile(node: &impl Visit, volatile: &dyn Fn(&str) -> bool) -> bool {
    struct Calls<'v>(&'v dyn Fn(&str) -> bool);
    impl Visitor for Calls<'_> {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match function_name(expr) {
                Some(name) if (self.0)(&name) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    node.visit(&mut Calls(volatile)).is_break()
}

fn has_cast(expr: &Expr) -> bool {
    struct HasCast;
    impl Visitor for HasCast {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            if matches!(expr, Expr::Cast { .. }) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    expr.visit(&mut HasCast).is_break()
}

fn function_name(expr: &Expr) -> Option<String> {
    if let Expr::Function(function) = expr { name_of(function) } else { None }
}

/// The name of what is called, without its schema.
pub(crate) fn name_of(function: &Function) -> Option<String> {
    Some(fold(function.name.0.last()?.as_ident()?))
}

type Flow = ControlFlow<EngineError>;

struct Writer<'f> {
    functions: Functions<'f>,
    /// Of each aggregate: how often it is called, and whether with a cast.
    calls: BTreeMap<String, (usize, bool)>,
}

impl VisitorMut for Writer<'_> {
    type Break = EngineError;

    fn pre_visit_query(&mut self, query: &mut Query) -> Flow {
        let Query { body, order_by, .. } = query;
        let SetExpr::Select(select) = body.as_mut() else { return Flow::Continue(()) };
        if select.named_window.is_empty() {
            return Flow::Continue(());
        }
        let ordered = match order_by.as_mut().map(|order| &mut order.kind) {
            Some(OrderByKind::Expressions(exprs)) => exprs.as_mut_slice(),
            _ => &mut [],
        };
        let windows = flow(windows(&mut select.named_window))?;
        let mut copier = Copier { windows: &windows, depth: 0 };
        for item in ordered {
            VisitMut::visit(&mut item.expr, &mut copier)?;
        }
        Flow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> Flow {
        flow(self.one_group(select))?;
        if select.named_window.is_empty() && !uses_window(select) {
            return Flow::Continue(());
        }
        let windows = flow(windows(&mut select.named_window))?;
        let mut copier = Copier { windows: &windows, depth: 0 };
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                VisitMut::visit(expr, &mut copier)?;
            }
        }
        Flow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        if let Some(name) = function_name(expr)
            && (self.functions.aggregate)(&name)
        {
            let (calls, casts) = self.calls.entry(name).or_default();
            *calls += 1;
            *casts |= has_cast(expr);
        }
        if let Some(written) = flow(self.written(expr))? {
            *expr = written;
        }
        Flow::Continue(())
    }
}

impl Writer<'_> {
    /// Invariant 6: an aggregate that decides nothing says so to the planner.
    fn one_group(&self, select: &mut Select) -> Result<()> {
        let ungrouped =
            matches!(&select.group_by, GroupByExpr::Expressions(by, more) if by.is_empty() && more.is_empty());
        let aggregate = |call: &Function| {
            call.over.is_none() && name_of(call).is_some_and(|name| (self.functions.aggregate)(&name))
        };
        let grouped = select.having.is_some() || has_call(&select.named_window, &aggregate);
        if !ungrouped || !grouped || has_call(&select.having, &aggregate) || has_call(&select.projection, &aggregate) {
            return Ok(());
        }
        let mut counted = crate::parse::template("SELECT 1 HAVING count(*) >= 0")?;
        let SetExpr::Select(template) = counted.body.as_mut() else { unreachable!("the template is a SELECT") };
        let counted = template.having.take().expect("the template has it");
        select.having = Some(match select.having.take() {
            Some(having) => binary(nested(having), BinaryOperator::And, nested(counted)),
            None => counted,
        });
        Ok(())
    }
}

fn flow<T>(result: Result<T>) -> ControlFlow<EngineError, T> {
    match result {
        Ok(value) => ControlFlow::Continue(value),
        Err(error) => ControlFlow::Break(error),
    }
}

/// Whether an item of the list says `OVER (w ...)`: without a WINDOW clause there is no w.
fn uses_window(select: &Select) -> bool {
    select.projection.iter().any(|item| match item {
        SelectItem::UnnamedExpr(Expr::Function(f)) | SelectItem::ExprWithAlias { expr: Expr::Function(f), .. } => {
            matches!(&f.over, Some(WindowType::WindowSpec(spec)) if spec.window_name.is_some())
        }
        _ => false,
    })
}

/// The windows of a WINDOW clause, each with what it takes from those before it.
fn windows(named: &mut [NamedWindowDefinition]) -> Result<BTreeMap<String, WindowSpec>> {
    let mut known: BTreeMap<String, WindowSpec> = BTreeMap::new();
    for NamedWindowDefinition(name, window) in named {
        let spec = match window {
            NamedWindowExpr::WindowSpec(spec) => {
                complete(spec, &known)?;
                spec.clone()
            }
            NamedWindowExpr::NamedWindow(other) => {
                let found = known.get(&fold(other)).ok_or_else(|| no_window(&fold(other)))?.clone();
                *window = NamedWindowExpr::WindowSpec(found.clone());
                found
            }
        };
        if known.insert(fold(name), spec).is_some() {
            return Err(EngineError::new("42P20", format!("window \"{}\" is already defined", fold(name))));
        }
    }
    Ok(known)
}

fn no_window(name: &str) -> EngineError {
    EngineError::new("42704", format!("window \"{name}\" does not exist"))
}

/// Copies into a window what the window that it names says.
fn complete(spec: &mut WindowSpec, known: &BTreeMap<String, WindowSpec>) -> Result<()> {
    let Some(name) = spec.window_name.take().map(|name| fold(&name)) else { return Ok(()) };
    let base = known.get(&name).ok_or_else(|| no_window(&name))?;
    let refused = |message: String| Err(EngineError::new("42P20", message));
    if !spec.partition_by.is_empty() {
        return refused(format!("cannot override PARTITION BY clause of window \"{name}\""));
    }
    if !spec.order_by.is_empty() && !base.order_by.is_empty() {
        return refused(format!("cannot override ORDER BY clause of window \"{name}\""));
    }
    if base.window_frame.is_some() {
        return refused(format!("cannot copy window \"{name}\" because it has a frame clause"));
    }
    spec.partition_by = base.partition_by.clone();
    if spec.order_by.is_empty() {
        spec.order_by = base.order_by.clone();
    }
    Ok(())
}

/// Completes the windows of functions; those of subqueries have names of their own.
struct Copier<'w> {
    windows: &'w BTreeMap<String, WindowSpec>,
    depth: usize,
}

impl VisitorMut for Copier<'_> {
    type Break = EngineError;

    fn pre_visit_query(&mut self, _: &mut Query) -> Flow {
        self.depth += 1;
        Flow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> Flow {
        self.depth -= 1;
        Flow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        let Expr::Function(function) = expr else { return Flow::Continue(()) };
        match &mut function.over {
            Some(WindowType::WindowSpec(spec)) if self.depth == 0 => flow(complete(spec, self.windows)),
            Some(WindowType::NamedWindow(name)) if self.depth == 0 => {
                let spec = self.windows.get(&fold(name)).ok_or_else(|| no_window(&fold(name)));
                function.over = Some(WindowType::WindowSpec(flow(spec)?.clone()));
                Flow::Continue(())
            }
            _ => Flow::Continue(()),
        }
    }
}

impl Writer<'_> {
    fn written(&self, expr: &Expr) -> Result<Option<Expr>> {
        Ok(match expr {
            Expr::BinaryOp { left, op, right } if is_row(left) && is_row(right) => {
                let (left, right) = self.rows(left, right)?;
                Some(compared(op, left, right)?)
            }
            Expr::IsDistinctFrom(left, right) if is_row(left) && is_row(right) => {
                let (left, right) = self.rows(left, right)?;
                let differ = |(a, b)| nested(Expr::IsDistinctFrom(Box::new(a), Box::new(b)));
                Some(chain(left.into_iter().zip(right).map(differ).collect(), BinaryOperator::Or))
            }
            Expr::IsNotDistinctFrom(left, right) if is_row(left) && is_row(right) => {
                let (left, right) = self.rows(left, right)?;
                let same = |(a, b)| nested(Expr::IsNotDistinctFrom(Box::new(a), Box::new(b)));
                Some(chain(left.into_iter().zip(right).map(same).collect(), BinaryOperator::And))
            }
            Expr::IsNull(row) if is_row(row) => {
                let null = |e| nested(Expr::IsNull(Box::new(e)));
                Some(chain(items(row).into_iter().map(null).collect(), BinaryOperator::And))
            }
            Expr::IsNotNull(row) if is_row(row) => {
                let given = |e| nested(Expr::IsNotNull(Box::new(e)));
                Some(chain(items(row).into_iter().map(given).collect(), BinaryOperator::And))
            }
            Expr::InList { expr, list, negated } if is_row(expr) && list.iter().all(is_row) => {
                let mut equal = vec![];
                for item in list {
                    let (left, right) = self.rows(expr, item)?;
                    equal.push(compared(&BinaryOperator::Eq, left, right)?);
                }
                let any = chain(equal, BinaryOperator::Or);
                Some(if *negated { not(any) } else { any })
            }
            Expr::AnyOp { left, compare_op, right, .. } => self.of_array(left, compare_op, right, true)?,
            Expr::AllOp { left, compare_op, right } => self.of_array(left, compare_op, right, false)?,
            _ => None,
        })
    }

    /// The columns of two rows.
    fn rows(&self, left: &Expr, right: &Expr) -> Result<(Vec<Expr>, Vec<Expr>)> {
        if calls_volatile(left, self.functions.volatile) || calls_volatile(right, self.functions.volatile) {
            return Err(unsupported("a volatile function in a row that is compared"));
        }
        let (left, right) = (items(left), items(right));
        if left.len() != right.len() {
            return Err(EngineError::new("42601", "unequal number of entries in row expressions"));
        }
        if left.is_empty() {
            return Err(unsupported("comparing rows without columns"));
        }
        Ok((left, right))
    }

    /// Invariant 3. `None`: it is no array that is written out.
    fn of_array(&self, left: &Expr, op: &BinaryOperator, right: &Expr, any: bool) -> Result<Option<Expr>> {
        let Some(list) = array(right) else { return Ok(None) };
        if list.is_empty() || list.iter().any(|item| array(item).is_some()) {
            return Ok(None);
        }
        let mut list = list.to_vec();
        let of_texts = crate::functions::arrays::as_texts(&mut list);
        let left = Box::new(left.clone());
        Ok(Some(match (op, any) {
            (BinaryOperator::Eq, true) | (BinaryOperator::NotEq, false) if !of_texts => {
                let expr = Box::new(crate::functions::arrays::sought(*left, &list));
                nested(Expr::InList { expr, list, negated: !any })
            }
            _ => {
                if calls_volatile(left.as_ref(), self.functions.volatile) {
                    return Err(unsupported("a volatile function that is compared with the items of an array"));
                }
                let compared = |item: Expr| nested(binary(left.as_ref().clone(), op.clone(), nested(item)));
                let joined = if any { BinaryOperator::Or } else { BinaryOperator::And };
                chain(list.into_iter().map(compared).collect(), joined)
            }
        }))
    }
}

fn array(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::Array(array) => Some(&array.elem),
        Expr::Nested(inner) => array(inner),
        _ => None,
    }
}

fn is_row(expr: &Expr) -> bool {
    match expr {
        Expr::Tuple(_) => true,
        Expr::Function(function) => row_arguments(function).is_some(),
        _ => false,
    }
}

/// `ROW(a, b)`.
fn row_arguments(function: &Function) -> Option<Vec<&Expr>> {
    let [name] = function.name.0.as_slice() else { return None };
    let name = name.as_ident()?;
    if name.quote_style.is_some() || !name.value.eq_ignore_ascii_case("row") || function.over.is_some() {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else { return None };
    let argument = |arg: &FunctionArg| matches!(arg, FunctionArg::Unnamed(FunctionArgExpr::Expr(_)));
    if !list.args.iter().all(argument) || !list.clauses.is_empty() || list.duplicate_treatment.is_some() {
        return None;
    }
    let exprs = list.args.iter().filter_map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    Some(exprs.collect())
}

fn items(row: &Expr) -> Vec<Expr> {
    match row {
        Expr::Tuple(items) => items.clone(),
        Expr::Function(function) => row_arguments(function).unwrap_or_default().into_iter().cloned().collect(),
        _ => vec![],
    }
}

/// Columns of rows that are compared by `<` and the like: what is written out for one holds what is for the next.
const ORDERED_MAX: usize = 100;

/// Invariant 2.
fn compared(op: &BinaryOperator, left: Vec<Expr>, right: Vec<Expr>) -> Result<Expr> {
    let columns = left.len();
    let pairs = left.into_iter().zip(right);
    let pair = |op: &BinaryOperator, (a, b): (Expr, Expr)| -> Result<Expr> {
        match is_row(&a) && is_row(&b) {
            true => compared(op, items(&a), items(&b)),
            false => Ok(nested(binary(nested(a), op.clone(), nested(b)))),
        }
    };
    let strict = match op {
        BinaryOperator::Eq => {
            return Ok(chain(pairs.map(|p| pair(op, p)).collect::<Result<_>>()?, BinaryOperator::And));
        }
        BinaryOperator::NotEq => {
            return Ok(chain(pairs.map(|p| pair(op, p)).collect::<Result<_>>()?, BinaryOperator::Or));
        }
        BinaryOperator::Lt | BinaryOperator::LtEq => BinaryOperator::Lt,
        BinaryOperator::Gt | BinaryOperator::GtEq => BinaryOperator::Gt,
        other => return Err(unsupported(format!("the operator {other} of rows"))),
    };
    if columns > ORDERED_MAX {
        let message = format!("rows of more than {ORDERED_MAX} columns cannot be compared by {op}");
        return Err(EngineError::new("54001", message));
    }
    let mut result: Option<Expr> = None;
    for (a, b) in pairs.rev() {
        result = Some(match result {
            None => pair(op, (a, b))?,
            Some(rest) => {
                let equal = pair(&BinaryOperator::Eq, (a.clone(), b.clone()))?;
                let tie = nested(binary(equal, BinaryOperator::And, rest));
                nested(binary(pair(&strict, (a, b))?, BinaryOperator::Or, tie))
            }
        });
    }
    result.ok_or_else(|| unsupported("comparing rows without columns"))
}

/// Halved again and again, so that the tree of many is not deep.
pub(super) fn chain(mut exprs: Vec<Expr>, op: BinaryOperator) -> Expr {
    match exprs.len() {
        0 => Expr::Value(ValueWithSpan::from(Value::Boolean(op == BinaryOperator::And))),
        1 => exprs.remove(0),
        n => {
            let right = exprs.split_off(n / 2);
            nested(binary(chain(exprs, op.clone()), op.clone(), chain(right, op)))
        }
    }
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

fn not(expr: Expr) -> Expr {
    Expr::UnaryOp { op: datafusion::sql::sqlparser::ast::UnaryOperator::Not, expr: Box::new(nested(expr)) }
}
