//! Random tables, sources and conditions. Values are few, so that they meet; NULL is one of them. Conditions do not
//! fail: their numbers stay small, and nothing is divided.
use rand::prelude::*;
use rand_chacha::ChaCha8Rng;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Int,
    Numeric,
    Text,
    Bool,
    Date,
}

const TYPES: [Type; 5] = [Type::Int, Type::Numeric, Type::Text, Type::Bool, Type::Date];

impl Type {
    fn declared(self) -> &'static str {
        match self {
            Type::Int => "int",
            Type::Numeric => "numeric(8,2)",
            Type::Text => "text",
            Type::Bool => "boolean",
            Type::Date => "date",
        }
    }

    fn values(self) -> &'static [&'static str] {
        match self {
            Type::Int => &["0", "1", "2", "(-1)", "7"],
            Type::Numeric => &["0.5", "1.00", "2.50", "(-1.25)", "7.00"],
            Type::Text => &["'a'", "'b'", "''", "'ab'", "'B'"],
            Type::Bool => &["true", "false"],
            Type::Date => &["DATE '2020-02-29'", "DATE '2021-01-01'", "DATE '1999-12-31'"],
        }
    }
}

/// As an expression names it, and its type.
#[derive(Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Type,
}

pub(crate) struct Source {
    pub(crate) sql: String,
    pub(crate) columns: Vec<Column>,
}

pub(crate) struct Generator {
    random: ChaCha8Rng,
    tables: Vec<(String, Vec<(String, Type)>)>,
    aliases: usize,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Generator {
        Generator { random: ChaCha8Rng::seed_from_u64(seed), tables: vec![], aliases: 0 }
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        *of.choose(&mut self.random).expect("there is one")
    }

    fn chance(&mut self, probability: f64) -> bool {
        self.random.random_bool(probability)
    }

    /// What makes the tables: one without a key, two with one.
    pub(crate) fn tables(&mut self) -> Vec<String> {
        let mut statements = vec![];
        for at in 0..3 {
            let name = format!("t{at}");
            let mut columns = vec![("id".to_owned(), Type::Int)];
            for letter in ["a", "b", "c", "d"] {
                columns.push((letter.to_owned(), self.one(&TYPES)));
            }
            let declared = |(column, kind): &(String, Type)| format!("{column} {}", kind.declared());
            let declared = columns.iter().map(declared).collect::<Vec<_>>().join(", ");
            let key = if at == 0 { "" } else { ", PRIMARY KEY (id)" };
            statements.push(format!("CREATE TABLE {name} ({declared}{key})"));
            if at == 2 {
                statements.push(format!("CREATE INDEX ON {name} (a)"));
            }
            for id in 0..self.random.random_range(0..7) {
                let values: Vec<String> = columns[1..].iter().map(|(_, kind)| self.value(*kind, 0.25)).collect();
                statements.push(format!("INSERT INTO {name} VALUES ({id}, {})", values.join(", ")));
            }
            self.tables.push((name, columns));
        }
        statements
    }

    fn value(&mut self, kind: Type, null: f64) -> String {
        if self.chance(null) { "NULL".to_owned() } else { self.one(kind.values()).to_owned() }
    }

    pub(crate) fn table(&mut self) -> Source {
        let (table, columns) = self.tables[self.random.random_range(0..self.tables.len())].clone();
        self.aliases += 1;
        let alias = format!("r{}", self.aliases);
        let columns =
            columns.into_iter().map(|(name, kind)| Column { name: format!("{alias}.{name}"), kind }).collect();
        Source { sql: format!("{table} AS {alias}"), columns }
    }

    /// A table, a derived one, or a join.
    pub(crate) fn source(&mut self) -> Source {
        let mut made = self.table();
        for _ in 0..self.one(&[0, 1, 1, 2]) {
            let right = if self.chance(0.2) { self.derived() } else { self.table() };
            let kind = self.one(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"]);
            let on = match kind {
                "CROSS JOIN" => String::new(),
                _ => format!(" ON {}", self.equality(&made.columns, &right.columns)),
            };
            made.sql = format!("{} {kind} {}{on}", made.sql, right.sql);
            made.columns.extend(right.columns);
        }
        made
    }

    /// A subquery in FROM: plain, or grouped.
    fn derived(&mut self) -> Source {
        let inner = self.table();
        self.aliases += 1;
        let alias = format!("r{}", self.aliases);
        let column = inner.columns[self.random.random_range(0..inner.columns.len())].clone();
        let (list, tail, kind) = match self.one(&[0, 1, 2]) {
            0 => (format!("{} AS x, 1 AS y", column.name), String::new(), column.kind),
            1 => {
                (format!("{} AS x, count(*)::int AS y", column.name), format!(" GROUP BY {}", column.name), column.kind)
            }
            _ => ("count(*)::int AS x, 2 AS y".to_owned(), String::new(), Type::Int),
        };
        let columns =
            vec![Column { name: format!("{alias}.x"), kind }, Column { name: format!("{alias}.y"), kind: Type::Int }];
        Source { sql: format!("(SELECT {list} FROM {}{tail}) AS {alias}", inner.sql), columns }
    }

    fn equality(&mut self, left: &[Column], right: &[Column]) -> String {
        let one = left[self.random.random_range(0..left.len())].clone();
        let others: Vec<&Column> = right.iter().filter(|column| column.kind == one.kind).collect();
        match others.choose(&mut self.random) {
            Some(other) => format!("{} = {}", one.name, other.name),
            None => format!("{} = {}", left[0].name, if right[0].kind == Type::Int { &right[0].name } else { "1" }),
        }
    }

    pub(crate) fn column(&mut self, columns: &[Column]) -> String {
        columns[self.random.random_range(0..columns.len())].name.clone()
    }

    /// A condition over these columns.
    pub(crate) fn condition(&mut self, columns: &[Column], depth: usize) -> String {
        if depth > 0 && self.chance(0.4) {
            let (left, right) = (self.condition(columns, depth - 1), self.condition(columns, depth - 1));
            return match self.one(&[0, 1, 2, 3]) {
                0 => format!("({left} AND {right})"),
                1 => format!("({left} OR {right})"),
                2 => format!("(NOT {left})"),
                _ => format!("(CASE WHEN {left} THEN {right} ELSE {left} END)"),
            };
        }
        let kind = self.one(&TYPES);
        let (left, right) = (self.operand(columns, kind), self.operand(columns, kind));
        match self.one(&[0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]) {
            0 => format!("{left} {} {right}", self.one(&["=", "<>", "<", "<=", ">", ">="])),
            1 => format!("{left} IS {}", self.one(&["NULL", "NOT NULL"])),
            2 => format!("{left} {} ({}, {right})", self.one(&["IN", "NOT IN"]), self.value(kind, 0.2)),
            3 => format!("{left} IS {} {right}", self.one(&["DISTINCT FROM", "NOT DISTINCT FROM"])),
            4 => format!("{left} BETWEEN {} AND {right}", self.value(kind, 0.1)),
            5 => format!("coalesce({left}, {right}) = {right}"),
            6 if kind == Type::Text => format!("{left} LIKE {}", self.one(&["'a%'", "'%b'", "'_'", "''"])),
            7 => self.subquery(&left, kind),
            _ => format!("nullif({left}, {right}) IS NULL"),
        }
    }

    fn operand(&mut self, columns: &[Column], kind: Type) -> String {
        let of: Vec<&Column> = columns.iter().filter(|column| column.kind == kind).collect();
        let column = of.choose(&mut self.random).map(|column| column.name.clone());
        match column {
            Some(name) if self.chance(0.8) => match kind {
                Type::Int | Type::Numeric if self.chance(0.2) => format!("({name} + 1)"),
                Type::Text if self.chance(0.2) => format!("({name} || 'a')"),
                _ => name,
            },
            _ => self.value(kind, 0.0),
        }
    }

    /// What a table answers, compared with `left`.
    fn subquery(&mut self, left: &str, kind: Type) -> String {
        let table = self.table();
        let of = table.columns.iter().find(|column| column.kind == kind);
        let Some(column) = of else { return format!("EXISTS (SELECT 1 FROM {} WHERE {left} IS NULL)", table.sql) };
        let words = ["IN", "NOT IN", "= ANY", "<> ALL", "< ANY", ">= ALL"];
        format!("{left} {} (SELECT {} FROM {})", self.one(&words), column.name, table.sql)
    }

    /// A condition over groups by `key`.
    pub(crate) fn condition_of_groups(&mut self, columns: &[Column], key: &str) -> String {
        let number = self.one(&[0, 1, 2, 5]);
        let (of, _) = self.aggregate(columns);
        match self.one(&[0, 1, 2]) {
            0 => format!("count(*) > {number}"),
            1 => format!("{of} = {of}"),
            _ => format!("{key} IS NULL OR count({}) < {number}", self.column(columns)),
        }
    }

    /// An aggregate, and the one over parts of it, called `part`.
    pub(crate) fn aggregate(&mut self, columns: &[Column]) -> (String, String) {
        let column = columns[self.random.random_range(0..columns.len())].clone();
        match (column.kind, self.one(&[0, 1, 2])) {
            (_, 0) => (format!("count({})", column.name), "sum(part)".to_owned()),
            (Type::Int | Type::Numeric, 1) => (format!("sum({})", column.name), "sum(part)".to_owned()),
            (Type::Bool, _) => (format!("bool_or({})", column.name), "bool_or(part)".to_owned()),
            (_, 1) => (format!("min({})", column.name), "min(part)".to_owned()),
            _ => (format!("max({})", column.name), "max(part)".to_owned()),
        }
    }
}
