//! EXPLAIN: the physical plan in PostgreSQL's words and shape; with ANALYZE, also the time and pages that running it
//! took.
//!
//! 1. ANALYZE runs the statement exactly as it runs without EXPLAIN: its changes happen.
//! 2. A node's time is its own, without its children's (PostgreSQL's contains them); a scan's contains waiting for
//!    devices. The root's pages are the whole statement's, changes included; a scan's are its own.
//! 3. A place to read from (see [`terrace_storage::Place`]) is named if something was read from it.
//! 4. With VERBOSE, each node tells its columns. In JSON, joins are told as PostgreSQL tells them: an outer join keeps
//!    the rows of its `Outer` plan. (sqlx finds out there which columns of a statement may be NULL.)
mod columns;
mod show;
#[cfg(test)]
mod tests;
mod tree;

use crate::error::{from_datafusion, unsupported};
use crate::parse::relation;
use crate::statement::changes::{
    assigned, check_filled, check_identities, delete_over, inserted_columns, plain_values, update_over, with_inside,
    with_whole_columns,
};
use crate::statement::describe::Sources;
use crate::statement::lock_rows::refuse_shape;
use crate::statement::lock_rows::within::without_locks;
use crate::statement::options::{switch, text};
use crate::statement::returning::Returning;
use crate::statement::run::Run;
use crate::statement::within::{Earlier, changes, changing_with};
use crate::values::field_of;
use datafusion::arrow::array::{ArrayRef, BinaryViewArray, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use show::Total;
use std::pin::pin;
use std::sync::Arc;
use terrace_engine::catalog::access::Rights;
use terrace_engine::{DataType, EngineError, Result};
use terrace_grammar::statement::{Explain, Query, Statement};
use terrace_storage::{Reads, counting};
use tree::{Actual, Node, Tree, modifying, plain};

/// The options of the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Options {
    analyze: bool,
    verbose: bool,
    buffers: bool,
    json: bool,
    /// `None`: with ANALYZE only.
    summary: Option<bool>,
}

fn is_json(format: &str) -> Result<bool> {
    match format.to_ascii_lowercase().as_str() {
        "text" => Ok(false),
        "json" => Ok(true),
        "xml" | "yaml" => Err(unsupported(format!("EXPLAIN (FORMAT {})", format.to_uppercase()))),
        _ => Err(EngineError::new("22023", format!("unrecognized value for EXPLAIN option \"format\": \"{format}\""))),
    }
}

/// What EXPLAIN answers: lines of text, or one document.
fn answered(json: bool) -> SchemaRef {
    let of = if json { DataType::Json } else { DataType::Text };
    Arc::new(Schema::new(vec![field_of("QUERY PLAN", of, true)]))
}

/// The columns of an EXPLAIN.
pub(crate) fn schema(statement: &Statement) -> Result<SchemaRef> {
    let Statement::Explain(explain) = statement else { unreachable!("EXPLAIN alone returns a plan") };
    Options::of(explain).map(|options| answered(options.json))
}

fn answer(lines: Vec<String>, json: bool) -> SendableRecordBatchStream {
    let column: ArrayRef = match json {
        true => Arc::new(BinaryViewArray::from_iter_values(lines)),
        false => Arc::new(StringArray::from_iter_values(lines)),
    };
    let batch = RecordBatch::try_new(answered(json), vec![column]).expect("a column as the schema says");
    Box::pin(RecordBatchStreamAdapter::new(batch.schema(), stream::iter([Ok(batch)])))
}

/// Whether a statement has a plan. (That of an EXECUTE is any.)
fn has_plan(statement: &Statement) -> bool {
    use Statement::{CreateTableAs, Declare, Delete, Execute, Insert, Query, Update};
    matches!(statement, Query(_) | Insert(_) | Update(_) | Delete(_) | Declare(_) | CreateTableAs(_) | Execute(_))
}

/// Whether the statement is run.
pub(crate) fn analyzes(explain: &Explain) -> Result<bool> {
    Options::of(explain).map(|options| options.analyze)
}

impl Options {
    fn of(explain: &Explain) -> Result<Options> {
        let mut found = Options { analyze: false, verbose: false, buffers: false, json: false, summary: None };
        for option in &explain.options {
            match option.name.name.as_str() {
                "analyze" => found.analyze = switch(option)?,
                "verbose" => found.verbose = switch(option)?,
                "buffers" => found.buffers = switch(option)?,
                "summary" => found.summary = Some(switch(option)?),
                // There are no costs to show, and times are always taken.
                "costs" | "timing" => drop(switch(option)?),
                "format" => found.json = is_json(text(option)?)?,
                known @ ("wal" | "settings" | "generic_plan") => {
                    return Err(unsupported(format!("EXPLAIN ({})", known.to_uppercase())));
                }
                other => return Err(EngineError::new("42601", format!("unrecognized EXPLAIN option \"{other}\""))),
            }
        }
        Ok(found)
    }
}

/// What locks the rows of a query.
const LOCKING: &str = "LockRows";

/// What is executed, and what changes: a verb and a table.
type Planned = (Option<(&'static str, String)>, Option<Arc<dyn ExecutionPlan>>);

impl Run<'_> {
    /// `statement`: what is explained.
    pub(crate) async fn explain(&self, explain: &Explain, statement: &Statement) -> Result<SendableRecordBatchStream> {
        let options = Options::of(explain)?;
        if !has_plan(statement) {
            let line = if options.json { show::UTILITY } else { "Utility statements have no plan structure" };
            return Ok(answer(vec![line.to_owned()], options.json));
        }
        let env = self.engine.env();
        let began = env.now();
        let (root, total) = match options.analyze {
            false => {
                let node = self.explain_unrun(statement, options.verbose).await?;
                (node, Total { planning: env.now().0 - began.0, execution: None })
            }
            true => self.explain_analyze(statement, options).await?,
        };
        let summary = options.summary.unwrap_or(options.analyze);
        let lines = match options.json {
            true => vec![show::json(&root, &total, options.buffers, summary)],
            false => show::text(&root, &total, options.buffers, summary),
        };
        Ok(answer(lines, options.json))
    }

    /// Runs the statement (invariant 1) and shows what it took.
    async fn explain_analyze(&self, statement: &Statement, options: Options) -> Result<(Node, Total)> {
        let env = self.engine.env();
        let began = env.now();
        let captured = Mutex::new(vec![]);
        let run = Run { captured: Some(&captured), ..*self };
        let mut reads = Reads::default();
        let (change, planned, rows) = match statement {
            Statement::Query(query) if !query.locking.is_empty() => {
                return Err(unsupported("EXPLAIN ANALYZE of SELECT FOR UPDATE"));
            }
            Statement::Query(_) => {
                let (_, plan) = self.explain_plan(statement).await?;
                let plan = plan.expect("a query has a plan");
                let planned = env.now();
                let rows = counting(&mut reads, pin!(self.run_out(&plan))).await?;
                captured.lock().push(plan);
                (None, planned, rows)
            }
            Statement::Insert(insert) => {
                let table = relation(&insert.target)?.name;
                let rows = counting(&mut reads, Box::pin(run.insert(insert))).await?.count as u64;
                (Some(("Insert", table)), began, rows)
            }
            Statement::Update(update) => {
                let table = relation(&update.target)?.name;
                let rows = counting(&mut reads, Box::pin(run.update(update))).await?.count as u64;
                (Some(("Update", table)), began, rows)
            }
            Statement::Delete(delete) => {
                let table = relation(&delete.target)?.name;
                let rows = counting(&mut reads, Box::pin(run.delete(delete))).await?.count as u64;
                (Some(("Delete", table)), began, rows)
            }
            _ => return Err(unsupported("EXPLAIN of this statement")),
        };
        let execution = env.now().0 - planned.0;
        // The first plan reads the rows; those after it compute defaults, or evaluate a changed row again.
        let plan = captured.lock().first().cloned();
        let node = plan.map(|plan| Tree::new(true, options.verbose).node(&plan));
        let mut root = root(change, node);
        if root.actual.is_none() {
            root.actual = Some(Actual { rows, nanos: execution });
        }
        // A change is planned while it is executed, so there is no planning time.
        Ok((root, Total { planning: planned.0 - began.0, execution: Some((execution, rows, reads)) }))
    }

    /// The plan of a statement that is not run, with those of the changes within its WITH.
    async fn explain_unrun(&self, statement: &Statement, verbose: bool) -> Result<Node> {
        let node = |(change, plan): Planned| root(change, plan.map(|plan| Tree::new(false, verbose).node(&plan)));
        let Some(with) = changing_with(statement) else { return Ok(node(self.explain_plan(statement).await?)) };
        let catalog = self.begin_statement().await;
        let sources = Sources { state: self.state, catalog: &catalog, info: self.info, tree: self.tree, parts: &[] };
        let mut types: Vec<Option<DataType>> = self.types.iter().copied().map(Some).collect();
        let returned = sources.describe_parts(with, &mut types)?;
        let (mut earlier, mut parts) = (Earlier::default(), vec![]);
        for ((name, change), returned) in changes(with)?.into_iter().zip(returned) {
            let run = Run { earlier: Some(&earlier), ..*self };
            let mut part = node(Box::pin(run.explain_plan(&change)).await?);
            part.role = Some("InitPlan");
            part.details.push(("Subplan Name", format!("CTE {name}")));
            parts.push(part);
            earlier.planned(&change, returned, &catalog)?;
        }
        let run = Run { earlier: Some(&earlier), ..*self };
        let mut whole = node(Box::pin(run.explain_plan(statement)).await?);
        whole.children.append(&mut parts);
        Ok(whole)
    }

    /// Runs a plan to its end; answers the number of rows.
    async fn run_out(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<u64> {
        let mut stream = self.stream(plan.clone(), None)?;
        let mut rows = 0;
        while let Some(batch) = self.cancel.run(async { Ok(stream.next().await) }).await? {
            rows += batch.map_err(from_datafusion)?.num_rows() as u64;
        }
        Ok(rows)
    }

    /// Plans without running.
    async fn explain_plan(&self, statement: &Statement) -> Result<Planned> {
        let (change, plan) = match statement {
            Statement::Query(query) if !query.locking.is_empty() => {
                self.permit_locking(query).await?;
                let unlocked = Query { locking: vec![], ..Query::clone(query) };
                let plan = self.plan_unrun(&unlocked).await?;
                refuse_shape(query, &plan)?;
                (Some((LOCKING, String::new())), Some(plan))
            }
            Statement::Query(query) => (None, Some(self.plan_unrun(query).await?)),
            Statement::Update(update) => {
                let (table, called) = self.aimed(&update.target, update.alias.as_ref(), Rights::UPDATE).await?;
                let update = &*called.update(update, &table)?;
                let (assigned, filter) = (assigned(&update.set, &table)?, update.filter.as_ref().map(without_locks));
                let positions: Vec<usize> = assigned.iter().map(|(at, _)| *at).collect();
                self.permit_changed((&table, &called), Rights::UPDATE, &positions).await?;
                self.permit_returning(
                    (&table, &called),
                    Returning { items: &update.returning, with: None, from: &update.from },
                )
                .await?;
                let over = update_over(update, (&table, &called), filter.as_ref(), &assigned);
                (Some(("Update", table.name.clone())), Some(self.plan_over(&over).await?))
            }
            Statement::Delete(delete) => {
                let (table, called) = self.aimed(&delete.target, delete.alias.as_ref(), Rights::DELETE).await?;
                self.permit_returning(
                    (&table, &called),
                    Returning { items: &delete.returning, with: None, from: &delete.using },
                )
                .await?;
                let filter = delete.filter.as_ref().map(without_locks);
                let over = delete_over(delete, (&table, &called), filter.as_ref());
                (Some(("Delete", table.name.clone())), Some(self.plan_over(&over).await?))
            }
            Statement::Insert(insert) => {
                let insert = &*with_inside(insert)?;
                let (table, called) = self.aimed(&insert.target, insert.alias.as_ref(), Rights::INSERT).await?;
                let insert = &*called.insert(insert, &table)?;
                let insert = &*with_whole_columns(insert, &table)?;
                let columns = inserted_columns(&insert.columns, (&table, &called))?;
                self.permit_rest(insert, (&table, &called)).await?;
                let (width, plan) = match &insert.source {
                    None => (0, None),
                    Some(source) => match plain_values(source) {
                        Some(rows) => (check_filled(insert, &table, &columns, rows)?, None),
                        None => {
                            let plan = self.plan_unrun(source).await?;
                            let filled = columns.get(..plan.schema().fields().len()).unwrap_or(&columns);
                            check_identities(insert, &table, filled, None)?;
                            (plan.schema().fields().len(), Some(plan))
                        }
                    },
                };
                if let Some(through) = called.through.as_ref().filter(|_| insert.columns.is_empty()) {
                    through.permit_width(width, &table)?;
                }
                let columns = &columns[..width.min(columns.len())];
                self.permit_changed((&table, &called), Rights::INSERT, columns).await?;
                (Some(("Insert", table.name.clone())), plan)
            }
            _ => return Err(unsupported("EXPLAIN of this statement")),
        };
        let plan = match plan {
            Some(plan) => Some(self.physical(&plan).await?),
            None => None,
        };
        Ok((change, plan))
    }
}

fn root(change: Option<(&'static str, String)>, plan: Option<Node>) -> Node {
    match (change, plan) {
        (Some((LOCKING, _)), Some(plan)) => Node { output: plan.output.clone(), ..plain(LOCKING, vec![plan]) },
        (Some((verb, table)), plan) => modifying(verb, &table, plan.or_else(|| Some(values()))),
        (None, Some(plan)) => plan,
        (None, None) => values(),
    }
}

/// Rows that the statement itself gives.
fn values() -> Node {
    plain("Values", vec![])
}
