//! Functions that return their argument and hide something about it from DataFusion.
//!
//! 1. A mark changes neither the value nor its type.
//! 2. A mark says what its flags say, and nothing else: that the value may be NULL, even if its column is NOT NULL;
//!    that the value comes as a column, even if it is a constant; or that two calls are never equal.
//!
//! Upstream: `Expr::ScalarSubquery` takes its nullability from the subquery's column, though a scalar subquery may have
//! no row, and then is NULL. `(SELECT pk FROM t WHERE false) IS NULL` is simplified to false, `coalesce` drops its
//! other arguments, and a projection of it fails with "declared as non-nullable".
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::{Arc, LazyLock};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Mark {
    name: String,
    /// Nothing says that it is not NULL.
    optional: bool,
    /// A value for each row, also of a constant.
    per_row: bool,
    signature: Signature,
}

impl Mark {
    pub(super) fn new(name: &str, volatility: Volatility) -> Mark {
        let signature = Signature::any(1, volatility);
        Mark { name: name.to_owned(), optional: false, per_row: false, signature }
    }

    pub(super) fn per_row(name: &str) -> Mark {
        Mark { per_row: true, ..Mark::new(name, Volatility::Immutable) }
    }
}

static OPTIONAL: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| named("optional"));

/// A function of that name, which answers its argument.
pub(crate) fn named(name: &str) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Mark { optional: true, ..Mark::new(name, Volatility::Immutable) }))
}

/// The same value, marked as one that may be NULL.
pub(crate) fn optional(subquery: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(OPTIONAL.clone(), vec![subquery]))
}

impl ScalarUDFImpl for Mark {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let field = &args.arg_fields[0];
        Ok(if self.optional { Arc::new(field.as_ref().clone().with_nullable(true)) } else { field.clone() })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        assert_eq!(args.args.len(), 1, "invariant 1: it answers its argument");
        let value = args.args[0].clone();
        Ok(if self.per_row { ColumnarValue::Array(value.into_array(args.number_rows)?) } else { value })
    }
}
