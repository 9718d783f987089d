//! Sequences, SERIAL and GENERATED AS IDENTITY.
//!
//! 1. A sequence is a table of one row that only this module writes. Its mark is a last column that is dropped and has
//!    no name: users cannot make such a column. DROP, rollback and recovery work as for any table. The mark's text says
//!    whether the sequence belongs to a column, and its type, where that is not bigint: `owned int4`. (Sequences of
//!    before say no type.)
//! 2. Values are not transactional. A separate transaction reserves at least [`AHEAD`] values and commits; only then is
//!    the first one given. So after a crash no value is given again, and up to that many are skipped. (A sequence that
//!    the present transaction has just created is advanced in that transaction, because nobody else sees it.)
//! 3. TRUNCATE ... RESTART IDENTITY is transactional: the sequence gets a new identity, as the table does, and with it
//!    a row of its own.
//! 4. Calls are allowed only where a statement evaluates them once: in VALUES, in a default, in a SELECT without FROM.
//!    Elsewhere the functions are unknown.

use crate::error::{missing_relation, unsupported};
use crate::parse::identity::Identity;
use crate::parse::numbered as numbered_schema;
use crate::parse::qualified::shown_relation;
use crate::parse::sequence_calls::{Call, named, sequence_of};
use crate::parse::stored::Stored;
use crate::parse::types::known;
use crate::parse::{self, relation};
use crate::statement::ddl::{check_name, choose_name, duplicate};
use crate::statement::dispatch::skip_existing;
use crate::statement::run::Run;
use crate::statement::target::Target;
use crate::statement::views::{dependent_views, refuse_views};
use crate::transaction::Reserved;
use crate::values::{array_datum, engine_array, engine_type, is_owned, is_sequence};
use datafusion::arrow::array::{Array, ArrayRef};
use std::sync::Arc;
use terrace_engine::catalog::access::{Rights, Securable};
use terrace_engine::{
    Catalog, ColumnDef, DataType, Datum, EngineError, Isolation, Placing, RelationName, Result, Scan, Table, TableSpec,
    Txn, UpdateOutcome, Version,
};
use terrace_grammar::statement::{
    Body, Column, ColumnConstraint, ColumnConstraintKind, CreateSequence, CreateTable, Deferral, Expr, ExprKind, Item,
    Literal, Name, SequenceOption, SequenceOptionKind as Kind, Statement, TypeName, Written,
};
use terrace_storage::Rid;

/// Values reserved at a time (invariant 2).
const AHEAD: usize = 32;

pub(crate) fn refuse_sequence(table: &Table) -> Result<()> {
    match is_sequence(table) {
        true => Err(EngineError::new("42809", format!("\"{}\" is a sequence", table.name))),
        false => Ok(()),
    }
}

/// The numbers that a sequence gives, as options say it. What is `None` is left to PostgreSQL's rules.
pub(crate) struct Limits {
    start: Option<i64>,
    increment: i64,
    min: Option<i64>,
    max: Option<i64>,
    cycle: bool,
}

impl Limits {
    fn new() -> Limits {
        Limits { start: None, increment: 1, min: None, max: None, cycle: false }
    }

    /// Of a sequence that there is.
    pub(crate) fn of_row(row: &[Datum]) -> Limits {
        let [start, increment, min, max] = [2, 3, 4, 5].map(|at| int(&row[at]));
        let (start, min, max) = (Some(start), Some(min), Some(max));
        Limits { start, increment, min, max, cycle: row[6] == Datum::Bool(true) }
    }

    /// The bounds of another type, where they were those of the type before.
    pub(crate) fn follow(&mut self, before: DataType, after: DataType) {
        if self.max == Some(most(before)) {
            self.max = Some(most(after));
        }
        if self.min == Some(-most(before) - 1) {
            self.min = Some(-most(after) - 1);
        }
    }

    /// Takes an option in; others than these are refused.
    pub(crate) fn take(&mut self, option: &Kind) -> Result<()> {
        match option {
            Kind::Increment(by) => self.increment = number(by)?,
            Kind::MinValue(value) => self.min = value.as_ref().map(number).transpose()?,
            Kind::MaxValue(value) => self.max = value.as_ref().map(number).transpose()?,
            Kind::Start(value) => self.start = Some(number(value)?),
            Kind::Cycle(on) => self.cycle = *on,
            // Values are always reserved ahead.
            Kind::Cache(value) => {
                let values = number(value)?;
                if values <= 0 {
                    return Err(EngineError::new("22023", format!("CACHE ({values}) must be greater than zero")));
                }
            }
            // It was looked at before.
            Kind::As(_) => {}
            Kind::OwnedBy(name) if name.parts().len() == 1 && name.last().name == "none" => {}
            Kind::OwnedBy(_) => return Err(unsupported("OWNED BY here")),
            Kind::Restart(_) => return Err(unsupported("RESTART here")),
            Kind::SequenceName(_) => return Err(unsupported("SEQUENCE NAME")),
        }
        Ok(())
    }

    /// `of`: the sequence's type.
    pub(crate) fn settle(&self, of: DataType) -> Result<Numbers> {
        let most = most(of);
        let invalid = |message: String| Err(EngineError::new("22023", message));
        let (increment, cycle) = (self.increment, self.cycle);
        if increment == 0 {
            return invalid("INCREMENT must not be zero".into());
        }
        let (min, max) = match increment > 0 {
            true => (self.min.unwrap_or(1), self.max.unwrap_or(most)),
            false => (self.min.unwrap_or(-most - 1), self.max.unwrap_or(-1)),
        };
        let out_of_range = |what: &str, value: i64| {
            EngineError::new("22023", format!("{what} ({value}) is out of range for sequence data type {of}"))
        };
        if max > most || max < -most - 1 {
            return Err(out_of_range("MAXVALUE", max));
        }
        if min > most || min < -most - 1 {
            return Err(out_of_range("MINVALUE", min));
        }
        if min >= max {
            return invalid(format!("MINVALUE ({min}) must be less than MAXVALUE ({max})"));
        }
        let start = self.start.unwrap_or(if increment > 0 { min } else { max });
        if start < min {
            return invalid(format!("START value ({start}) cannot be less than MINVALUE ({min})"));
        }
        if start > max {
            return invalid(format!("START value ({start}) cannot be greater than MAXVALUE ({max})"));
        }
        Ok(Numbers { start, increment, min, max, cycle })
    }
}

/// The numbers that a sequence gives.
pub(crate) struct Numbers {
    pub(crate) start: i64,
    increment: i64,
    pub(crate) min: i64,
    pub(crate) max: i64,
    cycle: bool,
}

impl Numbers {
    /// The row of a sequence that has come to `last`, and whether that was given.
    pub(crate) fn row(&self, last: Datum, called: Datum) -> Vec<Datum> {
        let n = Datum::Int8;
        let [start, increment, min, max] = [self.start, self.increment, self.min, self.max].map(n);
        vec![last, called, start, increment, min, max, Datum::Bool(self.cycle), Datum::Null]
    }
}

/// No option stands twice. 42601
pub(crate) fn once(options: &[SequenceOption]) -> Result<()> {
    for (at, option) in options.iter().enumerate() {
        let same = |other: &SequenceOption| std::mem::discriminant(&other.kind) == std::mem::discriminant(&option.kind);
        if options[..at].iter().any(same) {
            return Err(EngineError::new("42601", "conflicting or redundant options"));
        }
    }
    Ok(())
}

/// The name that SEQUENCE NAME gives the sequence of an identity column, and the other options.
pub(crate) fn apart_from_name(options: &[SequenceOption]) -> Result<(Option<String>, Vec<SequenceOption>)> {
    once(options)?;
    let (mut named, mut others) = (None, vec![]);
    for option in options {
        match &option.kind {
            Kind::SequenceName(name) => named = Some(relation(name)?.name),
            _ => others.push(option.clone()),
        }
    }
    Ok((named, others))
}

/// What the mark of a sequence says (invariant 1). `max`: its MAXVALUE.
pub(crate) fn mark_of(owned: bool, of: DataType, max: i64) -> Option<String> {
    let name = match of {
        DataType::Int2 => Some("int2"),
        DataType::Int4 => Some("int4"),
        // A sequence that says nothing and ends where integers do is taken for an integer's.
        _ => (owned || max == i64::from(i32::MAX)).then_some("int8"),
    };
    let words: Vec<&str> = owned.then_some("owned").into_iter().chain(name).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The type of a sequence with such a row.
pub(crate) fn type_of(sequence: &Table, row: &[Datum]) -> DataType {
    let known = crate::values::sequence_type(sequence);
    known.unwrap_or(if int(&row[5]) == i64::from(i32::MAX) { DataType::Int4 } else { DataType::Int8 })
}

/// The largest number of a type.
pub(crate) fn most(of: DataType) -> i64 {
    match of {
        DataType::Int2 => i16::MAX.into(),
        DataType::Int4 => i32::MAX.into(),
        _ => i64::MAX,
    }
}

/// The type that AS names. 22023
pub(crate) fn stated_type(options: &[SequenceOption]) -> Result<Option<DataType>> {
    let stated = options.iter().find_map(|option| match &option.kind {
        Kind::As(name) => Some(name),
        _ => None,
    });
    match stated.map(known).transpose()? {
        None => Ok(None),
        Some(of @ (DataType::Int2 | DataType::Int4 | DataType::Int8)) => Ok(Some(of)),
        Some(_) => Err(EngineError::new("22023", "sequence type must be smallint, integer, or bigint")),
    }
}

/// The default of a column that a sequence numbers, which is there or will be. (`qualified::kept` finds it.)
pub(crate) fn numbering(sequence: &Target) -> String {
    let schema = match sequence.placing {
        Placing::In(space) => numbered_schema(space),
        Placing::Temporary(_) => "pg_temp".into(),
    };
    let name = sequence.name.replace('"', "\"\"").replace('\'', "''");
    format!("nextval('{schema}.\"{name}\"')")
}

/// As CREATE SEQUENCE describes it.
pub(crate) struct NewSequence {
    target: Target,
    of: DataType,
    numbers: Numbers,
    owned: bool,
}

impl NewSequence {
    fn new(target: Target, of: DataType, options: &[SequenceOption]) -> Result<NewSequence> {
        once(options)?;
        let mut limits = Limits::new();
        options.iter().try_for_each(|option| limits.take(&option.kind))?;
        Ok(NewSequence { target, of, numbers: limits.settle(of)?, owned: false })
    }

    /// One that belongs to a column.
    pub(crate) fn owned(target: Target, of: DataType, options: &[SequenceOption]) -> Result<NewSequence> {
        Ok(NewSequence { owned: true, ..NewSequence::new(target, of, options)? })
    }

    fn spec(&self) -> TableSpec {
        let number = |name| ColumnDef::new(name, DataType::Int8).not_null();
        let flag = |name| ColumnDef::new(name, DataType::Bool).not_null();
        let said = mark_of(self.owned, self.of, self.numbers.max);
        let mark = ColumnDef { dropped: true, default_sql: said, ..ColumnDef::new("", DataType::Bool) };
        let columns = vec![
            number("last_value"),
            flag("is_called"),
            number("start_value"),
            number("increment_by"),
            number("min_value"),
            number("max_value"),
            flag("cycle"),
            mark,
        ];
        TableSpec { name: self.target.name.clone(), columns, indexes: vec![] }
    }

    fn row(&self) -> Vec<Datum> {
        self.numbers.row(Datum::Int8(self.numbers.start), Datum::Bool(false))
    }
}

pub(crate) fn number(expr: &Expr) -> Result<i64> {
    match &expr.kind {
        ExprKind::Literal(Literal::Int(value)) => Ok(*value),
        ExprKind::Literal(Literal::Number(text)) => {
            Err(EngineError::new("22003", format!("value \"{text}\" is out of range for type bigint")))
        }
        _ => Err(EngineError::new("22023", "an option of a sequence is a number")),
    }
}

/// Splits SERIAL and IDENTITY into plain columns with defaults, and the sequences behind them.
pub(crate) fn expand(create: &CreateTable, catalog: &Catalog) -> Result<(CreateTable, Vec<NewSequence>)> {
    let mut create = create.clone();
    let target = Target::of_table(&create, catalog)?;
    let table = &target.name;
    let mut sequences: Vec<NewSequence> = vec![];
    for column in &mut create.columns {
        let Some((of, options, identity)) = numbered(column) else { continue };
        let (named, options) = apart_from_name(&options)?;
        let taken = |n: &str| n == table || target.is_taken(n, catalog) || sequences.iter().any(|s| s.target.name == n);
        let name = match named {
            Some(named) if taken(&named) => return Err(duplicate(&named)),
            Some(named) => named,
            None => choose_name(&[table, &column.name.name], "seq", &taken),
        };
        let sequence = target.beside(name);
        let text = numbering(&sequence);
        let text = identity.map_or(text.clone(), |identity| identity.marked(&text));
        let call = Stored::read(&text).expect("a call of a function is an expression");
        let default = ColumnConstraintKind::Default(Written { expr: call.expr().clone(), text });
        let at = column.name.at;
        let plain = |kind| ColumnConstraint { at, name: None, kind, deferral: Deferral::default() };
        column.constraints.push(plain(default));
        column.constraints.push(plain(ColumnConstraintKind::NotNull));
        sequences.push(NewSequence::owned(sequence, of, &options)?);
    }
    Ok((create, sequences))
}

/// The type of a numbered column, its sequence's options, and what its identity is if it is no serial one.
pub(super) type Numbering = (DataType, Vec<SequenceOption>, Option<Identity>);

/// If a column is numbered: its type, and the options. The parts of the definition that say so are removed.
pub(super) fn numbered(column: &mut Column) -> Option<Numbering> {
    let plain = match column.data_type.name.parts() {
        [own] if column.data_type.dimensions.is_empty() => match own.name.as_str() {
            "serial" | "serial4" => Some("int4"),
            "bigserial" | "serial8" => Some("int8"),
            "smallserial" | "serial2" => Some("int2"),
            _ => None,
        },
        _ => None,
    };
    let of = |data_type: &TypeName| match data_type.name.last().name.as_str() {
        "int8" => DataType::Int8,
        "int2" => DataType::Int2,
        _ => DataType::Int4,
    };
    if let Some(plain) = plain {
        column.data_type.name = Name::system(column.data_type.at, plain);
        return Some((of(&column.data_type), vec![], None));
    }
    let identity = |constraint: &ColumnConstraint| match &constraint.kind {
        ColumnConstraintKind::Identity { always, options } => {
            Some((options.clone(), if *always { Identity::Always } else { Identity::ByDefault }))
        }
        _ => None,
    };
    let at = column.constraints.iter().position(|constraint| identity(constraint).is_some())?;
    let (options, identity) = identity(&column.constraints.remove(at))?;
    Some((of(&column.data_type), options, Some(identity)))
}

impl Run<'_> {
    pub(crate) async fn create_sequence(&self, new: &NewSequence) -> Result<()> {
        let create = async {
            let mut slot = self.cell.lock().await;
            let table = slot.open().create_table_in(new.spec(), new.target.placing).await?;
            slot.open().insert(&table, &new.row()).await.map(|_| table)
        };
        let table = self.cancel.run(create).await?;
        self.own_in(table.oid, Some((table.space, Securable::Sequence))).await
    }

    /// CREATE SEQUENCE.
    pub(crate) async fn create_sequence_statement(&self, create: &CreateSequence) -> Result<Vec<EngineError>> {
        let of = stated_type(&create.options)?.unwrap_or(DataType::Int8);
        let catalog = self.begin_statement().await;
        let target = Target::of(&create.name, create.temporary, None, &catalog)?;
        check_name(&target.name)?;
        if target.is_taken(&target.name, &catalog) {
            return skip_existing(&target.name, create.if_not_exists);
        }
        self.info.actor(&catalog).permit_creation(&catalog, target.placing)?;
        self.create_sequence(&NewSequence::new(target, of, &create.options)?).await?;
        Ok(vec![])
    }

    /// 2BP01 where a default needs it.
    pub(crate) async fn drop_sequence(&self, name: &RelationName, catalog: &Catalog) -> Result<()> {
        let Some(table) = catalog.table(name) else {
            return Err(EngineError::new("42P01", format!("sequence \"{}\" does not exist", name.name)));
        };
        if !is_sequence(table) {
            return Err(EngineError::new("42809", format!("\"{}\" is not a sequence", name.name)));
        }
        self.info.actor(catalog).require_dropper(catalog, (table.oid, table.space), ("sequence", &table.name))?;
        let shown = shown_relation(table.space, &table.name, catalog);
        for other in catalog.tables() {
            let of = |c: &ColumnDef| sequence_of(c).and_then(|name| catalog.table(&name).cloned());
            if other.columns.iter().filter_map(of).any(|sequence| sequence.oid == table.oid) {
                let message = format!("cannot drop sequence {shown} because other objects depend on it");
                return Err(EngineError::new("2BP01", message)
                    .with_detail(format!("a default value of table {} depends on sequence {shown}", other.name)));
            }
        }
        let (what, mut views) = (format!("sequence {shown}"), vec![]);
        dependent_views(catalog, (table.space, &table.name), None, &what, &mut views);
        refuse_views(&what, &views)?;
        let drop = async { self.cell.lock().await.open().drop_table(table).await };
        self.cancel.run(drop).await
    }

    /// The sequences that belong to these columns begin anew (invariant 3).
    pub(crate) async fn restart_owned(&self, columns: &[ColumnDef]) -> Result<()> {
        for name in columns.iter().filter(|c| !c.dropped).filter_map(sequence_of) {
            if !self.begin_statement().await.table(&name).is_some_and(|t| is_owned(t)) {
                continue;
            }
            let catalog = self.begin_statement().await;
            let old = self.alone_if(&name, |old| self.info.actor(&catalog).require_owner_of(&catalog, old)).await?;
            if !is_owned(&old) {
                continue;
            }
            let begun = |row: &[Datum]| {
                let mut row = row.to_vec();
                (row[0], row[1]) = (row[2].clone(), Datum::Bool(false));
                Ok(row)
            };
            self.renewed(&old, begun).await?;
        }
        Ok(())
    }

    /// Drops the sequences that belong to dropped columns.
    pub(crate) async fn drop_owned(&self, columns: &[ColumnDef]) -> Result<()> {
        for name in columns.iter().filter(|c| !c.dropped).filter_map(sequence_of) {
            let catalog = self.begin_statement().await;
            let Some(sequence) = catalog.table(&name).filter(|t| is_owned(t)) else { continue };
            let drop = async { self.cell.lock().await.open().drop_table(sequence).await };
            self.cancel.run(drop).await?;
        }
        Ok(())
    }

    /// Carries a call out, where the current role may. (The sequence of an identity column is part of the table:
    /// `of_identity`.)
    pub(crate) async fn sequence(&self, call: &Call, of_identity: bool) -> Result<i64> {
        let name = match call {
            Call::Next(name) | Call::Current(name) | Call::Set(name, ..) => name,
            Call::Computed(function, _) => {
                return Err(unsupported(format!("{function} of anything but literals here")));
            }
            Call::Last => return self.last_given().await,
        };
        let table = self.locked_sequence(name).await?;
        if !of_identity {
            let rights = match call {
                Call::Next(_) => Rights::USAGE | Rights::UPDATE,
                Call::Current(_) => Rights::USAGE | Rights::SELECT,
                Call::Set(..) | Call::Last | Call::Computed(..) => Rights::UPDATE,
            };
            self.permit_any(&table, rights).await?;
        }
        let value = match call {
            Call::Current(_) => {
                let given = self.cell.lock().await.given.values.get(&table.oid).copied();
                let missing = || format!("currval of sequence \"{name}\" is not yet defined in this session");
                return given.ok_or_else(|| EngineError::new("55000", missing()));
            }
            Call::Set(_, value, called) => {
                self.set_sequence(&table, *value, *called).await?;
                if !*called {
                    return Ok(*value);
                }
                *value
            }
            _ => self.next_values(&table, 1).await?[0],
        };
        let mut slot = self.cell.lock().await;
        slot.given.values.insert(table.oid, value);
        if matches!(call, Call::Next(_)) {
            slot.given.last = Some(table.oid);
        }
        Ok(value)
    }

    /// `lastval()`: what `currval` says of the sequence that `nextval` was called of last. 55000 where it has gone.
    async fn last_given(&self) -> Result<i64> {
        let (found, catalog) = {
            let mut slot = self.cell.lock().await;
            let last = slot.given.last.and_then(|oid| Some((oid, *slot.given.values.get(&oid)?)));
            (last, slot.open().catalog())
        };
        let found = found.and_then(|(oid, value)| Some((catalog.table_by_oid(oid)?, value)));
        let undefined = || EngineError::new("55000", "lastval is not yet defined in this session");
        let (sequence, value) = found.ok_or_else(undefined)?;
        self.permit_any(sequence, Rights::USAGE | Rights::SELECT).await?;
        Ok(value)
    }

    /// A call with arguments that have to be computed. `None`: one of them is NULL, and nothing is called.
    pub(crate) async fn computed_call(&self, function: &str, args: &[Expr]) -> Result<Option<i64>> {
        let template = parse::statement("SELECT NULL")?;
        let Some(Statement::Query(template)) = template.as_ref().map(|parsed| parsed.statement()) else {
            return Err(EngineError::internal("SELECT NULL is a query"));
        };
        let mut query = template.as_ref().clone();
        let Body::Select(select) = &mut query.body else { return Err(EngineError::internal("it is a SELECT")) };
        select.items = args.iter().map(|expr| Item { expr: expr.clone(), alias: None }).collect();
        let plan = self.plan_tree(&query).await?;
        let collected = self.collect(&plan, None).await?;
        let batch = collected.iter().find(|batch| batch.num_rows() > 0);
        let batch = batch.ok_or_else(|| EngineError::internal("a query without FROM has a row"))?;
        let values = batch.columns().iter().map(|array| Ok(array_datum(&engine_array(array)?, 0)));
        let values = values.collect::<Result<Vec<Datum>>>()?;
        if values.contains(&Datum::Null) {
            return Ok(None);
        }
        let number = |value: &Datum| match value {
            Datum::Int2(value) => Some(i64::from(*value)),
            Datum::Int4(value) => Some(i64::from(*value)),
            Datum::Int8(value) => Some(*value),
            _ => None,
        };
        let call = match (function, values.as_slice()) {
            ("nextval", [Datum::Text(name)]) => Call::Next(named(name)?),
            ("currval", [Datum::Text(name)]) => Call::Current(named(name)?),
            ("setval", [Datum::Text(name), value]) if number(value).is_some() => {
                Call::Set(named(name)?, number(value).unwrap_or_default(), true)
            }
            ("setval", [Datum::Text(name), value, Datum::Bool(called)]) if number(value).is_some() => {
                Call::Set(named(name)?, number(value).unwrap_or_default(), *called)
            }
            _ => {
                let type_of = |(arg, array): (&Expr, &ArrayRef)| match &arg.kind {
                    ExprKind::Literal(Literal::Text(_)) => "unknown".to_owned(),
                    _ => engine_type(array.data_type()).map_or("unknown".into(), |of| of.base_name().to_string()),
                };
                let types: Vec<String> = args.iter().zip(batch.columns()).map(type_of).collect();
                let message = format!("function {function}({}) does not exist", types.join(", "));
                let hint = "No function matches the given name and argument types. You might need to add explicit \
                            type casts.";
                return Err(EngineError::new("42883", message).with_hint(hint));
            }
        };
        self.sequence(&call, false).await.map(Some)
    }

    async fn locked_sequence(&self, name: &RelationName) -> Result<Arc<Table>> {
        loop {
            let version = self.engine.catalog().version();
            let catalog = self.cell.lock().await.open().catalog();
            self.info.permit_lookup(&catalog, name)?;
            let table = catalog.table(name).ok_or_else(|| missing_relation(&catalog, name))?;
            if !is_sequence(table) {
                return Err(EngineError::new("42809", format!("\"{name}\" is not a sequence")));
            }
            match self.lock(table, false).await {
                Err(error) if error.state.0 == "42P01" && self.engine.catalog().version() != version => {}
                locked => return locked.map(|()| table.clone()),
            }
        }
    }

    pub(super) async fn reserved(&self, table: &Table) -> Reserved {
        let sequences = self.cell.lock().await.sequences.clone();
        let mut reserved = sequences.reserved.lock();
        reserved.entry(table.oid).or_default().clone()
    }

    /// Whether others see it (invariant 2).
    fn is_shared(&self, table: &Table) -> bool {
        self.engine.catalog().table_by_oid(table.oid).is_some()
    }

    /// Whether the statement's snapshot stays the same when it takes numbers. (For a sequence that only this
    /// transaction sees, a new snapshot is taken.)
    pub(crate) async fn numbers_apart(&self, name: &RelationName) -> Result<bool> {
        Ok(self.is_shared(&*self.locked_sequence(name).await?))
    }

    /// The values of that many calls of `nextval`, reserved with one commit.
    pub(crate) async fn numbers(&self, name: &RelationName, count: usize, of_identity: bool) -> Result<Vec<i64>> {
        let table = self.locked_sequence(name).await?;
        if !of_identity {
            self.permit_any(&table, Rights::USAGE | Rights::UPDATE).await?;
        }
        let values = self.next_values(&table, count).await?;
        assert_eq!(values.len(), count, "as many as were asked for, or an error");
        if let Some(last) = values.last() {
            let mut slot = self.cell.lock().await;
            slot.given.values.insert(table.oid, *last);
            slot.given.last = Some(table.oid);
        }
        Ok(values)
    }

    async fn next_values(&self, table: &Arc<Table>, count: usize) -> Result<Vec<i64>> {
        let work = async {
            let mut values = vec![];
            if !self.is_shared(table) {
                let mut slot = self.cell.lock().await;
                while values.len() < count {
                    values.extend(advance(slot.open(), table, count - values.len()).await?);
                }
                return Ok(values);
            }
            let reserved = self.reserved(table).await;
            let mut reserved = reserved.lock().await;
            loop {
                while values.len() < count
                    && let Some(value) = reserved.ahead.pop()
                {
                    values.push(value);
                    reserved.given = Some(value);
                }
                if values.len() == count {
                    return Ok(values);
                }
                assert!(reserved.ahead.is_empty(), "invariant 2: what is reserved is given before more is");
                let mut txn = self.engine.begin(Isolation::ReadCommitted);
                let mut more = advance(&mut txn, table, AHEAD.max(count - values.len())).await?;
                txn.commit().await?;
                more.reverse();
                reserved.ahead = more;
            }
        };
        self.cancel.run(work).await
    }

    async fn set_sequence(&self, table: &Arc<Table>, value: i64, called: bool) -> Result<()> {
        let work = async {
            let change = |row: &mut Vec<Datum>| {
                let (min, max) = (int(&row[4]), int(&row[5]));
                if value < min || value > max {
                    let message = format!(
                        "setval: value {value} is out of bounds for sequence \"{}\" ({min}..{max})",
                        table.name
                    );
                    return Err(EngineError::new("22003", message));
                }
                (row[0], row[1]) = (Datum::Int8(value), Datum::Bool(called));
                Ok(())
            };
            if !self.is_shared(table) {
                let mut slot = self.cell.lock().await;
                return change_row(slot.open(), table, change).await;
            }
            let reserved = self.reserved(table).await;
            let mut reserved = reserved.lock().await;
            let mut txn = self.engine.begin(Isolation::ReadCommitted);
            change_row(&mut txn, table, change).await?;
            txn.commit().await?;
            reserved.ahead.clear();
            Ok(())
        };
        self.cancel.run(work).await
    }

    /// What is reserved is reserved no more, so that the row says what was given last: who reads it wants that.
    pub(crate) async fn give_back(&self, table: &Arc<Table>) -> Result<()> {
        if !self.is_shared(table) {
            return Ok(());
        }
        let work = async {
            let reserved = self.reserved(table).await;
            let mut reserved = reserved.lock().await;
            if reserved.ahead.is_empty() {
                return Ok(());
            }
            let given = reserved.given.expect("the first of what is reserved is given at once");
            let mut txn = self.engine.begin(Isolation::ReadCommitted);
            let change = |row: &mut Vec<Datum>| {
                (row[0], row[1]) = (Datum::Int8(given), Datum::Bool(true));
                Ok(())
            };
            change_row(&mut txn, table, change).await?;
            txn.commit().await?;
            reserved.ahead.clear();
            Ok(())
        };
        self.cancel.run(work).await
    }
}

pub(crate) fn int(datum: &Datum) -> i64 {
    match datum {
        Datum::Int8(value) => *value,
        other => unreachable!("a sequence's numbers are bigints: {other:?}"),
    }
}

/// The next `count` values, or as many as there are.
async fn advance(txn: &mut Txn, table: &Arc<Table>, count: usize) -> Result<Vec<i64>> {
    assert!(count > 0, "nobody asks for no values");
    let mut values = vec![];
    change_row(txn, table, |row| {
        values.clear();
        let (increment, min, max) = (int(&row[3]), int(&row[4]), int(&row[5]));
        let cycle = row[6] == Datum::Bool(true);
        assert!(increment != 0 && min < max, "invariant 1: as it was created");
        while values.len() < count {
            let last = int(&row[0]);
            let next = match row[1] == Datum::Bool(true) {
                false => Some(last),
                true => last.checked_add(increment).filter(|next| (min..=max).contains(next)),
            };
            let next = match next {
                Some(next) => next,
                None if cycle => {
                    if increment > 0 {
                        min
                    } else {
                        max
                    }
                }
                None if values.is_empty() => {
                    let (which, bound) = if increment > 0 { ("maximum", max) } else { ("minimum", min) };
                    let message = format!("nextval: reached {which} value of sequence \"{}\" ({bound})", table.name);
                    return Err(EngineError::new("2200H", message));
                }
                None => break,
            };
            values.push(next);
            (row[0], row[1]) = (Datum::Int8(next), Datum::Bool(true));
        }
        Ok(())
    })
    .await?;
    assert!((1..=count).contains(&values.len()), "one at least, and no more than were asked for");
    Ok(values)
}

/// The row of a sequence.
pub(crate) async fn only_row(txn: &mut Txn, table: &Arc<Table>) -> Result<((Rid, Version), Vec<Datum>)> {
    assert!(is_sequence(table), "invariant 1: {} is none", table.name);
    let found = txn.scan(table, Scan::Full).next_batch(1).await?.pop();
    let (rid, row, version) =
        found.ok_or_else(|| EngineError::new("XX001", format!("sequence \"{}\" has no row", table.name)))?;
    Ok(((rid, version), row.view(table).to_datums()))
}

/// Changes the row of a sequence.
async fn change_row(
    txn: &mut Txn,
    table: &Arc<Table>,
    mut change: impl FnMut(&mut Vec<Datum>) -> Result<()>,
) -> Result<()> {
    loop {
        txn.begin_statement();
        txn.lock_table(table, true).await?;
        let ((rid, version), mut row) = only_row(txn, table).await?;
        change(&mut row)?;
        if let UpdateOutcome::Done = txn.update(table, rid, version, &row).await? {
            return Ok(());
        }
    }
}
