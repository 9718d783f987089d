//! Windows, as the queries of views have them.
use super::views::From;
use super::{Of, Scope, Shown, Typed, aggregated, as_type};
use std::fmt::Write;
use terrace_engine::DataType;
use terrace_grammar::quoted;
use terrace_grammar::statement::{Call, Exclude, Expr, ExprKind, Frame, FrameBound, Literal, Over, Units, Window};

impl Scope<'_> {
    /// A call over a window. ROWS and GROUPS have constant offsets.
    pub(super) fn over(&self, call: &Call) -> Option<Typed> {
        let from = self.from?;
        let Call { name, args, star, distinct: false, variadic: false, filter, over: Some(over), .. } = call else {
            return None;
        };
        let [name] = name.parts() else { return None };
        if !call.order.is_empty() || !call.within.is_empty() || args.iter().any(|arg| arg.name.is_some()) {
            return None;
        }
        let args = args.iter().map(|arg| self.show(&arg.value)).collect::<Option<Vec<Typed>>>()?;
        let (args, gives) = match (*star, args.as_slice()) {
            (true, []) if name.name == "count" => (vec![Shown::Plain("*".into())], DataType::Int8),
            (false, args) => self.window_function(&name.name, args)?,
            _ => return None,
        };
        let made = Shown::Call(name.name.clone(), args);
        let made = match filter {
            None => made,
            Some(filter) => Shown::Filtered(Box::new([made, self.condition(filter)?])),
        };
        let window = match over {
            Over::Name(name) => quoted(&name.name),
            Over::Window(window) => self.window(window, from)?,
        };
        Some((Shown::Over(Box::new(made), window), Of::Known(gives)))
    }

    fn window_function(&self, name: &str, args: &[Typed]) -> Option<(Vec<Shown>, DataType)> {
        let plain = |args: &[Typed]| args.iter().map(|(shown, _)| shown.clone()).collect();
        let int = |arg: &Typed| arg.1 == Of::Known(DataType::Int4);
        Some(match (name, args) {
            ("row_number" | "rank" | "dense_rank", []) => (vec![], DataType::Int8),
            ("percent_rank" | "cume_dist", []) => (vec![], DataType::Float8),
            ("ntile", [groups]) if int(groups) => (plain(args), DataType::Int4),
            ("lag" | "lead" | "first_value" | "last_value", [(_, Of::Known(of))]) => (plain(args), *of),
            ("lag" | "lead" | "nth_value", [(_, Of::Known(of)), number]) if int(number) => (plain(args), *of),
            (name, [arg @ (_, Of::Known(of))]) => match aggregated(name, *of)? {
                (Some(takes), gives) => (vec![as_type(arg.clone(), takes)?], gives),
                (None, gives) => (plain(args), gives),
            },
            _ => return None,
        })
    }

    /// What stands in parentheses behind OVER, and them.
    pub(super) fn window(&self, window: &Window, from: &From<'_>) -> Option<String> {
        let Window { at: _, base, partition, order, frame } = window;
        let mut parts: Vec<String> = base.iter().map(|base| quoted(&base.name)).collect();
        if !partition.is_empty() {
            let keys = partition.iter().map(|key| from.shown_key(self, key)).collect::<Option<Vec<_>>>()?;
            parts.push(format!("PARTITION BY {}", keys.join(", ")));
        }
        if !order.is_empty() {
            let keys = order.iter().map(|key| from.shown_order(self, key)).collect::<Option<Vec<_>>>()?;
            parts.push(format!("ORDER BY {}", keys.join(", ")));
        }
        if let Some(frame) = frame {
            parts.push(shown_frame(frame)?);
        }
        Some(format!("({})", parts.join(" ")))
    }
}

fn shown_frame(Frame { at: _, units, start, end, exclude }: &Frame) -> Option<String> {
    let unit = match units {
        Units::Rows => "ROWS",
        Units::Range => "RANGE",
        Units::Groups => "GROUPS",
    };
    // It may stand there, or go without saying: PostgreSQL tells these apart.
    if matches!(end, FrameBound::CurrentRow) {
        return None;
    }
    let mut text = format!("{unit} BETWEEN {} AND {}", bound(start, *units)?, bound(end, *units)?);
    match exclude {
        Exclude::NoOthers => {}
        Exclude::CurrentRow => text.write_str(" EXCLUDE CURRENT ROW").ok()?,
        Exclude::Group => text.write_str(" EXCLUDE GROUP").ok()?,
        Exclude::Ties => text.write_str(" EXCLUDE TIES").ok()?,
    }
    Some(text)
}

fn bound(bound: &FrameBound, units: Units) -> Option<String> {
    let offset = |expr: &Expr| match expr.kind {
        // That of RANGE is of a type that the keys have a part in.
        ExprKind::Literal(Literal::Int(number @ 0..)) if units != Units::Range => i32::try_from(number).ok(),
        _ => None,
    };
    Some(match bound {
        FrameBound::UnboundedPreceding => "UNBOUNDED PRECEDING".into(),
        FrameBound::Preceding(by) => format!("{} PRECEDING", offset(by)?),
        FrameBound::CurrentRow => "CURRENT ROW".into(),
        FrameBound::Following(by) => format!("{} FOLLOWING", offset(by)?),
        FrameBound::UnboundedFollowing => "UNBOUNDED FOLLOWING".into(),
    })
}
