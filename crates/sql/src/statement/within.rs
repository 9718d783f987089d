//! INSERT, UPDATE and DELETE within WITH.
//!
//! 1. They are carried out in the order in which they stand, each once and to its end, before the statement that they
//!    belong to. What they return is kept in memory: that is what their names mean. A query that names none of them is
//!    answered before them, as in PostgreSQL, and its rows are kept in memory.
//! 2. In PostgreSQL all parts of a statement see the tables as they were before it. Here a part would see what an
//!    earlier one has changed. So the statement is refused (0A000) where a part reads a table that an earlier one has
//!    changed, or may have changed by the action of a foreign key, or changes its rows.
//! 3. All parts read with the snapshot that is taken before the first one.
//! 4. Foreign keys are looked at when all parts are done, with a snapshot of that time.
use crate::error::{from_arrow, unsupported};
use crate::parse::{qualified, relation};
use crate::plan::returned::Returned;
use crate::statement::describe::Sources;
use crate::statement::kind::{Kind, Task, Work};
use crate::statement::outcome::Done;
use crate::statement::returning::Changed;
use crate::statement::run::{Collected, Run};
use crate::through::meant;
use datafusion::arrow::array::RecordBatch;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use std::collections::BTreeSet;
use std::sync::Arc;
use terrace_engine::catalog::access::Rights;
use terrace_engine::{Catalog, DataType, EngineError, Result, Table};
use terrace_grammar::statement::{At, ConflictAction, Cte, Name, Node, Query, Statement, With, walk};
use terrace_storage::ObjectId;

/// The parts of a statement that have been carried out.
#[derive(Default)]
pub(crate) struct Earlier {
    pub(crate) parts: Vec<Returned>,
    /// The rows that these have.
    rows: Vec<Collected>,
    /// The tables that they have changed, or may have.
    changed: BTreeSet<ObjectId>,
}

impl Earlier {
    /// Invariant 2.
    pub(crate) fn refuse<'t>(&self, tables: impl IntoIterator<Item = &'t Arc<Table>>) -> Result<()> {
        match tables.into_iter().find(|table| self.changed.contains(&table.oid)) {
            Some(table) => {
                let what = format!(
                    "reading or changing table \"{}\", which another part of the statement changes,",
                    table.name
                );
                Err(unsupported(what).with_hint("Write two statements, in a transaction."))
            }
            None => Ok(()),
        }
    }

    /// One that is planned only.
    pub(crate) fn planned(&mut self, change: &Statement, returned: Returned, catalog: &Catalog) -> Result<()> {
        self.note(change, catalog)?;
        self.parts.push(returned);
        Ok(())
    }

    fn note(&mut self, statement: &Statement, catalog: &Catalog) -> Result<()> {
        self.changed.append(&mut changed_by(statement, catalog)?);
        Ok(())
    }
}

/// The tables whose rows a statement changes, or may change by the action of a foreign key.
pub(crate) fn changed_by(statement: &Statement, catalog: &Catalog) -> Result<BTreeSet<ObjectId>> {
    let mut changed = BTreeSet::new();
    let (target, follows) = match statement {
        Statement::Insert(insert) => {
            let updates = |action: &ConflictAction| matches!(action, ConflictAction::Update { .. });
            (&insert.target, insert.conflict.as_ref().is_some_and(|conflict| updates(&conflict.action)))
        }
        Statement::Update(update) => (&update.target, true),
        Statement::Delete(delete) => (&delete.target, true),
        _ => return Ok(changed),
    };
    let target = meant(catalog, &relation(target)?, Rights::DELETE).map(|(table, _)| table);
    let mut open: Vec<Arc<Table>> = target.into_iter().collect();
    while let Some(table) = open.pop() {
        if changed.insert(table.oid) && follows {
            open.extend(table.referenced_by.iter().filter_map(|key| catalog.table_by_oid(key.table).cloned()));
        }
    }
    Ok(changed)
}

/// The WITH of a statement that has changes in it.
fn changing(task: Task<'_>) -> Option<&With> {
    let with = match task {
        Task::Query(query) => query.with.as_ref(),
        Task::Insert(insert) => insert.with.as_ref(),
        Task::Update(update) => update.with.as_ref(),
        Task::Delete(delete) => delete.with.as_ref(),
        _ => None,
    };
    with.filter(|with| has_changes(with))
}

/// The same.
pub(crate) fn changing_with(statement: &Statement) -> Option<&With> {
    match Kind::of(statement).work {
        Work::Transaction(task) => changing(task),
        _ => None,
    }
}

fn has_changes(with: &With) -> bool {
    with.ctes.iter().any(is_change)
}

fn is_change(cte: &Cte) -> bool {
    !matches!(*cte.statement, Statement::Query(_))
}

/// The changes within a WITH, by their names, each with what stands before it in its own WITH.
pub(crate) fn changes(with: &With) -> Result<Vec<(String, Statement)>> {
    let change = |(number, cte): (usize, &Cte)| Ok((cte.name.name.clone(), whole(&cte.statement, with, number)?));
    with.ctes.iter().enumerate().filter(|(_, cte)| is_change(cte)).map(change).collect()
}

/// The first change within a statement's WITH.
pub(crate) fn first_change(with: Option<&With>) -> Option<&Statement> {
    Some(&with?.ctes.iter().find(|cte| is_change(cte))?.statement)
}

/// 0A000
fn refuse_form(with: &With) -> Result<()> {
    match with.recursive {
        true => Err(unsupported("a change within WITH RECURSIVE")),
        false => Ok(()),
    }
}

/// A change, with those of WITH before it in its own WITH.
fn whole(statement: &Statement, with: &With, number: usize) -> Result<Statement> {
    let mut whole = statement.clone();
    let own = match &mut whole {
        Statement::Insert(insert) => &mut insert.with,
        Statement::Update(update) => &mut update.with,
        Statement::Delete(delete) => &mut delete.with,
        _ => return Err(unsupported("this statement within WITH")),
    };
    let before = &with.ctes[..number];
    if own.as_ref().is_some_and(has_changes) {
        let message = "WITH clause containing a data-modifying statement must be at the top level";
        return Err(EngineError::new("0A000", message));
    }
    if own.as_ref().is_some_and(|own| own.recursive || own.ctes.iter().any(|cte| names(before, cte))) {
        return Err(unsupported("this WITH within WITH"));
    }
    let ctes: Vec<Cte> = before.iter().chain(own.iter().flat_map(|own| &own.ctes)).cloned().collect();
    *own = (!ctes.is_empty()).then_some(With { at: with.at, recursive: false, ctes });
    Ok(whole)
}

fn names(before: &[Cte], cte: &Cte) -> bool {
    before.iter().any(|other| other.name.name == cte.name.name)
}

/// The statement without the changes in its WITH, where it is a query that names none of them.
fn apart(task: Task<'_>, with: &With) -> Option<Query> {
    let Task::Query(query) = task else { return None };
    // What is wrong with these is found where the statement is planned with them.
    let repeated = (0..with.ctes.len()).any(|at| names(&with.ctes[..at], &with.ctes[at]));
    if repeated || with.ctes.iter().any(|cte| is_change(cte) && !cte.columns.is_empty()) {
        return None;
    }
    let mut apart = query.clone();
    let kept: Vec<Cte> = with.ctes.iter().filter(|cte| !is_change(cte)).cloned().collect();
    apart.with = (!kept.is_empty()).then(|| With { ctes: kept, ..with.clone() });
    let mut named = false;
    walk(Node::Query(&apart), &mut |node| {
        if let Node::Query(query) = node {
            let mut tables = vec![];
            qualified::tables(query, &mut tables);
            let means = |table: &Name, cte: &Cte| table.parts().len() == 1 && table.last().name == cte.name.name;
            let changes = || with.ctes.iter().filter(|cte| is_change(cte));
            named |= tables.iter().any(|table| changes().any(|cte| means(table, cte)));
        }
        !named
    });
    (!named).then_some(apart)
}

impl Run<'_> {
    /// A statement with changes in its WITH; `None`: it is another one.
    pub(crate) async fn with_changes(&self, task: Task<'_>) -> Result<Option<Done>> {
        let Some(with) = changing(task).filter(|_| self.earlier.is_none()) else { return Ok(None) };
        refuse_form(with)?;
        let mut earlier = Earlier::default();
        self.begin_statement().await; // Invariant 3: the parts take no other.
        let before = match apart(task, with) {
            Some(query) => Some(Box::pin(self.kept(Task::Query(&query), &earlier)).await?),
            None => None,
        };
        for (number, cte) in with.ctes.iter().enumerate().filter(|(_, cte)| is_change(cte)) {
            let change = whole(&cte.statement, with, number)?;
            let (part, rows) = {
                let run = Run { earlier: Some(&earlier), ..*self };
                let changed = match &change {
                    Statement::Insert(insert) => Box::pin(run.insert(insert)).await?,
                    Statement::Update(update) => Box::pin(run.update(update)).await?,
                    Statement::Delete(delete) => Box::pin(run.delete(delete)).await?,
                    _ => unreachable!("it was looked at"),
                };
                self.part(cte.name.at, changed).await?
            };
            earlier.note(&change, &self.cell.lock().await.open().catalog())?;
            earlier.parts.push(part);
            earlier.rows.extend(rows);
        }
        let done = match before {
            Some(done) => done,
            None => Box::pin(self.kept(task, &earlier)).await?,
        };
        self.begin_statement().await;
        self.follow_foreign_keys().await?;
        Ok(Some(done))
    }

    /// The statement that the parts belong to, carried out behind those; its rows are kept.
    async fn kept(&self, task: Task<'_>, earlier: &Earlier) -> Result<Done> {
        let run = Run { earlier: Some(earlier), ..*self };
        Ok(match Box::pin(run.statement(("", task))).await? {
            Done::Rows(stream) => {
                let schema = stream.schema();
                let rows = self.drain(stream).await?;
                // The stream has the rows, and what counts them.
                let batches = futures::stream::iter((0..rows.len()).map(move |at| Ok(rows[at].clone())));
                Done::Rows(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
            }
            other => other,
        })
    }

    /// What a change returns, and its rows.
    async fn part(&self, at: At, changed: Changed) -> Result<(Returned, Option<Collected>)> {
        let Some(stream) = changed.into_rows() else { return Ok((Returned::described(at, None), None)) };
        let described = Returned::described(at, Some(&stream.schema()));
        let rows = self.drain(stream).await?;
        let renamed = rows.iter().map(|batch| {
            let columns = batch.columns().to_vec();
            RecordBatch::try_new(described.schema.clone(), columns).map_err(from_arrow)
        });
        let batches = renamed.collect::<Result<Vec<RecordBatch>>>()?;
        Ok((Returned { batches, ..described }, Some(rows)))
    }
}

impl Sources<'_> {
    /// The changes within WITH, without rows. Notes the types of parameters.
    pub(crate) fn describe_parts(&self, with: &With, types: &mut Vec<Option<DataType>>) -> Result<Vec<Returned>> {
        refuse_form(with)?;
        let mut parts = vec![];
        for (number, cte) in with.ctes.iter().enumerate().filter(|(_, cte)| is_change(cte)) {
            let change = whole(&cte.statement, with, number)?;
            let sources = Sources { parts: &parts, ..*self };
            let described = sources.describe(&change, types).map_err(|error| match error.state.0 {
                "42P18" => unsupported("parameters of this statement with changes within WITH"),
                _ => error,
            })?;
            types.resize(types.len().max(described.parameters.len()), None);
            for (known, of) in types.iter_mut().zip(&described.parameters) {
                known.get_or_insert(*of);
            }
            parts.push(Returned::described(cte.name.at, described.columns.as_deref()));
        }
        Ok(parts)
    }
}
