//! Plain numeric in Arrow, which has no numbers with a scale each.
//!
//! 1. A large list of bytes is one: [`Decimal::encode`]'s. Nothing else is of this type here, and no function of
//!    DataFusion's computes with it.
//! 2. Values are compared by the key that they begin with: 1.0 equals 1.00.
//! 3. DataFusion's default of a type stands for values that are not known when a query is planned. Of this one it is an
//!    empty list, which is taken for NULL.
use crate::columns::by_columns;
use crate::error::tunnel;
use crate::memory::check;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, GenericListArray, LargeBinaryArray, LargeBinaryBuilder, UInt8Array,
};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef, UInt8Type};
use datafusion::common::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::{Arc, LazyLock};
use terrace_engine::Datum;
use terrace_engine::types::{Decimal, decimal};

static BYTE: LazyLock<FieldRef> = LazyLock::new(|| Arc::new(Field::new_list_field(ArrowType::UInt8, true)));

/// Invariant 1.
pub(crate) fn arrow_type() -> ArrowType {
    ArrowType::LargeList(BYTE.clone())
}

/// Whether it is plain numeric.
pub fn is_decimal(of: &ArrowType) -> bool {
    matches!(of, ArrowType::LargeList(item) if *item.data_type() == ArrowType::UInt8)
}

/// The array of stored forms.
pub(crate) fn array_of(stored: LargeBinaryArray) -> ArrayRef {
    let (offsets, bytes, nulls) = stored.into_parts();
    Arc::new(GenericListArray::<i64>::new(BYTE.clone(), offsets, Arc::new(UInt8Array::new(bytes.into(), None)), nulls))
}

/// The stored forms of an array of plain numeric.
pub fn stored(array: &ArrayRef) -> LargeBinaryArray {
    let lists = array.as_list::<i64>();
    let bytes = lists.values().as_primitive::<UInt8Type>().values().inner().clone();
    LargeBinaryArray::new(lists.offsets().clone(), bytes, lists.nulls().cloned())
}

/// The stored form in a row of an array of plain numeric.
pub(crate) fn bytes(array: &ArrayRef, row: usize) -> &[u8] {
    let lists = array.as_list::<i64>();
    let offsets = lists.value_offsets();
    &lists.values().as_primitive::<UInt8Type>().values()[offsets[row] as usize..offsets[row + 1] as usize]
}

/// Invariant 3.
fn known(bytes: &&[u8]) -> bool {
    !bytes.is_empty()
}

/// The value in a row of an array of plain numeric that is not NULL there.
pub(super) fn datum(array: &ArrayRef, row: usize) -> Datum {
    let stored = bytes(array, row);
    if known(&stored) { Datum::Decimal(stored.into()) } else { Datum::Null }
}

/// What to call before each value of an array: [`check`], if they are so long that one may take a while. What a plain
/// numeric takes does not show how many digits it has (1e130000 is stored short), so that these are always checked.
pub(crate) fn check_of(array: &ArrayRef) -> fn() -> terrace_engine::Result<()> {
    const LONG: usize = 512;
    let long = is_decimal(array.data_type()) || array.get_array_memory_size() > LONG * array.len();
    if long { check } else { || Ok(()) }
}

/// The values of an array of plain numeric. Before one that follows a long one the statement may be ended.
pub(crate) fn decimals(array: &ArrayRef) -> impl Iterator<Item = Result<Option<Decimal>>> {
    let (stored, mut after_long) = (stored(array), true);
    (0..stored.len()).map(move |row| {
        if after_long {
            check().map_err(tunnel)?;
        }
        let bytes = stored.is_valid(row).then(|| stored.value(row)).filter(known);
        let value = bytes.map(Decimal::decode);
        after_long = value.as_ref().is_some_and(Decimal::is_long);
        Ok(value)
    })
}

/// An array of plain numeric.
pub(crate) fn collected(values: impl Iterator<Item = Result<Option<Decimal>>>) -> Result<ArrayRef> {
    let mut builder = LargeBinaryBuilder::new();
    for value in values {
        builder.append_option(value?.map(|value| value.encode()));
    }
    Ok(array_of(builder.finish()))
}

/// The function that answers what a plain numeric compares by.
pub(crate) const KEY: &str = "numeric_key";

/// What the values of an array compare by (invariant 2).
pub(crate) fn keys(array: &ArrayRef) -> ArrayRef {
    Arc::new(stored(array).iter().map(|bytes| bytes.filter(known).map(decimal::key)).collect::<BinaryArray>())
}

/// What a plain numeric compares by.
pub(crate) fn key(expr: Expr) -> Expr {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(ScalarUDF::from(Key { signature }))
    });
    Expr::ScalarFunction(ScalarFunction::new_udf(FUNCTION.clone(), vec![expr]))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    signature: Signature,
}

impl ScalarUDFImpl for Key {
    fn name(&self) -> &str {
        KEY
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Binary)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        by_columns(&args, |columns| Ok(keys(&columns[0])))
    }
}
