//! `pg_sleep(seconds)`.
//!
//! It waits as a plan's stream waits for a device: without a thread, and whoever cancels the statement drops it.
//! DataFusion carries out functions that wait in SELECT lists and WHERE; elsewhere (a CHECK, a join's condition) they
//! are refused.
use crate::values::void_field;
use async_trait::async_trait;
use datafusion::arrow::array::{Array, AsArray, StringArray};
use datafusion::arrow::datatypes::{DataType, FieldRef, Float64Type};
use datafusion::common::types::{NativeType, logical_float64, logical_string};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl};
use datafusion::logical_expr::{
    Coercion, ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignatureClass, Volatility,
};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;
use terrace_env::Env;

/// As long as anybody means.
const LONGEST: f64 = 1e9;

struct Sleep {
    env: Env,
    signature: Signature,
}

pub(crate) fn function(env: Env) -> Arc<ScalarUDF> {
    let number = Coercion::new_implicit(
        TypeSignatureClass::Native(logical_float64()),
        vec![TypeSignatureClass::Numeric, TypeSignatureClass::Native(logical_string())],
        NativeType::Float64,
    );
    let signature = Signature::coercible(vec![number], Volatility::Volatile);
    Arc::new(AsyncScalarUDF::new(Arc::new(Sleep { env, signature })).into_scalar_udf())
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("pg_sleep")
    }
}
// There is one.
impl PartialEq for Sleep {
    fn eq(&self, _: &Sleep) -> bool {
        true
    }
}
impl Eq for Sleep {}
impl Hash for Sleep {
    fn hash<H: Hasher>(&self, state: &mut H) {
        "pg_sleep".hash(state);
    }
}

impl ScalarUDFImpl for Sleep {
    fn name(&self) -> &'static str {
        "pg_sleep"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_field_from_args(&self, _args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(void_field(self.name()))
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("pg_sleep is awaited")
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for Sleep {
    /// One sleep for each row.
    async fn invoke_async_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let seconds = args.args[0].to_array(args.number_rows)?;
        let mut woken = Vec::with_capacity(seconds.len());
        for time in seconds.as_primitive::<Float64Type>() {
            let Some(time) = time else {
                woken.push(None);
                continue;
            };
            // NaN and what is negative: not at all.
            if time > 0.0 {
                self.env.sleep(Duration::from_secs_f64(time.min(LONGEST))).await;
            }
            woken.push(Some(""));
        }
        assert_eq!(woken.len(), seconds.len(), "one sleep for each row");
        Ok(ColumnarValue::Array(Arc::new(StringArray::from(woken))))
    }
}
