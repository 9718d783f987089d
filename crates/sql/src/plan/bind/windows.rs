//! Windows: `OVER`, and the WINDOW clause.
//!
//! 1. `OVER (w ORDER BY ...)` takes PARTITION BY and ORDER BY from the window w, and `OVER w` is the window.
//! 2. What a window of the WINDOW clause names has to be there, whether a function uses it or not.
//! 3. Windows are computed above the groups; each becomes a column.
use super::group::{collected, replaced};
use super::scope::{Clause, Scope};
use super::select::{Order, Parts};
use super::{Binder, Result, types, unsupported, wrong};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::Sort as By;
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, WindowFrame, WindowFrameBound, WindowFrameUnits,
};
use terrace_grammar::statement::{
    self as tree, At, Exclude, ExprKind, Frame, FrameBound, Ident, Literal, NamedWindow, Over, Units, Window,
};

/// A window that is bound.
#[derive(Clone)]
pub(super) struct Defined {
    pub(super) partition: Vec<Expr>,
    pub(super) order: Vec<By>,
    pub(super) frame: Option<WindowFrame>,
}

impl Binder<'_> {
    /// The WINDOW clause. Answers what its windows name.
    pub(super) fn named_windows(&self, windows: &[NamedWindow], scope: &Scope<'_>) -> Result<Vec<Expr>> {
        let mut named = vec![];
        for NamedWindow { name, window } in windows {
            if scope.windows.borrow().iter().any(|(known, _)| *known == name.name) {
                return wrong(window.at, "42P20", format!("window \"{}\" is already defined", name.name));
            }
            let defined = self.defined(window, scope)?;
            named.extend(defined.partition.iter().cloned());
            named.extend(defined.order.iter().map(|by| by.expr.clone()));
            scope.windows.borrow_mut().push((name.name.clone(), defined));
        }
        Ok(named)
    }

    pub(super) fn over(&self, over: &Over, scope: &Scope<'_>) -> Result<Defined> {
        match over {
            Over::Name(name) => find(name, scope),
            Over::Window(window) => scope.within(Clause::Definition, || self.defined(window, scope)),
        }
    }

    fn defined(&self, window: &Window, scope: &Scope<'_>) -> Result<Defined> {
        let base = match &window.base {
            Some(name) => Some((name, find(name, scope)?)),
            None => None,
        };
        // A constant makes no partitions.
        let partition = window.partition.iter().filter(|expr| !matches!(expr.kind, ExprKind::Literal(_)));
        let partition = partition.map(|expr| self.expr(expr, scope)).collect::<Result<Vec<Expr>>>()?;
        let order = window.order.iter().map(|by| Ok(Order::of(by)?.sort(self.expr(&by.expr, scope)?)));
        let mut defined = Defined { partition, order: order.collect::<Result<_>>()?, frame: None };
        if let Some((name, base)) = base {
            let refused = |message: String| wrong(name.at, "42P20", message);
            if !window.partition.is_empty() {
                return refused(format!("cannot override PARTITION BY clause of window \"{}\"", name.name));
            }
            if !defined.order.is_empty() && !base.order.is_empty() {
                return refused(format!("cannot override ORDER BY clause of window \"{}\"", name.name));
            }
            if base.frame.is_some() {
                return refused(format!("cannot copy window \"{}\" because it has a frame clause", name.name));
            }
            defined.partition = base.partition;
            if defined.order.is_empty() {
                defined.order = base.order;
            }
        }
        if let Some(frame) = &window.frame {
            let made = made(frame, window.at)?;
            if made.units == WindowFrameUnits::Groups && defined.order.is_empty() {
                return wrong(window.at, "42P20", "GROUPS mode requires an ORDER BY clause");
            }
            let offset = frame_has_offset(frame);
            if made.units == WindowFrameUnits::Range && offset && defined.order.len() != 1 {
                let message = "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column";
                return wrong(window.at, "42P20", message);
            }
            made.regularize_order_bys(&mut defined.order)?;
            defined.frame = Some(made);
        }
        Ok(defined)
    }

    /// Invariant 3.
    pub(super) fn windowed(&self, plan: LogicalPlan, parts: &mut Parts) -> Result<LogicalPlan> {
        let windows = collected(parts, &|expr| matches!(expr, Expr::WindowFunction(_)))?;
        if windows.is_empty() {
            return Ok(plan);
        }
        let mut names: Vec<String> = plan.schema().fields().iter().map(|field| field.name().clone()).collect();
        let (mut plain, mut alike, mut known) = (vec![], vec![], vec![]);
        for window in windows {
            let name = window.schema_name().to_string();
            // DataFusion leaves casts out of names: what differs in one only gets a name of its own.
            let own = if names.contains(&name) { self.column_name(&name) } else { name.clone() };
            let column = Expr::Column(datafusion::common::Column::new_unqualified(own.clone()));
            known.push((window.clone(), column));
            match own == name {
                true => plain.push(window),
                false => alike.push(window.alias(&own)),
            }
            debug_assert!(!names.contains(&own), "{own} is one column's name");
            names.push(own);
        }
        assert_eq!(known.len(), plain.len() + alike.len(), "invariant 3: a window becomes a column");
        let mut plan = if plain.is_empty() { plan } else { LogicalPlanBuilder::window_plan(plan, plain)? };
        for window in alike {
            plan = LogicalPlanBuilder::from(plan).window(vec![window])?.build()?;
        }
        parts.change(&mut |expr| replaced(expr, &known))?;
        Ok(plan)
    }
}

fn find(name: &Ident, scope: &Scope<'_>) -> Result<Defined> {
    match scope.windows.borrow().iter().find(|(known, _)| *known == name.name) {
        Some((_, defined)) => Ok(defined.clone()),
        None => wrong(name.at, "42704", format!("window \"{}\" does not exist", name.name)),
    }
}

fn frame_has_offset(frame: &Frame) -> bool {
    let offset = |bound: &FrameBound| matches!(bound, FrameBound::Preceding(_) | FrameBound::Following(_));
    offset(&frame.start) || offset(&frame.end)
}

fn made(frame: &Frame, at: At) -> Result<WindowFrame> {
    if frame.exclude != Exclude::NoOthers {
        return unsupported("EXCLUDE in a frame");
    }
    let units = match frame.units {
        Units::Rows => WindowFrameUnits::Rows,
        Units::Range => WindowFrameUnits::Range,
        Units::Groups => WindowFrameUnits::Groups,
    };
    let refused = |message: &str| wrong(at, "42P20", message);
    match (&frame.start, &frame.end) {
        (FrameBound::UnboundedFollowing, _) => return refused("frame start cannot be UNBOUNDED FOLLOWING"),
        (_, FrameBound::UnboundedPreceding) => return refused("frame end cannot be UNBOUNDED PRECEDING"),
        (FrameBound::CurrentRow, FrameBound::Preceding(_)) => {
            return refused("frame starting from current row cannot have preceding rows");
        }
        (FrameBound::Following(_), FrameBound::Preceding(_)) => {
            return refused("frame starting from following row cannot have preceding rows");
        }
        (FrameBound::Following(_), FrameBound::CurrentRow) => {
            return refused("frame starting from following row cannot end with current row");
        }
        _ => {}
    }
    Ok(WindowFrame::new_bounds(units, bound(&frame.start, frame.units)?, bound(&frame.end, frame.units)?))
}

fn bound(bound: &FrameBound, units: Units) -> Result<WindowFrameBound> {
    let open = ScalarValue::UInt64(None);
    Ok(match bound {
        FrameBound::UnboundedPreceding => WindowFrameBound::Preceding(open),
        FrameBound::UnboundedFollowing => WindowFrameBound::Following(open),
        FrameBound::CurrentRow => WindowFrameBound::CurrentRow,
        FrameBound::Preceding(offset) => WindowFrameBound::Preceding(offset_of(offset, units)?),
        FrameBound::Following(offset) => WindowFrameBound::Following(offset_of(offset, units)?),
    })
}

/// A number of rows or groups; of RANGE the text of what is added, for its type is that of what is ordered by.
fn offset_of(offset: &tree::Expr, units: Units) -> Result<ScalarValue> {
    match (&offset.kind, units) {
        (ExprKind::Literal(Literal::Int(rows)), Units::Rows | Units::Groups) => match u64::try_from(*rows) {
            Ok(rows) => Ok(ScalarValue::UInt64(Some(rows))),
            Err(_) => wrong(offset.at, "22013", "frame starting offset must not be negative"),
        },
        (ExprKind::Literal(Literal::Int(value)), Units::Range) if *value >= 0 => {
            Ok(ScalarValue::Utf8(Some(value.to_string())))
        }
        (ExprKind::Literal(Literal::Number(value)), Units::Range) => Ok(ScalarValue::Utf8(Some(value.clone()))),
        (ExprKind::Cast { arg, to, .. }, Units::Range) if types::is_interval(to) => match &arg.kind {
            ExprKind::Literal(Literal::Text(text)) => Ok(ScalarValue::Utf8(Some(text.clone()))),
            _ => unsupported("this offset of a frame"),
        },
        _ => unsupported("this offset of a frame"),
    }
}
