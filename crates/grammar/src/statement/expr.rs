//! Expressions, function calls, windows and the names of types.

use super::{At, Ident, Name, Query};

/// An expression. `at` is where it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub at: At,
    pub kind: ExprKind,
}

/// An expression, and how it is written: with one space where there is white space or a comment.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    pub expr: Expr,
    pub text: String,
}

/// What an expression is. `word_at` is the place of the operator's word (`IN`, `BETWEEN`, `::`): PostgreSQL's errors
/// about types point there.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A column, or a whole row of a table: which of them, the names in scope decide.
    Column(Name),
    /// `*` or `t.*`, in the list of SELECT, RETURNING and ROW.
    Star(Option<Name>),
    Literal(Literal),
    /// `$1` is 1.
    Parameter(u32),
    Unary {
        op: Operator,
        arg: Box<Expr>,
    },
    Binary {
        op: Operator,
        args: Box<[Expr; 2]>,
    },
    /// At least two.
    And(Vec<Expr>),
    /// At least two.
    Or(Vec<Expr>),
    Not(Box<Expr>),
    /// `IS NULL`, `IS NOT TRUE`...
    Is {
        arg: Box<Expr>,
        test: Test,
        negated: bool,
    },
    /// `IS DISTINCT FROM`.
    Distinct {
        args: Box<[Expr; 2]>,
        negated: bool,
        word_at: At,
    },
    /// The expression, the lower bound, the upper bound.
    Between {
        args: Box<[Expr; 3]>,
        negated: bool,
        symmetric: bool,
        word_at: At,
    },
    InList {
        arg: Box<Expr>,
        list: Vec<Expr>,
        negated: bool,
        word_at: At,
    },
    InQuery {
        arg: Box<Expr>,
        query: Box<Query>,
        negated: bool,
        word_at: At,
    },
    /// `a = ANY (...)`. LIKE and its kind are the operators `~~`, `!~~`, `~~*`, `!~~*`.
    Quantified {
        op: Operator,
        quantifier: Quantifier,
        left: Box<Expr>,
        right: Members,
    },
    /// LIKE, ILIKE, SIMILAR TO.
    Match {
        kind: Match,
        negated: bool,
        args: Box<[Expr; 2]>,
        escape: Option<Box<Expr>>,
        word_at: At,
    },
    /// `CAST(a AS t)`, `a::t`, `t 'a'`. `word_at` is the place of CAST, of `::` or of the type.
    Cast {
        arg: Box<Expr>,
        to: Box<TypeName>,
        word_at: At,
    },
    Collate {
        arg: Box<Expr>,
        collation: Name,
        word_at: At,
    },
    /// The time, the zone.
    AtTimeZone {
        args: Box<[Expr; 2]>,
        word_at: At,
    },
    Case {
        operand: Option<Box<Expr>>,
        /// At least one.
        whens: Vec<When>,
        otherwise: Option<Box<Expr>>,
    },
    Call(Box<Call>),
    /// What is written as a function and is none of a schema.
    Special {
        function: SpecialFunction,
        args: Vec<Expr>,
    },
    /// `ROW(a, b)`, or `(a, b)` with `explicit` false.
    Row {
        fields: Vec<Expr>,
        explicit: bool,
    },
    /// `ARRAY[...]`. The inner lists of `ARRAY[[1], [2]]` are arrays too.
    Array(Vec<Expr>),
    /// `ARRAY(SELECT ...)`.
    ArrayQuery(Box<Query>),
    Exists(Box<Query>),
    /// A query in parentheses: one value.
    Scalar(Box<Query>),
    Subscript {
        arg: Box<Expr>,
        subscript: Subscript,
        /// Whether it goes on from a subscript before it: in `a[1][2]` the second one does, in `(a[1])[2]` none.
        continues: bool,
    },
    /// What becomes of `arg` when `arg[1]['a'] = value` is assigned, in SET of an UPDATE, and in INSERT. `column`: what
    /// `arg` is, or is made for. At least one subscript.
    With {
        column: Ident,
        arg: Box<Expr>,
        subscripts: Vec<Subscript>,
        value: Box<Expr>,
    },
    /// What becomes of `arg` when `arg.field = value` is assigned, in SET of an UPDATE, and in INSERT.
    WithField {
        arg: Box<Expr>,
        field: Ident,
        value: Box<Expr>,
    },
    /// `(a).b`.
    Field {
        arg: Box<Expr>,
        field: Ident,
    },
    /// `(a).*`.
    AllFields(Box<Expr>),
    /// DEFAULT, in VALUES of an INSERT and in SET of an UPDATE.
    Default,
    Grouping(Vec<Expr>),
    /// `WHERE CURRENT OF cursor`.
    CurrentOf(Ident),
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    Null,
    Bool(bool),
    /// A whole number. A sign before it is part of it.
    Int(i64),
    /// Any other number, as it was written, with a sign before it.
    Number(String),
    /// A string. Its type is still unknown.
    Text(String),
    /// `B'101'` or, with `hex`, `X'1F'`. The digits are not checked.
    Bits {
        digits: String,
        hex: bool,
    },
}

/// An operator: `+`, `<>`, `OPERATOR(pg_catalog.=)`. `!=` is `<>`.
#[derive(Clone, Debug, PartialEq)]
pub struct Operator {
    pub at: At,
    pub schema: Vec<Ident>,
    pub symbol: String,
}

/// The tests of `IS`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Test {
    Null,
    True,
    False,
    Unknown,
}

/// The patterns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Match {
    Like,
    ILike,
    Similar,
}

/// `ANY` and `SOME`, or `ALL`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantifier {
    Any,
    All,
}

/// What a quantifier goes through.
#[derive(Clone, Debug, PartialEq)]
pub enum Members {
    Query(Box<Query>),
    /// An expression whose value is an array.
    Array(Box<Expr>),
}

/// One WHEN of a CASE.
#[derive(Clone, Debug, PartialEq)]
pub struct When {
    pub condition: Expr,
    pub result: Expr,
}

/// What stands in brackets behind an array.
#[derive(Clone, Debug, PartialEq)]
pub enum Subscript {
    Index(Box<Expr>),
    Slice(Option<Box<Expr>>, Option<Box<Expr>>),
}

/// Functions that are keywords. The times take their precision as an argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SpecialFunction {
    Coalesce,
    NullIf,
    Greatest,
    Least,
    CurrentDate,
    CurrentTime,
    CurrentTimestamp,
    LocalTime,
    LocalTimestamp,
    CurrentUser,
    CurrentRole,
    SessionUser,
    User,
    CurrentCatalog,
    CurrentSchema,
}

impl SpecialFunction {
    /// Its name, which is also the title of its column.
    pub fn name(self) -> &'static str {
        match self {
            SpecialFunction::Coalesce => "coalesce",
            SpecialFunction::NullIf => "nullif",
            SpecialFunction::Greatest => "greatest",
            SpecialFunction::Least => "least",
            SpecialFunction::CurrentDate => "current_date",
            SpecialFunction::CurrentTime => "current_time",
            SpecialFunction::CurrentTimestamp => "current_timestamp",
            SpecialFunction::LocalTime => "localtime",
            SpecialFunction::LocalTimestamp => "localtimestamp",
            SpecialFunction::CurrentUser => "current_user",
            SpecialFunction::CurrentRole => "current_role",
            SpecialFunction::SessionUser => "session_user",
            SpecialFunction::User => "user",
            SpecialFunction::CurrentCatalog => "current_catalog",
            SpecialFunction::CurrentSchema => "current_schema",
        }
    }
}

/// The name of a type.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeName {
    pub at: At,
    /// SQL's own words are names of `pg_catalog`: `timestamp with time zone` is `pg_catalog.timestamptz`, `char` is
    /// `pg_catalog.bpchar` with the modifier 1.
    pub name: Name,
    /// What stands in parentheses behind it.
    pub modifiers: Vec<Expr>,
    /// One for each `[]` or `[n]`. `int ARRAY` has one too.
    pub dimensions: Vec<Option<i32>>,
    /// Of an interval: `day to second`, in lower case.
    pub fields: Option<String>,
    /// `SETOF t`.
    pub set_of: bool,
    /// `t.a%TYPE`: the type of a column.
    pub of_column: bool,
}

/// A call of a function, an aggregate or a window function.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub name: Name,
    pub args: Vec<Argument>,
    /// `f(*)`.
    pub star: bool,
    pub distinct: bool,
    /// VARIADIC stands before the last argument.
    pub variadic: bool,
    /// ORDER BY within the parentheses.
    pub order: Vec<Sort>,
    /// WITHIN GROUP (ORDER BY ...).
    pub within: Vec<Sort>,
    pub filter: Option<Expr>,
    pub over: Option<Over>,
}

/// An argument, with its name in `f(a => 1)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    pub name: Option<Ident>,
    pub value: Expr,
}

/// The window of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Over {
    /// `OVER w`.
    Name(Ident),
    /// `OVER (...)`.
    Window(Box<Window>),
}

/// A window's definition.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    pub at: At,
    /// The window that it builds on: `(w ORDER BY a)`.
    pub base: Option<Ident>,
    pub partition: Vec<Expr>,
    pub order: Vec<Sort>,
    pub frame: Option<Frame>,
}

/// A window's frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    pub at: At,
    pub units: Units,
    pub start: FrameBound,
    pub end: FrameBound,
    pub exclude: Exclude,
}

/// What a frame counts in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Units {
    Rows,
    Range,
    Groups,
}

/// Where a frame begins or ends.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(Box<Expr>),
    CurrentRow,
    Following(Box<Expr>),
    UnboundedFollowing,
}

/// What a frame leaves out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Exclude {
    NoOthers,
    CurrentRow,
    Group,
    Ties,
}

/// One item of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub struct Sort {
    pub expr: Expr,
    pub descending: bool,
    pub nulls: Option<NullsOrder>,
    /// `ORDER BY a USING <`.
    pub using: Option<Operator>,
}

/// NULLS FIRST or NULLS LAST.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NullsOrder {
    First,
    Last,
}
