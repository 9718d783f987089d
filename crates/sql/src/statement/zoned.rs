//! Times in expressions that the catalogue keeps.
//!
//! 1. A constant is read when its expression is made. So one that is read as a timestamp with time zone, and states no
//!    zone, is kept as the time that it was in the zone of that session.
//! 2. Such a constant is found by how the expression is planned: with the time in UTC in its place the plan is the same
//!    in this zone, and another one elsewhere.
//! 3. A constant that DateStyle or IntervalStyle says how to read is refused (0A000): what is kept is read in any
//!    style.
//! 4. A word of the clock (`now`, `today`) is kept as the time that it was when the expression was made.
use crate::parse::qualified::{kept, types_of};
use crate::parse::stored::{Stored, has_open_rows, has_open_times, open_times};
use crate::plan::bind::over::{Over, Part, Rows, Wanted};
use crate::statement::changes::alone_over;
use crate::statement::checks::checking_over;
use crate::statement::run::Run;
use crate::through::Called;
use datafusion::logical_expr::LogicalPlan;
use std::sync::Arc;
use terrace_engine::types::{Style, Zone};
use terrace_engine::{Check, ColumnDef, DataType, Result, Table};
use terrace_grammar::statement::{ExprKind, Item, Literal, Node};
use terrace_storage::ObjectId;

/// What an expression is kept for.
#[derive(Clone, Copy)]
enum Kept<'k> {
    /// A condition.
    Check(&'k Arc<Table>),
    /// A value of any type.
    Key(&'k Arc<Table>),
    /// What a column gets in each row.
    Generated(&'k Arc<Table>, &'k ColumnDef),
    Default(&'k ColumnDef),
}

impl<'k> Kept<'k> {
    /// The column whose value it is.
    fn column(self) -> Option<&'k ColumnDef> {
        match self {
            Kept::Check(_) | Kept::Key(_) => None,
            Kept::Generated(_, column) | Kept::Default(column) => Some(column),
        }
    }
}

/// Whether its values are read by the clock.
fn is_time(of: DataType) -> bool {
    matches!(of, DataType::Date | DataType::Time | DataType::Timestamp | DataType::Timestamptz)
}

impl Run<'_> {
    /// A default as it is kept: with schemas and times.
    pub(crate) async fn kept_default(&self, column: &ColumnDef, text: &str) -> Result<String> {
        self.kept_of(Kept::Default(column), text).await
    }

    /// A condition as it is kept.
    pub(crate) async fn kept_check(&self, table: &Arc<Table>, text: &str) -> Result<String> {
        self.kept_of(Kept::Check(table), text).await
    }

    /// A value of an index.
    pub(crate) async fn kept_key(&self, table: &Arc<Table>, text: &str) -> Result<String> {
        self.kept_of(Kept::Key(table), text).await
    }

    /// The expression of a generated column.
    pub(crate) async fn kept_generated(&self, table: &Arc<Table>, at: usize, text: &str) -> Result<String> {
        self.kept_of(Kept::Generated(table, &table.columns[at]), text).await
    }

    async fn kept_of(&self, of: Kept<'_>, text: &str) -> Result<String> {
        let catalog = self.begin_statement().await;
        if let Some(stored) = Stored::read(text) {
            types_of(Node::Expr(stored.expr())).into_iter().try_for_each(|of| self.info.permit_type(&catalog, of))?;
        }
        let text = kept(text, &catalog);
        let text = self.with_clock(of, &text).await;
        self.with_times(of, &text).await
    }

    /// The text of an expression with the times that its words of the clock mean now (invariant 4).
    async fn with_clock(&self, of: Kept<'_>, text: &str) -> String {
        let words = |text: &str| Stored::read(text).map_or(vec![], |stored| stored.clock_words());
        let mut text = text.to_owned();
        for number in (0..words(&text).len()).rev() {
            let Some(stored) = Stored::read(&text) else { break };
            let edited = stored.edited(vec![stored.clock_words().swap_remove(number)]);
            let literal = matches!(stored.expr().kind, ExprKind::Literal(_));
            let whole = literal && of.column().is_some_and(|column| is_time(column.data_type));
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
            let whole = literal && of.column().is_some_and(|column| column.data_type == DataType::Timestamptz);
            if whole || self.is_time(of, &text, &edited).await {
                text = edited;
            }
        }
        if let Some(stored) = Stored::read(&text)
            && has_open_times(Node::Expr(stored.expr()))
        {
            if has_open_rows(Node::Expr(stored.expr())) {
                return Err(open_times());
            }
            let here = Style::current();
            let planned = self.planned(of, &text, here).await;
            let alone = alone_of(of, &stored);
            let read = || alone.map(|(of, literal)| of.parse(literal).ok());
            for style in here.readings() {
                if self.planned(of, &text, style).await != planned || style.scope(read) != here.scope(read) {
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
            Kept::Key(table) => {
                let item = Item { expr: Stored::read(text)?.expr().clone(), alias: None };
                style.over(Box::pin(self.value_plan(table, Wanted::Item(&item)))).await
            }
            Kept::Generated(table, column) => {
                let stored = Stored::read(text)?;
                let wanted = Wanted::Value { column, value: stored.expr() };
                style.over(Box::pin(self.value_plan(table, wanted))).await
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

    async fn value_plan(&self, table: &Arc<Table>, wanted: Wanted<'_>) -> Result<LogicalPlan> {
        let called = Called::so(&table.name);
        let part = if matches!(wanted, Wanted::Value { .. }) { Part::Generated } else { Part::Check };
        let over = Over { part, ..checking_over((table, &called), Rows::Given, vec![wanted]) };
        self.plan_over_alone(&over).await
    }
}

/// A constant that is all of a column's value: it is read as the column's type when the value is needed, so no plan
/// tells how.
fn alone_of<'s>(of: Kept<'_>, stored: &'s Stored) -> Option<(DataType, &'s str)> {
    match (of.column(), &stored.expr().kind) {
        (Some(column), ExprKind::Literal(Literal::Text(text))) => Some((column.data_type, text)),
        _ => None,
    }
}
