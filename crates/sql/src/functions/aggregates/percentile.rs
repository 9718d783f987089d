//! `percentile_cont`: the value at a part of the way through the sorted values, between two of them by a straight line.
//!
//! Report for DataFusion 55.2: its interpolation is cut to a millionth of the difference (`INTERPOLATION_PRECISION`),
//! so that 2.8 becomes 2.799999; of real it answers real.
use super::tunnel;
use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use datafusion::physical_expr::expressions::Literal;
use std::sync::Arc;
use terrace_engine::EngineError;

#[derive(Debug, PartialEq, Eq, Hash)]
struct PercentileCont {
    signature: Signature,
}

pub(super) fn function() -> AggregateUDF {
    AggregateUDF::from(PercentileCont { signature: Signature::user_defined(Volatility::Immutable) })
}

impl AggregateUDFImpl for PercentileCont {
    fn name(&self) -> &str {
        "percentile_cont"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let is_number = |t: &DataType| crate::functions::arithmetic::is_number(t) || *t == DataType::Null;
        match types {
            [DataType::Interval(_) | DataType::Time64(_), _] => {
                Err(tunnel(EngineError::unsupported("percentile_cont of intervals is not supported")))
            }
            [of, part] if is_number(of) && is_number(part) => Ok(vec![DataType::Float64; 2]),
            _ => Err(tunnel(EngineError::new("42883", "function percentile_cont of these arguments does not exist"))),
        }
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let values = DataType::new_list(DataType::Float64, true);
        Ok(vec![Arc::new(Field::new(format!("{}[values]", args.name), values, true))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let [order] = args.order_bys else {
            let message =
                "WITHIN GROUP (ORDER BY one expression) is required for ordered-set aggregate percentile_cont";
            return Err(tunnel(EngineError::new("42809", message)));
        };
        if args.is_distinct {
            return Err(tunnel(EngineError::unsupported("percentile_cont(DISTINCT ...) is not supported")));
        }
        let part = match args.exprs[1].downcast_ref::<Literal>().map(Literal::value) {
            Some(ScalarValue::Float64(part)) => *part,
            _ => return Err(tunnel(EngineError::unsupported("percentile_cont of no constant is not supported"))),
        };
        if let Some(part) = part.filter(|part| !(0.0..=1.0).contains(part)) {
            let message = format!("percentile value {part} is not between 0 and 1");
            return Err(tunnel(EngineError::new("22003", message)));
        }
        Ok(Box::new(Values { seen: vec![], part, descending: order.options.descending }))
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }

    /// It sorts its values; no other aggregate is to get its rows in this order.
    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// The values seen, in no order.
#[derive(Debug)]
struct Values {
    seen: Vec<f64>,
    /// Of the way from the first to the last; `None`: NULL, and so is the result.
    part: Option<f64>,
    descending: bool,
}

impl Accumulator for Values {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.seen.extend(values[0].as_primitive::<Float64Type>().iter().flatten());
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let Some(part) = self.part.filter(|_| !self.seen.is_empty()) else { return Ok(ScalarValue::Float64(None)) };
        // NaN is above all others.
        self.seen.sort_by(|a, b| a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan())));
        if self.descending {
            self.seen.reverse();
        }
        let at = part * (self.seen.len() - 1) as f64;
        let (below, above) = (self.seen[at.floor() as usize], self.seen[at.ceil() as usize]);
        let between = if at.floor() == at.ceil() { below } else { below + (at - at.floor()) * (above - below) };
        Ok(ScalarValue::Float64(Some(between)))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = datafusion::arrow::array::Float64Array::from(std::mem::take(&mut self.seen));
        Ok(vec![SingleRowListArrayBuilder::new(Arc::new(values)).build_list_scalar()])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [lists] = states else { return internal_err!("percentile_cont has one state") };
        for list in lists.as_list::<i32>().iter().flatten() {
            self.update_batch(&[list])?;
        }
        Ok(())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.seen.capacity() * size_of::<f64>()
    }
}
