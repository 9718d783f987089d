//! `pg_advisory_lock` and its kind: locks on numbers ([`terrace_engine::advisory`]).
//!
//! 1. What may have to wait waits as `pg_sleep` does ([`crate::functions::sleep`]), and stands only where that may. All
//!    others are called where they stand.
//! 2. They are strict: nothing is locked for NULL. Which arguments they take is [`builtin`](crate::functions::builtin)'s
//!    to say.
//! 3. Who gives up what he has not gets false, and a warning.
use crate::error::tunnel;
use crate::transaction::Notices;
use crate::values::void_field;
use async_trait::async_trait;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int32Type, Int64Type};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use terrace_engine::EngineError;
use terrace_engine::advisory::{Advisory, AdvisoryKey, AdvisoryLock, Holder};

#[derive(Clone, Copy, PartialEq)]
enum Does {
    Lock(Holder),
    TryLock(Holder),
    Unlock,
    UnlockAll,
}

/// Name, what it does, whether the lock is shared.
const FUNCTIONS: &[(&str, Does, bool)] = &[
    ("pg_advisory_lock", Does::Lock(Holder::Session), false),
    ("pg_advisory_lock_shared", Does::Lock(Holder::Session), true),
    ("pg_advisory_xact_lock", Does::Lock(Holder::Transaction), false),
    ("pg_advisory_xact_lock_shared", Does::Lock(Holder::Transaction), true),
    ("pg_try_advisory_lock", Does::TryLock(Holder::Session), false),
    ("pg_try_advisory_lock_shared", Does::TryLock(Holder::Session), true),
    ("pg_try_advisory_xact_lock", Does::TryLock(Holder::Transaction), false),
    ("pg_try_advisory_xact_lock_shared", Does::TryLock(Holder::Transaction), true),
    ("pg_advisory_unlock", Does::Unlock, false),
    ("pg_advisory_unlock_shared", Does::Unlock, true),
    ("pg_advisory_unlock_all", Does::UnlockAll, false),
];

/// Whether the function of that name is called for what it does, not for what it answers.
pub(crate) fn has_effect(name: &str) -> bool {
    is_advisory(name) || matches!(name, "pg_terminate_backend" | "pg_notify" | "setseed")
}

/// Whether it is the name of one of these functions.
pub(crate) fn is_advisory(name: &str) -> bool {
    FUNCTIONS.iter().any(|(known, ..)| *known == name)
}

/// Whether the function of that name may have to wait.
pub(crate) fn waits(name: &str) -> bool {
    FUNCTIONS.iter().any(|(known, does, _)| *known == name && matches!(does, Does::Lock(_)))
}

/// The function of that name, for a session.
pub(crate) fn function(name: &str, advisory: &Arc<Advisory>, notices: &Notices) -> Option<Arc<ScalarUDF>> {
    let &(name, does, shared) = FUNCTIONS.iter().find(|(known, ..)| *known == name)?;
    let arguments = match does {
        Does::UnlockAll => TypeSignature::Nullary,
        _ => TypeSignature::VariadicAny,
    };
    let signature = Signature::new(arguments, Volatility::Volatile);
    let made = Function { name, does, shared, advisory: advisory.clone(), notices: notices.clone(), signature };
    Some(Arc::new(match does {
        Does::Lock(_) => AsyncScalarUDF::new(Arc::new(made)).into_scalar_udf(),
        _ => ScalarUDF::from(made),
    }))
}

struct Function {
    name: &'static str,
    does: Does,
    shared: bool,
    advisory: Arc<Advisory>,
    notices: Notices,
    signature: Signature,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
// Within a statement a function is its name.
impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        self.name == other.name
    }
}
impl Eq for Function {}
impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl Function {
    /// The lock that each row names; `None` where an argument is NULL.
    fn locks(&self, args: &ScalarFunctionArgs) -> Result<Vec<Option<AdvisoryLock>>> {
        let arrays = args.args.iter().map(|arg| arg.to_array(args.number_rows)).collect::<Result<Vec<ArrayRef>>>()?;
        let key = |row: usize| match arrays.as_slice() {
            [key] => AdvisoryKey::One(key.as_primitive::<Int64Type>().value(row)),
            [first, second] => {
                let [first, second] = [first, second].map(|key| key.as_primitive::<Int32Type>().value(row));
                AdvisoryKey::Two(first, second)
            }
            other => unreachable!("the function takes one argument or two, not {}", other.len()),
        };
        let lock = |row| {
            let is_null = arrays.iter().any(|array| array.is_null(row));
            (!is_null).then(|| AdvisoryLock { key: key(row), shared: self.shared })
        };
        Ok((0..args.number_rows).map(lock).collect())
    }

    fn unlock(&self, lock: AdvisoryLock) -> bool {
        let had = self.advisory.unlock(lock);
        if !had {
            let mode = if lock.shared { "ShareLock" } else { "ExclusiveLock" };
            let warning = EngineError::new("01000", format!("you don't own a lock of type {mode}"));
            self.notices.push(warning);
        }
        had
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_field_from_args(&self, _args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(match self.does {
            Does::Lock(_) | Does::UnlockAll => void_field(self.name),
            Does::TryLock(_) | Does::Unlock => Arc::new(Field::new(self.name, DataType::Boolean, true)),
        })
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(match self.does {
            Does::Lock(_) | Does::UnlockAll => DataType::Utf8,
            Does::TryLock(_) | Does::Unlock => DataType::Boolean,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let done = |lock: Option<AdvisoryLock>| -> Result<Option<bool>> {
            let Some(lock) = lock else { return Ok(None) };
            match self.does {
                Does::TryLock(holder) => self.advisory.try_lock(lock, holder).map(Some).map_err(tunnel),
                Does::Unlock => Ok(Some(self.unlock(lock))),
                Does::Lock(_) | Does::UnlockAll => internal_err!("{} does not come here", self.name),
            }
        };
        if self.does == Does::UnlockAll {
            (0..args.number_rows).for_each(|_| self.advisory.unlock_all());
            return Ok(ColumnarValue::Array(Arc::new(StringArray::from(vec![""; args.number_rows]))));
        }
        let done = self.locks(&args)?.into_iter().map(done).collect::<Result<Vec<_>>>()?;
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::from(done))))
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for Function {
    async fn invoke_async_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Does::Lock(holder) = self.does else { return internal_err!("{} does not wait", self.name) };
        let mut done = Vec::with_capacity(args.number_rows);
        for lock in self.locks(&args)? {
            if let Some(lock) = lock {
                self.advisory.lock(lock, holder).await.map_err(tunnel)?;
            }
            done.push(lock.map(|_| ""));
        }
        Ok(ColumnarValue::Array(Arc::new(StringArray::from(done))))
    }
}
