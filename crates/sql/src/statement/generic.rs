//! Plans of a prepared statement that are kept from one of its runs to the next ([`crate::plan::generic`]). To plan a
//! statement costs many times what running it by an index does.
//!
//! 1. A plan is kept for one version of the catalogue, one style and one role. Another one's is dropped.
//! 2. A statement's first run keeps nothing: many statements run once.
//! 3. A plan that is kept runs after its tables have been locked, on the definitions that it was made for, and only
//!    where the transaction may use all indexes of these tables. In each other case the statement is planned.
use crate::panics::caught;
use crate::plan::generic::Generic;
use crate::plan::origins::Origins;
use crate::plan::planner::{Asked, Planned, task};
use crate::statement::run::{Collected, PLANNED_TO_RUN, Run};
use crate::transaction::{OneRow, StatementContext};
use crate::values::to_scalar;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::scalar::ScalarValue;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use terrace_engine::types::{Style, clock};
use terrace_engine::{DataType, Datum, Result, RowBuf};

/// What a plan takes of the budget of queries, in bytes; about what one of a table and some expressions does.
const SIZE: usize = 32 << 10;

/// Plans that one session keeps.
const MOST: usize = 64;

/// Which part of a statement a plan is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Slot {
    Query,
    /// SELECT ... FOR UPDATE.
    Locking,
    /// The rows that UPDATE and DELETE change, and what they become.
    Changes,
    /// What is computed in VALUES.
    Values,
    Returning,
}

/// A part's plan.
pub(crate) enum Plan {
    /// For this run, with its values.
    Once(LogicalPlan, Origins),
    Generic(Arc<Generic>),
}

impl Plan {
    /// One whose columns no client is told.
    pub(crate) fn once(plan: LogicalPlan) -> Plan {
        Plan::Once(plan, Origins::default())
    }

    /// Where its columns come from.
    pub(crate) fn origins(&self) -> &Origins {
        match self {
            Plan::Once(_, origins) => origins,
            Plan::Generic(generic) => &generic.origins,
        }
    }

    pub(crate) fn logical(&self) -> &LogicalPlan {
        match self {
            Plan::Once(plan, _) => plan,
            Plan::Generic(generic) => &generic.plan,
        }
    }
}

/// What is known of a part.
enum Known {
    /// It has run once.
    Seen,
    /// It has no generic plan.
    Never,
    Plan {
        generic: Arc<Generic>,
        _counted: Counted,
    },
}

/// One of the plans that a session keeps.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    /// `None`: it keeps [`MOST`].
    fn another(count: &Arc<AtomicUsize>) -> Option<Counted> {
        let more = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < MOST).then_some(n + 1));
        more.ok().map(|_| Counted(count.clone()))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What was found out by making a generic plan.
fn known(made: Result<Option<Arc<Generic>>>, counted: Counted) -> Result<Known> {
    match made {
        Ok(Some(generic)) => Ok(Known::Plan { generic, _counted: counted }),
        Err(error) if matches!(error.state.0, "53200" | "57014") => Err(error),
        // With its values in it, it can be planned.
        Ok(None) | Err(_) => Ok(Known::Never),
    }
}

/// What plans are kept for.
#[derive(Clone, PartialEq)]
struct Of {
    version: u64,
    style: Style,
    role: Option<Arc<str>>,
}

/// The plans of one statement.
pub(crate) struct Generics {
    kept: Mutex<(Option<Of>, BTreeMap<Slot, Known>)>,
    /// How many the session keeps.
    count: Arc<AtomicUsize>,
}

impl Generics {
    /// Of a session that keeps so many.
    pub(crate) fn of(count: &Arc<AtomicUsize>) -> Generics {
        Generics { kept: Mutex::default(), count: count.clone() }
    }

    /// Of a statement by key, whose plans are hardly ever wanted: none are kept.
    pub(crate) fn none() -> Generics {
        Generics::of(&Arc::new(AtomicUsize::new(MOST)))
    }

    /// Whether its plans read little.
    pub(crate) fn are_short(&self) -> bool {
        let (_, known) = &*self.kept.lock();
        let short = |known: &Known| matches!(known, Known::Plan { generic, .. } if generic.is_short);
        !known.is_empty() && known.values().all(short)
    }

    /// A part's plan, if there is one; `true`: one may be made.
    fn find(&self, slot: Slot, of: &Of) -> (Option<Arc<Generic>>, bool) {
        let (kept_for, known) = &mut *self.kept.lock();
        if kept_for.as_ref() != Some(of) {
            known.clear();
            *kept_for = Some(of.clone());
        }
        match known.get(&slot) {
            Some(Known::Plan { generic, .. }) => (Some(generic.clone()), false),
            Some(Known::Seen) => (None, true),
            Some(Known::Never) => (None, false),
            None => {
                known.insert(slot, Known::Seen);
                (None, false)
            }
        }
    }

    /// Keeps what was found out, if plans are still kept for that.
    fn keep(&self, slot: Slot, of: &Of, found: Known) {
        let (kept_for, known) = &mut *self.kept.lock();
        if kept_for.as_ref() == Some(of) {
            known.insert(slot, found);
        }
    }
}

impl Run<'_> {
    /// Plans a part of the statement, or takes the plan that is kept; and locks what it reads.
    pub(crate) async fn plan_again(&self, slot: Slot, asked: Asked<'_>) -> Result<Plan> {
        let Some(generics) = self.generics.filter(|_| self.earlier.is_none() && self.captured.is_none()) else {
            return self.plan_once(asked).await;
        };
        loop {
            let version = self.engine.catalog().version();
            let of = self.kept_for().await;
            let (found, makes) = generics.find(slot, &of);
            let Some(generic) = found else {
                let planned = self.planned_asked(asked, PLANNED_TO_RUN).await?;
                // Nothing was defined or granted while it was planned.
                if makes && of == self.kept_for().await {
                    let known = self.generic(&planned, generics).await?;
                    generics.keep(slot, &of, known);
                }
                return Ok(Plan::Once(self.bind(planned.plan)?, planned.origins));
            };
            let mut locked = Ok(());
            for table in &generic.tables {
                locked = self.lock(table, false).await;
                if locked.is_err() {
                    break;
                }
            }
            if self.engine.catalog().version() != version {
                locked.or_else(|e| if e.state.0 == "42P01" { Ok(()) } else { Err(e) })?;
                continue; // Invariant 3.
            }
            locked?;
            return match self.may_use_indexes(&generic).await {
                true => Ok(Plan::Generic(generic)),
                false => self.plan_once(asked).await,
            };
        }
    }

    async fn plan_once(&self, asked: Asked<'_>) -> Result<Plan> {
        let planned = self.planned_asked(asked, PLANNED_TO_RUN).await?;
        Ok(Plan::Once(self.bind(planned.plan)?, planned.origins))
    }

    /// Invariant 1.
    async fn kept_for(&self) -> Of {
        let catalog = self.begin_statement().await;
        let role = self.info.system.as_ref().map(|system| system.settings.lock().acting());
        // Constants are read in the style that the statement was parsed in, and that stays.
        Of { version: catalog.version(), style: Style::current(), role }
    }

    async fn generic(&self, planned: &Planned, generics: &Generics) -> Result<Known> {
        let memory = self.memory("generic plans");
        let Some(counted) = Counted::another(&generics.count) else { return Ok(Known::Never) };
        if memory.try_grow(SIZE).is_err() {
            return Ok(Known::Seen);
        }
        let made = Box::pin(caught(Generic::of(planned, self.state.get(), memory)));
        let made = Box::pin(crate::memory::planning(made));
        match clock::over(self.state.now(), made).await {
            // A constant is a time of the clock.
            (Ok(_), true) => Ok(Known::Never),
            (made, _) => known(made, counted),
        }
    }

    async fn may_use_indexes(&self, generic: &Generic) -> bool {
        let mut slot = self.cell.lock().await;
        let txn = slot.open();
        generic.read.iter().flat_map(|table| &table.indexes).all(|index| txn.can_use_index(index))
    }

    /// Runs a part's plan. `given`: the rows that it was told would be given.
    pub(crate) async fn stream_again(
        &self,
        plan: &Plan,
        targets: impl IntoIterator<Item = OneRow>,
        given: Arc<Vec<RowBuf>>,
    ) -> Result<SendableRecordBatchStream> {
        let generic = match plan {
            Plan::Once(plan, _) => return self.stream_once(plan, targets, given).await,
            Plan::Generic(generic) => generic,
        };
        let now = to_scalar(&Datum::Timestamptz(self.state.now()), DataType::Timestamptz);
        let parameters = self.parameters.iter().zip(self.types).map(|(value, of)| to_scalar(value, *of));
        let values: Vec<ScalarValue> = [now].into_iter().chain(parameters).collect();
        if !generic.takes(&values) {
            return self.stream_once(&self.bind(generic.plan.clone())?, targets, given).await;
        }
        let targets = targets.into_iter().collect();
        let (cell, cancel) = (self.cell.clone(), self.cancel.clone());
        let gives_way = generic.is_short;
        let context = StatementContext { cell, number: self.number, cancel, targets, given, gives_way };
        caught(generic.run(values, || self.state.get(), task(self.state.base(), context))).await
    }

    async fn stream_once(
        &self,
        plan: &LogicalPlan,
        targets: impl IntoIterator<Item = OneRow>,
        given: Arc<Vec<RowBuf>>,
    ) -> Result<SendableRecordBatchStream> {
        let physical = self.physical(plan).await?;
        if let Some(captured) = self.captured {
            captured.lock().push(physical.clone());
        }
        self.stream_given(physical, targets, given)
    }

    /// All rows of a part's plan.
    pub(crate) async fn collect_again(
        &self,
        plan: &Plan,
        targets: impl IntoIterator<Item = OneRow>,
    ) -> Result<Collected> {
        let stream = self.stream_again(plan, targets, Arc::default()).await?;
        self.drain(stream).await
    }
}
