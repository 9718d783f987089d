//! Defaults, conditions and keys of indexes as PostgreSQL would write them: with the conversions that their types need,
//! and with its parentheses.
//!
//! 1. What this file does not know is not shown at all ([`None`]): then the text stands as it was written.
//! 2. Each part is looked at once. An expression of many levels is not shown.
//! 3. A text that PostgreSQL wrote is shown as it is, or not at all: what a dump says is the same after it was
//!    restored.
//!
//! Source: PostgreSQL 15 documentation, chapter 10 (Type Conversion), and what `pg_get_expr` answers.
use crate::parse::stored::Stored;
use crate::parse::types::{by_number, is_open_char, known};
use print::{Shown, laid_out};
use std::borrow::Cow;
use terrace_engine::{ColumnDef, DataType};
use terrace_grammar::statement::{
    Call, Expr, ExprKind, Literal, Members, Quantifier, Query, SpecialFunction, Test, TypeName, When,
};
use views::From;

mod print;
#[cfg(test)]
mod tests;
pub(crate) mod views;
mod windows;

/// The most levels of what is shown.
const LEVELS: usize = 100;

/// The type of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Of {
    /// A constant in quotes, or NULL, which takes any type.
    Unknown,
    /// Without its length.
    Known(DataType),
    /// An array of these.
    List(DataType),
}

type Typed = (Shown, Of);

/// The default of a column. The inner `None`: it is NULL, which PostgreSQL does not keep.
pub(crate) fn default(text: &str, column: &ColumnDef) -> Option<Option<String>> {
    let stored = read(text)?;
    let of = plain(column.data_type);
    if let ExprKind::Literal(Literal::Null) = stored.expr().kind {
        let has_length =
            !matches!(column.data_type, DataType::Varchar(0) | DataType::Numeric(None)) && of != column.data_type;
        return Some(has_length.then(|| format!("NULL::{}", label(of))));
    }
    let shown = match Scope::of(&[]).show(stored.expr())? {
        (shown, Of::Known(_)) => shown,
        unknown => as_type(unknown, of)?,
    };
    Some(Some(laid_out(&shown.text(false))?))
}

fn read(text: &str) -> Option<Stored> {
    Stored::read(text).filter(|stored| stored.depth().is_ok_and(|levels| levels <= LEVELS))
}

/// A condition on a table's row. `pretty`: with few parentheses.
pub(crate) fn condition(text: &str, columns: &[ColumnDef], pretty: bool) -> Option<String> {
    let stored = read(text)?;
    match Scope::of(columns).show(stored.expr())? {
        (shown, Of::Known(DataType::Bool)) => laid_out(&shown.text(pretty)),
        _ => None,
    }
}

/// Any value of a table's row, and whether it is a call of a function, which needs no parentheses in an index.
pub(crate) fn value(text: &str, columns: &[ColumnDef], pretty: bool) -> Option<(String, bool)> {
    let stored = read(text)?;
    match Scope::of(columns).show(stored.expr())? {
        (shown, Of::Known(_)) => Some((laid_out(&shown.text(pretty))?, shown.is_call())),
        _ => None,
    }
}

/// A type without its length.
fn plain(of: DataType) -> DataType {
    match of {
        DataType::Varchar(_) => DataType::Varchar(0),
        DataType::Char(_) => DataType::Char(0),
        DataType::Numeric(_) => DataType::Numeric(None),
        other => other,
    }
}

/// A type behind `::`. One of the user's is called by its number, which `qualified` makes its name.
fn label(of: DataType) -> Cow<'static, str> {
    match of {
        DataType::Char(_) => "bpchar".into(),
        own if let Some(own) = own.own() => by_number(own.oid).into(),
        other => match other.item().and_then(DataType::own) {
            Some(own) => format!("{}[]", by_number(own.oid)).into(),
            _ => other.base_name().into(),
        },
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn plain_number(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || b == b'.') && text.bytes().any(|b| b.is_ascii_digit())
}

/// A constant in quotes, or NULL, that takes a type.
fn constant(text: Option<&str>, of: DataType) -> Option<Shown> {
    let labelled = |text: String| Some(Shown::Constant { text, label: Some(label(of)) });
    let bare = |text: String| Some(Shown::Constant { text, label: None });
    let Some(text) = text else { return labelled("NULL".into()) };
    match of {
        DataType::Text | DataType::Varchar(_) | DataType::Char(_) | DataType::Json => labelled(quoted(text)),
        DataType::Numeric(_) if plain_number(text) && text.contains('.') => bare(text.to_owned()),
        DataType::Numeric(_) => plain_number(text).then(|| labelled(quoted(text)))?,
        // It is shown in the session's zone, which is not known here.
        DataType::Timestamptz => None,
        _ => {
            let value = of.parse(text).ok()?.to_string();
            match of {
                DataType::Bool => bare(if value.starts_with('t') { "true" } else { "false" }.into()),
                DataType::Int4 if !value.starts_with('-') => bare(value),
                _ => labelled(quoted(&value)),
            }
        }
    }
}

/// A value where a type is wanted.
fn as_type((shown, of): Typed, want: DataType) -> Option<Shown> {
    match (&shown, of) {
        (Shown::Unknown(text), _) => constant(text.as_deref(), want),
        (_, Of::Known(of)) => Some(cast_to(shown, of, want)),
        _ => None,
    }
}

/// The operands of an operator, with the conversions that it needs, and their types.
fn operands((left, right): (Typed, Typed)) -> Option<[(Shown, DataType); 2]> {
    let (left_want, right_want) = match (left.1, right.1) {
        (Of::Known(l), Of::Known(r)) => operand_types(l, r)?,
        (Of::Known(of), Of::Unknown) | (Of::Unknown, Of::Known(of)) => operand_types(of, of)?,
        _ => return None,
    };
    Some([(as_type(left, left_want)?, left_want), (as_type(right, right_want)?, right_want)])
}

fn compared(left: Typed, op: &str, right: Typed) -> Option<Shown> {
    let [(left, _), (right, _)] = operands((left, right))?;
    Some(Shown::Operator(Box::new([left, right]), op.to_owned()))
}

fn is_integer(of: DataType) -> bool {
    matches!(of, DataType::Int2 | DataType::Int4 | DataType::Int8)
}

fn is_float(of: DataType) -> bool {
    matches!(of, DataType::Float4 | DataType::Float8)
}

fn is_number(of: DataType) -> bool {
    is_integer(of) || is_float(of) || matches!(of, DataType::Numeric(_))
}

fn is_moment(of: DataType) -> bool {
    matches!(of, DataType::Date | DataType::Timestamp | DataType::Timestamptz)
}

/// The types that an operator takes in place of these two. `compares`: those of the operator may differ.
fn operand_types(left: DataType, right: DataType) -> Option<(DataType, DataType)> {
    let text = DataType::Text;
    Some(match (left, right) {
        (l, r) if is_integer(l) && is_integer(r) || is_float(l) && is_float(r) => (l, r),
        (l, r) if is_number(l) && is_number(r) => {
            let both = if is_float(l) || is_float(r) { DataType::Float8 } else { DataType::Numeric(None) };
            // An operator of real with double precision exists.
            let kept = |of| if is_float(of) { of } else { both };
            (kept(l), kept(r))
        }
        (DataType::Text | DataType::Varchar(_), DataType::Text | DataType::Varchar(_)) => (text, text),
        (DataType::Char(_), DataType::Text) | (DataType::Text, DataType::Char(_)) => (text, text),
        (l, r) if is_moment(l) && is_moment(r) || l == r => (l, r),
        _ => return None,
    })
}

/// The type of a result.
fn arithmetic(op: &str, left: DataType, right: DataType) -> Option<DataType> {
    use DataType::{Date, Float4, Float8, Int2, Int4, Int8, Interval, Numeric, Timestamp, Timestamptz};
    Some(match (left, op, right) {
        (l, _, r) if is_number(l) && is_number(r) => match operand_types(l, r)? {
            (Int2, Int2) => Int2,
            (Float4, Float4) if op != "%" => Float4,
            (l, r) if (is_float(l) || is_float(r)) && op != "%" => Float8,
            (Numeric(_), _) => Numeric(None),
            (Int8, _) | (_, Int8) => Int8,
            (l, r) if is_integer(l) && is_integer(r) => Int4,
            _ => return None,
        },
        (Date, "+" | "-", Int4) => Date,
        (Date, "-", Date) => Int4,
        (at @ (Timestamp | Timestamptz), "+" | "-", Interval) => at,
        _ => return None,
    })
}

/// What a function takes and what it gives.
fn function(name: &str, args: &[Typed]) -> Option<(Vec<DataType>, DataType)> {
    use DataType::{Bool, Float8, Int4, Text, Timestamp, Timestamptz, Uuid};
    let own = |at: usize| match args[at].1 {
        Of::Known(of) => Some(of),
        _ => None,
    };
    Some(match (name, args.len()) {
        ("now" | "clock_timestamp" | "statement_timestamp" | "transaction_timestamp", 0) => (vec![], Timestamptz),
        ("gen_random_uuid", 0) => (vec![], Uuid),
        ("random", 0) => (vec![], Float8),
        ("lower" | "upper" | "btrim" | "ltrim" | "rtrim" | "md5" | "reverse" | "initcap", 1) => (vec![Text], Text),
        ("length" | "char_length" | "character_length", 1) if own(0) != Some(DataType::Char(0)) => (vec![Text], Int4),
        ("left" | "right", 2) => (vec![Text, Int4], Text),
        ("replace", 3) => (vec![Text, Text, Text], Text),
        ("starts_with", 2) => (vec![Text, Text], Bool),
        ("abs", 1) => own(0).filter(|of| is_number(*of)).map(|of| (vec![of], of))?,
        ("date_trunc", 2) => {
            let at = own(1).filter(|of| matches!(of, Timestamp | Timestamptz))?;
            (vec![Text, at], at)
        }
        _ => return None,
    })
}

/// The columns in scope: of one table, which is not named; or of a query's relations, which are.
struct Scope<'c> {
    columns: &'c [ColumnDef],
    from: Option<&'c From<'c>>,
}

impl<'c> Scope<'c> {
    fn of(columns: &'c [ColumnDef]) -> Scope<'c> {
        Scope { columns, from: None }
    }

    fn within(from: &'c From<'c>) -> Scope<'c> {
        Scope { columns: &[], from: Some(from) }
    }

    fn show(&self, expr: &Expr) -> Option<Typed> {
        let boolean = |shown| Some((shown, Of::Known(DataType::Bool)));
        match &expr.kind {
            ExprKind::Literal(literal) => literal_of(literal),
            ExprKind::Column(name) => match self.from {
                Some(from) => {
                    let (shown, of) = from.value(name)?;
                    Some((Shown::Plain(shown), Of::Known(plain(of))))
                }
                None => self.column(name.parts().last().filter(|_| name.parts().len() == 1)?.name.as_str()),
            },
            ExprKind::Case { operand, whens, otherwise } => self.case(operand.as_deref(), whens, otherwise.as_deref()),
            ExprKind::Cast { arg, to, .. } => self.cast(arg, to),
            ExprKind::And(all) => boolean(Shown::And(self.conditions(all)?)),
            ExprKind::Or(all) => boolean(Shown::Or(self.conditions(all)?)),
            ExprKind::Not(arg) => boolean(Shown::Not(Box::new(self.condition(arg)?))),
            ExprKind::Is { arg, test, negated } => {
                let (shown, of) = self.show(arg)?;
                let test = match (test, of) {
                    (_, Of::Unknown) => return None,
                    (Test::Null, _) => "NULL",
                    (Test::True, Of::Known(DataType::Bool)) => "TRUE",
                    (Test::False, Of::Known(DataType::Bool)) => "FALSE",
                    (Test::Unknown, Of::Known(DataType::Bool)) => "UNKNOWN",
                    _ => return None,
                };
                boolean(Shown::Is(Box::new(shown), format!("IS {}{test}", if *negated { "NOT " } else { "" })))
            }
            ExprKind::Between { args, negated, symmetric: false, .. } => {
                let [value, low, high] = &**args;
                let (value, low, high) = (self.show(value)?, self.show(low)?, self.show(high)?);
                let (low_op, high_op) = if *negated { ("<", ">") } else { (">=", "<=") };
                let both = vec![compared(value.clone(), low_op, low)?, compared(value, high_op, high)?];
                boolean(if *negated { Shown::Or(both) } else { Shown::And(both) })
            }
            ExprKind::Binary { op, args } if op.schema.is_empty() => self.binary(&op.symbol, &args[0], &args[1]),
            ExprKind::InList { arg, list, negated, .. } => {
                boolean(self.in_list(arg, list, if *negated { "<>" } else { "=" }, *negated)?)
            }
            ExprKind::Quantified { op, quantifier, left, right: Members::Array(array) } if op.schema.is_empty() => {
                let ((left, of), (array, items)) = (self.show(left)?, self.show(array)?);
                let (Of::Known(of), Of::List(item)) = (of, items) else { return None };
                let text = matches!(of, DataType::Text | DataType::Varchar(_));
                let left = if text && item == DataType::Text { cast_to(left, of, DataType::Text) } else { left };
                if !text && of != item {
                    return None;
                }
                let all = *quantifier == Quantifier::All;
                boolean(Shown::Any { left: Box::new(left), op: op.symbol.clone(), all, array: Box::new(array) })
            }
            ExprKind::Match { kind, negated, args, escape: None, .. } => {
                let symbol = match kind {
                    terrace_grammar::statement::Match::Like => "~~",
                    terrace_grammar::statement::Match::ILike => "~~*",
                    terrace_grammar::statement::Match::Similar => return None,
                };
                self.binary(&format!("{}{symbol}", if *negated { "!" } else { "" }), &args[0], &args[1])
            }
            ExprKind::Array(items) => self.array(items),
            ExprKind::Call(call) => self.call(call),
            ExprKind::Special { function, args } => self.special(*function, args),
            _ => self.of_query(expr),
        }
    }

    /// What has a query in it.
    fn of_query(&self, expr: &Expr) -> Option<Typed> {
        let boolean = |shown| Some((shown, Of::Known(DataType::Bool)));
        match &expr.kind {
            ExprKind::Exists(query) => {
                let (query, _) = self.query(query)?;
                boolean(Shown::Query { left: None, word: "EXISTS".into(), query })
            }
            ExprKind::Scalar(query) => {
                let (query, columns) = self.query(query)?;
                let [column] = columns.as_slice() else { return None };
                let of = Of::Known(plain(column.domain.is_none().then_some(column.data_type)?));
                Some((Shown::Query { left: None, word: String::new(), query }, of))
            }
            ExprKind::InQuery { arg, query, negated, .. } => {
                let member = self.member(arg, "IN", query)?;
                boolean(if *negated { Shown::Not(Box::new(member)) } else { member })
            }
            ExprKind::Quantified { op, quantifier, left, right: Members::Query(query) } if op.schema.is_empty() => {
                let word = match (op.symbol.as_str(), quantifier) {
                    ("=", Quantifier::Any) => "IN".to_owned(),
                    (symbol @ ("<>" | "<" | ">" | "<=" | ">="), Quantifier::Any) => format!("{symbol} ANY"),
                    (symbol @ ("=" | "<>" | "<" | ">" | "<=" | ">="), Quantifier::All) => format!("{symbol} ALL"),
                    _ => return None,
                };
                boolean(self.member(left, &word, query)?)
            }
            _ => None,
        }
    }

    fn column(&self, name: &str) -> Option<Typed> {
        let column = self.columns.iter().find(|column| !column.dropped && column.name == name)?;
        Some((Shown::Plain(terrace_grammar::quoted(name)), Of::Known(plain(column.data_type))))
    }

    fn conditions(&self, all: &[Expr]) -> Option<Vec<Shown>> {
        all.iter().map(|one| self.condition(one)).collect()
    }

    fn condition(&self, expr: &Expr) -> Option<Shown> {
        match self.show(expr)? {
            (shown, Of::Known(DataType::Bool)) => Some(shown),
            _ => None,
        }
    }

    fn binary(&self, op: &str, left: &Expr, right: &Expr) -> Option<Typed> {
        let (left, right) = (self.show(left)?, self.show(right)?);
        let known = |of| match of {
            Of::Known(of) => Some(of),
            _ => None,
        };
        let is_text = |of| matches!(of, Of::Known(DataType::Text | DataType::Varchar(_)));
        let of_texts = |(left, right), gives| {
            let args = Box::new([as_type(left, DataType::Text)?, as_type(right, DataType::Text)?]);
            Some((Shown::Operator(args, op.to_owned()), Of::Known(gives)))
        };
        match op {
            "=" | "<>" | "<" | ">" | "<=" | ">=" => Some((compared(left, op, right)?, Of::Known(DataType::Bool))),
            "~~" | "!~~" | "~~*" | "!~~*" | "~" | "!~" | "~*" | "!~*" => {
                (is_text(left.1) && (is_text(right.1) || right.1 == Of::Unknown)).then_some(())?;
                of_texts((left, right), DataType::Bool)
            }
            "||" => {
                let texts = [left.1, right.1].into_iter().filter(|of| is_text(*of)).count();
                let unknown = [left.1, right.1].into_iter().filter(|of| *of == Of::Unknown).count();
                (texts > 0 && texts + unknown == 2).then_some(())?;
                of_texts((left, right), DataType::Text)
            }
            "+" | "-" | "*" | "/" | "%" => {
                let (l, r) = (known(left.1)?, known(right.1)?);
                let of = arithmetic(op, l, r)?;
                let args = match is_number(l) && is_number(r) {
                    true => operands((left, right))?.map(|(shown, _)| shown),
                    false => [left.0, right.0],
                };
                Some((Shown::Operator(Box::new(args), op.to_owned()), Of::Known(of)))
            }
            _ => None,
        }
    }

    /// `a IN (1, 2)` is `a = ANY (ARRAY[1, 2])`.
    fn in_list(&self, arg: &Expr, list: &[Expr], op: &str, all: bool) -> Option<Shown> {
        let arg = self.show(arg)?;
        if let [one] = list {
            return compared(arg, op, self.show(one)?);
        }
        if matches!(arg.1, Of::Known(of) if of.item().is_some()) {
            // An array of arrays would have two dimensions.
            let each = list.iter().map(|one| compared(arg.clone(), op, self.show(one)?)).collect::<Option<Vec<_>>>()?;
            return Some(if all { Shown::And(each) } else { Shown::Or(each) });
        }
        let (left, Of::Known(of)) = arg else { return None };
        let item = |expr: &Expr| match self.show(expr)? {
            (shown, Of::Known(own)) => (own == of).then_some(shown),
            unknown => as_type(unknown, of),
        };
        let array = Shown::Array(list.iter().map(item).collect::<Option<Vec<_>>>()?);
        let (left, array) = match of {
            DataType::Varchar(_) => (cast_to(left, of, DataType::Text), Shown::Cast(Box::new(array), "text[]".into())),
            _ => (left, array),
        };
        Some(Shown::Any { left: Box::new(left), op: op.to_owned(), all, array: Box::new(array) })
    }

    fn array(&self, items: &[Expr]) -> Option<Typed> {
        let mut of = None;
        let mut shown = vec![];
        for item in items {
            let (one, Of::Known(own)) = self.show(item)? else { return None };
            (*of.get_or_insert(own) == own).then_some(())?;
            shown.push(one);
        }
        Some((Shown::Array(shown), Of::List(of?)))
    }

    fn cast(&self, arg: &Expr, to: &TypeName) -> Option<Typed> {
        if to.dimensions.len() == 1 {
            let items = known(&TypeName { dimensions: vec![], ..to.clone() }).ok()?;
            let (shown, Of::List(of)) = self.show(arg)? else { return None };
            let label = format!("{}[]", label(plain(items)));
            let shown = if of == items { shown } else { Shown::Cast(Box::new(shown), label) };
            return Some((shown, Of::List(plain(items))));
        }
        let of = if is_open_char(to) { DataType::Char(0) } else { known(to).ok()? };
        let bare = plain(of);
        let with_length = match of {
            DataType::Numeric(Some((digits, places))) => Some(format!("numeric({digits},{places})")),
            DataType::Char(length @ 1..) => Some(format!("character({length})")),
            DataType::Varchar(length @ 1..) => Some(format!("character varying({length})")),
            _ => None,
        };
        let (shown, own) = match self.show(arg)? {
            (shown, Of::Known(own)) => (shown, own),
            unknown => (as_type(unknown, bare)?, bare),
        };
        let shown = match with_length {
            Some(to) => Shown::Cast(Box::new(shown), to),
            None => cast_to(shown, own, bare),
        };
        Some((shown, Of::Known(bare)))
    }

    /// A query within, and its columns.
    fn query(&self, query: &Query) -> Option<(String, Vec<ColumnDef>)> {
        self.from?.query_within(query)
    }

    /// A value beside those of a query, which are compared without a conversion.
    fn member(&self, arg: &Expr, word: &str, query: &Query) -> Option<Shown> {
        let (left, Of::Known(of)) = self.show(arg)? else { return None };
        let (query, columns) = self.query(query)?;
        let [ColumnDef { data_type, domain: None, .. }] = columns.as_slice() else { return None };
        let same = of == plain(*data_type) && !matches!(of, DataType::Varchar(_));
        let same = same || is_integer(of) && is_integer(*data_type);
        same.then(|| Shown::Query { left: Some(Box::new(left)), word: word.to_owned(), query })
    }

    /// CASE, whose results are of one type, or constants that take it.
    fn case(&self, operand: Option<&Expr>, whens: &[When], otherwise: Option<&Expr>) -> Option<Typed> {
        let operand = match operand.map(|operand| self.show(operand)) {
            None => None,
            Some(shown) => Some(shown.filter(|(_, of)| matches!(of, Of::Known(_)))?),
        };
        let condition = |when: &When| match &operand {
            None => self.condition(&when.condition),
            Some(operand) => {
                let [_, (value, _)] = operands((operand.clone(), self.show(&when.condition)?))?;
                Some(value)
            }
        };
        let conditions = whens.iter().map(condition).collect::<Option<Vec<Shown>>>()?;
        let results = whens.iter().map(|when| &when.result).chain(otherwise).map(|result| self.show(result));
        let mut results = results.collect::<Option<Vec<Typed>>>()?;
        if otherwise.is_none() {
            results.push((Shown::Unknown(None), Of::Unknown));
        }
        let of = of_one_type(&results).unwrap_or(Some(DataType::Text))?;
        let mut results = results.into_iter().map(|one| as_type(one, of)).collect::<Option<Vec<Shown>>>()?;
        let otherwise = Box::new(results.pop()?);
        let whens = conditions.into_iter().zip(results).map(|(condition, result)| [condition, result]).collect();
        let operand = operand.map(|(shown, _)| Box::new(shown));
        Some((Shown::Case(operand, whens, otherwise), Of::Known(of)))
    }

    /// An aggregate, which stands in queries alone.
    fn aggregate(&self, call: &Call) -> Option<Typed> {
        let from = self.from?;
        let Call { name, args, star, distinct, variadic: false, filter, over: None, .. } = call else { return None };
        let [name] = name.parts() else { return None };
        if !call.order.is_empty() || !call.within.is_empty() || args.iter().any(|arg| arg.name.is_some()) {
            return None;
        }
        let mut shown = args.iter().map(|arg| self.show(&arg.value)).collect::<Option<Vec<Typed>>>()?;
        let (takes, gives) = match (star, shown.as_slice()) {
            (true, []) => (None, (name.name == "count").then_some(DataType::Int8)?),
            (false, [(_, Of::Known(of))]) => aggregated(&name.name, *of)?,
            _ => return None,
        };
        let mut args = match (takes, shown.pop()) {
            (Some(takes), Some(arg)) => vec![as_type(arg, takes)?],
            (_, arg) => vec![arg.map_or(Shown::Plain("*".into()), |(shown, _)| shown)],
        };
        if *distinct {
            args = vec![Shown::Plain(format!("DISTINCT {}", args.pop()?.text(from.is_pretty())))];
        }
        let made = Shown::Call(name.name.clone(), args);
        let made = match filter {
            None => made,
            Some(filter) => Shown::Filtered(Box::new([made, self.condition(filter)?])),
        };
        Some((made, Of::Known(gives)))
    }

    fn call(&self, call: &Call) -> Option<Typed> {
        if call.over.is_some() {
            return self.over(call);
        }
        if let Some(aggregate) = self.aggregate(call) {
            return Some(aggregate);
        }
        let Call { name, args, filter: None, over: None, .. } = call else { return None };
        let plain = !call.star && !call.distinct && !call.variadic && call.order.is_empty() && call.within.is_empty();
        if !plain || args.iter().any(|arg| arg.name.is_some()) {
            return None;
        }
        let name = match name.parts() {
            [own] => own,
            [schema, own] if schema.name == "pg_catalog" => own,
            _ => return None,
        };
        let args = args.iter().map(|arg| self.show(&arg.value)).collect::<Option<Vec<Typed>>>()?;
        let (takes, gives) = function(&name.name, &args)?;
        let is_text =
            |of| matches!(of, Of::Unknown | Of::Known(DataType::Text | DataType::Varchar(_) | DataType::Char(_)));
        let mut shown = vec![];
        for (arg, want) in args.into_iter().zip(takes) {
            (want != DataType::Text || is_text(arg.1)).then_some(())?;
            shown.push(as_type(arg, want)?);
        }
        Some((Shown::Call(name.name.clone(), shown), Of::Known(gives)))
    }

    fn special(&self, function: SpecialFunction, args: &[Expr]) -> Option<Typed> {
        use SpecialFunction as F;
        let of = match function {
            F::CurrentDate => DataType::Date,
            F::CurrentTimestamp => DataType::Timestamptz,
            F::LocalTimestamp => DataType::Timestamp,
            F::Coalesce | F::Greatest | F::Least => return self.chosen(function, args),
            _ => return None,
        };
        let name = function.name().to_ascii_uppercase();
        args.is_empty().then_some((Shown::Plain(name), Of::Known(of)))
    }

    /// COALESCE and its kind, of values of one type and of constants that take it.
    fn chosen(&self, function: SpecialFunction, args: &[Expr]) -> Option<Typed> {
        let args = args.iter().map(|arg| self.show(arg)).collect::<Option<Vec<Typed>>>()?;
        let of = of_one_type(&args)??;
        let shown = args.into_iter().map(|arg| as_type(arg, of)).collect::<Option<Vec<_>>>()?;
        Some((Shown::Call(function.name().to_ascii_uppercase(), shown), Of::Known(of)))
    }
}

/// The type that values have, where others are constants that take it; the outer `None`: all are, the inner one: they
/// have several.
fn of_one_type(values: &[Typed]) -> Option<Option<DataType>> {
    let of = values.iter().find_map(|(_, of)| match of {
        Of::Unknown => None,
        Of::Known(of) => Some(Some(*of)),
        Of::List(_) => Some(None),
    })?;
    let fits = |of: DataType| values.iter().all(|(_, own)| *own == Of::Unknown || *own == Of::Known(of));
    Some(of.filter(|of| fits(*of)))
}

/// What an aggregate takes, if that is one type, and what it gives.
fn aggregated(name: &str, of: DataType) -> Option<(Option<DataType>, DataType)> {
    use DataType::{Bool, Float4, Float8, Int2, Int4, Int8, Interval, Numeric, Varchar};
    Some(match (name, of) {
        ("count", _) => (None, Int8),
        ("sum", Int2 | Int4) => (None, Int8),
        ("sum", Int8 | Numeric(_)) | ("avg", Int2 | Int4 | Int8 | Numeric(_)) => (None, Numeric(None)),
        ("sum", Float4 | Float8 | Interval) => (None, of),
        ("avg", Float4 | Float8) => (None, Float8),
        ("avg", Interval) => (None, Interval),
        ("min" | "max", Varchar(_)) => (Some(DataType::Text), DataType::Text),
        ("min" | "max", of) if is_number(of) || is_moment(of) || of == DataType::Text || of == Interval => (None, of),
        ("bool_and" | "bool_or" | "every", Bool) => (None, Bool),
        _ => return None,
    })
}

/// A value of one type where another is wanted.
fn cast_to(shown: Shown, of: DataType, want: DataType) -> Shown {
    if of == want { shown } else { Shown::Cast(Box::new(shown), label(want).into()) }
}

fn literal_of(literal: &Literal) -> Option<Typed> {
    let bare = |text: String| Shown::Constant { text, label: None };
    let known = |shown, of| Some((shown, Of::Known(of)));
    match literal {
        Literal::Null => Some((Shown::Unknown(None), Of::Unknown)),
        Literal::Text(text) => Some((Shown::Unknown(Some(text.clone())), Of::Unknown)),
        Literal::Bool(value) => known(bare(value.to_string()), DataType::Bool),
        Literal::Int(value) => match i32::try_from(*value) {
            Ok(0..) => known(bare(value.to_string()), DataType::Int4),
            Ok(_) => {
                known(Shown::Constant { text: format!("'{value}'"), label: Some("integer".into()) }, DataType::Int4)
            }
            Err(_) => {
                known(Shown::Constant { text: format!("'{value}'"), label: Some("bigint".into()) }, DataType::Int8)
            }
        },
        Literal::Number(text) => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            let of = DataType::Numeric(None);
            // `.5` and `1.` are written another way.
            if !plain_number(digits) || digits.starts_with('.') || digits.ends_with('.') {
                return None;
            }
            match digits == text && digits.contains('.') {
                true => known(bare(text.clone()), of),
                false => known(Shown::Constant { text: format!("'{text}'"), label: Some("numeric".into()) }, of),
            }
        }
        Literal::Bits { .. } => None,
    }
}
