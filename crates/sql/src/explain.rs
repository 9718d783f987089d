//! EXPLAIN: the physical plan as DataFusion shows it, one line a row.
use crate::dml::{delete_query, delete_target, update_query, update_target};
use crate::error::{from_datafusion, unsupported};
use crate::insert::{insert_target, plain_values};
use crate::router::{modified, text_stream};
use crate::run::Run;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::sql::sqlparser::ast::{DescribeAlias, Statement};
use futures::StreamExt;
use terrace_engine::{EngineError, Result};

impl Run<'_> {
    pub(crate) async fn explain(&self, explain: &Statement) -> Result<SendableRecordBatchStream> {
        let Statement::Explain { describe_alias, analyze, verbose, query_plan, estimate, statement, format, options } =
            explain
        else {
            return Err(EngineError::new("XX000", "not an EXPLAIN"));
        };
        if *describe_alias != DescribeAlias::Explain
            || *query_plan
            || *estimate
            || format.is_some()
            || options.is_some()
        {
            return Err(unsupported("this form of EXPLAIN"));
        }
        if *analyze && !matches!(statement.as_ref(), Statement::Query(_)) {
            return Err(unsupported("EXPLAIN ANALYZE of anything but SELECT"));
        }
        let (heading, plan) = match statement.as_ref() {
            query @ Statement::Query(_) => (None, self.plan(query, None).await?),
            Statement::Update(update) => {
                let target = update_target(update)?;
                let table = self.write_table(&target.name).await?;
                let (query, _) = update_query(update, &target, &table)?;
                (Some(modified(&table, "Update")), self.plan(&query, Some(&table)).await?)
            }
            Statement::Delete(delete) => {
                let target = delete_target(delete)?;
                let table = self.write_table(&target.name).await?;
                (
                    Some(modified(&table, "Delete")),
                    self.plan(&delete_query(delete, &target, &table), Some(&table)).await?,
                )
            }
            Statement::Insert(insert) => {
                let table = self.write_table(&insert_target(insert)?).await?;
                let heading = modified(&table, "Insert");
                match insert.source.as_deref() {
                    Some(source) if plain_values(source).is_none() => {
                        (Some(heading), self.plan(&Statement::Query(Box::new(source.clone())), None).await?)
                    }
                    _ => return Ok(text_stream("QUERY PLAN", vec![heading, "  Values".into()])),
                }
            }
            _ => return Err(unsupported("EXPLAIN of this statement")),
        };
        let physical = self.physical(&plan).await?;
        if *analyze {
            let mut rows = self.stream(physical.clone(), None)?;
            while let Some(batch) = self.cancel.run(async { Ok(rows.next().await) }).await? {
                batch.map_err(from_datafusion)?;
            }
        }
        let display = match *analyze {
            true => DisplayableExecutionPlan::with_metrics(physical.as_ref()),
            false => DisplayableExecutionPlan::new(physical.as_ref()),
        };
        let indent = if heading.is_some() { "  " } else { "" };
        let text = display.indent(*verbose).to_string().replace('\0', "");
        let lines = text.lines().map(|line| format!("{indent}{line}"));
        Ok(text_stream("QUERY PLAN", heading.into_iter().chain(lines).collect()))
    }
}
