//! WITHIN GROUP: aggregates that ask something of values in order ([`ordered`](crate::functions::ordered)).
//!
//! 1. The values are gathered by `array_agg`; the direct arguments stand beside it, so that they hold no columns that
//!    are not grouped by (42803). They hold no aggregate.
use super::scope::{Clause, Scope};
use super::untyped::refuse_open;
use super::{Binder, Placed, Result, system, unsupported, wrong};
use crate::functions::arithmetic::is_number;
use crate::functions::chars;
use crate::functions::convert::is_open;
use crate::functions::ordered::{self, Asked};
use crate::plan::choosers::{self, Chooser};
use crate::values::arrays::is_array;
use crate::values::field_type;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::logical_expr::expr::{AggregateFunction, Sort as By};
use datafusion::logical_expr::{Expr, ExprSchemable};
use terrace_engine::DataType;
use terrace_grammar::statement::{At, Call};

impl Binder<'_> {
    /// `None`: it is an aggregate that does it by itself, or no such one.
    pub(super) fn within_group(&self, name: &str, call: &Call, at: At, scope: &Scope<'_>) -> Result<Option<Expr>> {
        let Some(asked) = Asked::named(name).filter(|_| !call.within.is_empty() && call.over.is_none()) else {
            return Ok(None);
        };
        let direct = call.args.iter().map(|arg| self.expr(&arg.value, scope)).collect::<Result<Vec<Expr>>>()?;
        if asked == Asked::Cont && direct.iter().all(|arg| matches!(arg, Expr::Literal(..))) && direct.len() == 1 {
            return Ok(None);
        }
        for arg in &direct {
            if system::has_aggregate(arg)? {
                return wrong(at, "42803", "aggregate function calls cannot be nested");
            }
        }
        self.may_aggregate(at, scope)?;
        let keys = scope.within(Clause::Aggregate, || self.keys(&call.within, scope))?;
        let takes = match asked {
            Asked::Mode => 0,
            _ if asked.is_hypothetical() => keys.len(),
            _ => 1,
        };
        if direct.len() != takes || call.distinct || call.star {
            return self.unknown(name, call, at, scope);
        }
        let [key] = keys.as_slice() else { return unsupported("WITHIN GROUP of several keys") };
        if matches!(asked, Asked::Mode | Asked::Disc) {
            refuse_open(&key.expr, at)?;
        }
        if key.expr.contains_outer() && !key.expr.any_column_refs() {
            return unsupported("an aggregate of columns of the outer query only");
        }
        let filter = call.filter.as_ref();
        let filter = filter.map(|filter| scope.within(Clause::Filter, || self.condition(filter, "FILTER", scope)));
        let made = self.asked((asked, direct), key.clone(), filter.transpose()?, scope);
        let written: Vec<_> = call.args.iter().map(|arg| &arg.value).collect();
        made.at_value_of(&written).at(at).map(Some)
    }

    /// `string_agg` of bytea; `None`: it is of something else.
    pub(super) fn bytes_joined(
        &self,
        args: &[Expr],
        order: &[By],
        filter: Option<&Expr>,
        scope: &Scope<'_>,
    ) -> Result<Option<Expr>> {
        let schema = &scope.schema;
        let [value, between] = args else { return Ok(None) };
        if value.get_type(schema)? != ArrowType::Binary {
            return Ok(None);
        }
        let between = if is_open(between) {
            self.cast_to(between.clone(), DataType::Bytea, schema)?
        } else if between.get_type(schema)? == ArrowType::Binary {
            between.clone()
        } else {
            return Ok(None);
        };
        let Some(function) = self.planner.aggregate("array_agg") else { return Ok(None) };
        let filter = filter.cloned().into_iter().fold(value.clone().is_not_null(), Expr::and);
        let gathered = [value.clone(), between].map(|arg| {
            let filter = Some(Box::new(filter.clone()));
            let made = AggregateFunction::new_udf(function.clone(), vec![arg], false, filter, order.to_vec(), None);
            self.made(Expr::AggregateFunction(made), schema)
        });
        let lists = gathered.into_iter().collect::<Result<Vec<Expr>>>()?;
        Ok(Some(ordered::call(Asked::Joined, SortOptions::default(), lists)))
    }

    fn asked(
        &self,
        (asked, mut direct): (Asked, Vec<Expr>),
        mut key: By,
        filter: Option<Expr>,
        scope: &Scope<'_>,
    ) -> Result<Expr> {
        let schema = &scope.schema;
        if asked.is_hypothetical() {
            let both = vec![key.expr.clone(), direct.remove(0)];
            let (mut made, _) = choosers::of_one_type(Chooser::Case, both, schema)?;
            direct.extend(made.pop());
            key.expr = made.pop().expect("there were two");
        } else {
            let numbers = key.expr.get_type(schema)?;
            if asked == Asked::Cont && !is_number(&numbers) {
                return unsupported("percentile_cont of what is no number, for several parts");
            }
            if asked == Asked::Cont {
                key.expr = self.cast_to(key.expr, DataType::Float8, schema)?;
            }
            for part in &mut direct {
                let is_list = is_array(&part.get_type(schema)?) && !is_open(part);
                let to = if is_list { DataType::Float8.array().unwrap_or(DataType::Float8) } else { DataType::Float8 };
                *part = self.cast_to(std::mem::take(part), to, schema)?;
            }
        }
        let filter = match asked.is_hypothetical() {
            true => filter,
            false => Some(filter.into_iter().fold(key.expr.clone().is_not_null(), Expr::and)),
        };
        let of = field_type(key.expr.to_field(schema)?.1.as_ref());
        let Some(function) = self.planner.aggregate("array_agg") else { return unsupported("WITHIN GROUP") };
        let order = SortOptions { descending: !key.asc, nulls_first: key.nulls_first };
        let args = vec![key.expr.clone()];
        let gathered = AggregateFunction::new_udf(function, args, false, filter.map(Box::new), vec![key], None);
        let gathered = self.made(Expr::AggregateFunction(gathered), schema)?;
        let made = ordered::call(asked, order, [gathered].into_iter().chain(direct).collect());
        Ok(match of {
            Some(of @ (DataType::Char(1..) | DataType::Varchar(_))) if matches!(asked, Asked::Disc | Asked::Mode) => {
                let of = match made.get_type(schema)? {
                    made if is_array(&made) => of.array().unwrap_or(of),
                    _ => of,
                };
                chars::labelled(made, of)
            }
            _ => made,
        })
    }
}
