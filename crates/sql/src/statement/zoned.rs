//! Times in expressions that the catalogue keeps.
//!
//! 1. A constant is read when its expression is made. So one that is read as a timestamp with time zone, and states no
//!    zone, is kept as the time that it was in the zone of that session.
//! 2. Such a constant is found by how the expression is planned: with the time in UTC in its place the plan is the same
//!    in this zone, and another one elsewhere.
//! 3. A constant that DateStyle or IntervalStyle says how to read is refused (0A000): what is kept is read in any
//!    style.
//! 4. A word of the clock (`now`, `today`) is kept as the time that it was when the expression was made.
use crate::parse::qualified::kept;
use crate::parse::stored::{Stored, has_open_times, open_times};
use crate::plan::bind::over::{Over, Part, Wanted};
use crate::statement::changes::alone_over;
use crate::statement::run::Run;
use crate::through::Called;
use std::sync::Arc;
use terrace_engine::types::{Style, Zone};
use terrace_engine::{Check, ColumnDef, DataType, Result, Table};
use terrace_grammar::statement::{ExprKind, Node};
use terrace_storage::ObjectId;

/// What an expression is kept for.
#[derive(Clone, Copy)]
enum Kept<'k> {
    Check(&'k Arc<Table>),
    Default(&'k ColumnDef),
}

/// Whether its values are read by the clock.
fn is_time(of: DataType) -> bool {
    matches!(of, DataType::Date | DataType::Time | DataType::Timestamp | DataType::Timestamptz)
}

impl Run<'_> {
    /// A default as it is kept: with schemas and times.
    pub(crate) async fn kept_default(&self, column: &ColumnDef, text: &str) -> Result<String> {
        let text = kept(text, &*self.begin_statement().await);
        let text = self.with_clock(Kept::Default(column), &text).await;
        self.with_times(Kept::Default(column), &text).await
    }

    /// A condition, or a value of an index, as it is kept.
    pub(crate) async fn kept_check(&self, table: &Arc<Table>, text: &str) -> Result<String> {
        let text = kept(text, &*self.begin_statement().await);
        let text = self.with_clock(Kept::Check(table), &text).await;
        self.with_times(Kept::Check(table), &text).await
    }

    /// The text of an expression with the times that its words of the clock mean now (invariant 4).
    async fn with_clock(&self, of: Kept<'_>, text: &str) -> String {
        let words = |text: &str| Stored::read(text).map_or(vec![], |stored| stored.clock_words());
        let mut text = text.to_owned();
        for number in (0..words(&text).len()).rev() {
            let Some(stored) = Stored::read(&text) else { break };
            let edited = stored.edited(vec![stored.clock_words().swap_remove(number)]);
            let literal = matches!(stored.expr().kind, ExprKind::Literal(_));
            let whole = literal && matches!(of, Kept::Default(column) if is_time(column.data_type));
            let here = Style::current();
            let planned = if whole { None } else { self.planned(of, &text, here).await };
            if whole || (planned.is_some() && planned == self.planned(of, &edited, here).await) {
                text = edited;
            }
        }
        text
    }

    /// The text of an expression with its times (invariants 1 and 3).
    async fn with_times(&self, of: Kept<'_>, text: &str) -> Result<String> {
        let times = |text: &str| Stored::read(text).map_or(vec![], |stored| stored.times());
        let mut text = text.to_owned();
        // From the last one on, for what is changed is none of them any more.
        for number in (0..times(&text).len()).rev() {
            let Some(stored) = Stored::read(&text) else { break };
            let edited = stored.edited(vec![stored.times().swap_remove(number)]);
            let literal = matches!(stored.expr().kind, ExprKind::Literal(_));
            let whole = matches!(of, Kept::Default(column) if column.data_type == DataType::Timestamptz) && literal;
            if whole || self.is_time(of, &text, &edited).await {
                text = edited;
            }
        }
        if Stored::read(&text).is_some_and(|stored| has_open_times(Node::Expr(stored.expr()))) {
            let here = Style::current();
            let planned = self.planned(of, &text, here).await;
            for style in here.readings() {
                if self.planned(of, &text, style).await != planned {
                    return Err(open_times());
                }
            }
        }
        Ok(text)
    }

    /// Invariant 2.
    async fn is_time(&self, of: Kept<'_>, text: &str, edited: &str) -> bool {
        let here = Style::current();
        let hours = |hours: i32| Zone::Fixed(hours * 3600);
        let elsewhere = Style { zone: if here.zone == hours(1) { hours(2) } else { hours(1) }, ..here };
        let planned = self.planned(of, text, here).await;
        planned.is_some()
            && planned == self.planned(of, edited, here).await
            && self.planned(of, text, elsewhere).await != self.planned(of, edited, elsewhere).await
    }

    /// How an expression is planned in a style.
    async fn planned(&self, of: Kept<'_>, text: &str, style: Style) -> Option<String> {
        let plan = match of {
            Kept::Check(table) => {
                let check = Check { name: String::new(), sql: text.to_owned() };
                style.over(Box::pin(self.check_plan(table, &[check]))).await
            }
            Kept::Default(column) => {
                let stored = Stored::read(text)?;
                let table = Arc::new(Table::new(ObjectId(0), "defaults".into(), vec![column.clone()], vec![]));
                let called = Called::so(&table.name);
                let wanted = vec![Wanted::Value { column, value: stored.expr() }];
                let over = Over { kept: true, ..alone_over(&table, &called, Part::Default, wanted) };
                style.over(Box::pin(self.plan_over_alone(&over))).await
            }
        };
        Some(plan.ok()?.display_indent().to_string())
    }
}
