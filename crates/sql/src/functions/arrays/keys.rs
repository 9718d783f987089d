//! What arrays are compared by.
//!
//! 1. A key is bytes that have PostgreSQL's order of arrays: item by item, NULL above all values, then fewer items
//!    first, then fewer dimensions, then these, then the numbers of their first items. Equal arrays have one key.
//! 2. Items have the engine's keys ([`terrace_engine::key`]); a jsonb's is made of what it is compared by.
use crate::columns::by_columns;
use crate::error::tunnel;
use crate::functions::compared::no_equality;
use crate::values::arrays::Arrays;
use crate::values::{array_datum, engine_type};
use datafusion::arrow::array::{Array, ArrayRef, BinaryArray};
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::{Arc, LazyLock};
use terrace_engine::key::encode_datum;
use terrace_engine::types::{Decimal, Shape, json};
use terrace_engine::{DataType, Datum, DatumRef};

static KEY: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(Key { signature: Signature::any(1, Volatility::Immutable) })));

/// What an array compares by.
pub(crate) fn key(expr: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(KEY.clone(), vec![expr]))
}

/// What the arrays of a column compare by.
pub(crate) fn keys(lists: &ArrayRef) -> Result<ArrayRef> {
    match engine_type(lists.data_type()).and_then(DataType::item) {
        None => return internal_err!("{} is no array of the engine's", lists.data_type()),
        Some(DataType::Json) => return Err(no_equality()),
        Some(_) => {}
    }
    let Some(arrays) = Arrays::of(lists) else { return internal_err!("{} is no array", lists.data_type()) };
    let key = |row: usize| match arrays.lists().is_null(row) {
        true => Ok(None),
        false => key_of(&arrays.lists().value(row), &arrays.shape(row)).map(Some),
    };
    let keys = (0..lists.len()).map(key).collect::<Result<Vec<Option<Vec<u8>>>>>()?;
    Ok(Arc::new(keys.iter().map(Option::as_deref).collect::<BinaryArray>()))
}

fn key_of(items: &ArrayRef, shape: &Shape) -> Result<Vec<u8>> {
    let mut key = Vec::with_capacity(items.len() * 9 + 10);
    for at in 0..items.len() {
        item_key(&mut key, array_datum(items, at).as_ref())?;
    }
    key.extend_from_slice(&[0, shape.len() as u8]);
    shape.iter().for_each(|dimension| key.extend_from_slice(&dimension.length.to_be_bytes()));
    shape.iter().for_each(|dimension| key.extend_from_slice(&(dimension.first as u32 ^ 1 << 31).to_be_bytes()));
    Ok(key)
}

/// Appends what an item is compared by.
pub(crate) fn item_key(out: &mut Vec<u8>, item: DatumRef<'_>) -> Result<()> {
    match item {
        DatumRef::Jsonb(text) => {
            let own = json::key(text).map_err(tunnel)?;
            encode_datum(out, Datum::Bytea(own.into()).as_ref());
        }
        DatumRef::Json(_) => return Err(no_equality()),
        DatumRef::Record(record) => {
            let mut own = vec![];
            for value in record.values() {
                match value {
                    // As of rows whose columns have other digits.
                    DatumRef::Numeric(number) => {
                        item_key(&mut own, Datum::Decimal(Decimal::from(number).encode()).as_ref())?;
                    }
                    value => item_key(&mut own, value)?,
                }
            }
            encode_datum(out, DatumRef::Bytea(&own));
        }
        item => encode_datum(out, item),
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    signature: Signature,
}

impl ScalarUDFImpl for Key {
    fn name(&self) -> &str {
        "array_key"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[ArrowType]) -> Result<ArrowType> {
        Ok(ArrowType::Binary)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        by_columns(&args, |columns| keys(&columns[0]))
    }
}
