//! A scalar subquery may have no row, and then is NULL, whatever its column says.
//!
//! Upstream: `Expr::ScalarSubquery` takes its nullability from the subquery's column. `(SELECT pk FROM t WHERE false)
//! IS NULL` is simplified to false, `coalesce` drops its other arguments, and a projection of it fails with "declared
//! as non-nullable".
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::{Arc, LazyLock};

#[derive(Debug, PartialEq, Eq, Hash)]
struct Optional {
    name: String,
    signature: Signature,
}

static OPTIONAL: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| named("optional"));

/// A function of that name, which answers its argument.
pub(crate) fn named(name: &str) -> Arc<ScalarUDF> {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::from(Optional { name: name.to_owned(), signature }))
}

/// The same value, of which nothing says that it is not NULL.
pub(crate) fn optional(subquery: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(OPTIONAL.clone(), vec![subquery]))
}

impl ScalarUDFImpl for Optional {
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
        Ok(Arc::new(args.arg_fields[0].as_ref().clone().with_nullable(true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(args.args[0].clone())
    }
}
