//! Functions over columns: constants in, a constant out.
use datafusion::arrow::array::ArrayRef;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

/// What `f` makes of the arguments as columns; one value where all of them are constants.
pub(crate) fn by_columns(
    args: &ScalarFunctionArgs,
    f: impl FnOnce(&[ArrayRef]) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    let scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
    let rows = if scalar { 1 } else { args.number_rows };
    let columns = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<ArrayRef>>>()?;
    let result = f(&columns)?;
    if scalar {
        return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?));
    }
    Ok(ColumnarValue::Array(result))
}
