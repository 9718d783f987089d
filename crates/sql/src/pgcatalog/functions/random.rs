//! Functions whose answers are random: of the session's generator, or of the operating system.
use super::{Call, external};
use crate::functions::random::Random;
use datafusion::arrow::array::{Array, ArrayRef, FixedSizeBinaryBuilder, Float64Array, cast::AsArray};
use datafusion::arrow::datatypes::Float64Type;
use datafusion::error::Result;
use std::sync::Arc;
use terrace_engine::{Datum, EngineError};

/// Of version 4: random but for the version and the variant.
pub(super) fn uuids(c: &Call<'_>) -> Result<ArrayRef> {
    let mut uuids = FixedSizeBinaryBuilder::with_capacity(c.rows, 16);
    for _ in 0..c.rows {
        let Some(system) = &c.info.system else {
            uuids.append_null();
            continue;
        };
        let env = system.engine.env();
        let random = u128::from(env.random_u64()) << 64 | u128::from(env.random_u64());
        let marked = random & !(0xf << 76) & !(0b11 << 62) | 4 << 76 | 0b10 << 62;
        uuids.append_value(marked.to_be_bytes())?;
    }
    Ok(Arc::new(uuids.finish()))
}

/// `random()`.
pub(super) fn numbers(c: &Call<'_>) -> ArrayRef {
    let Some(system) = &c.info.system else { return Arc::new(Float64Array::new_null(c.rows)) };
    let mut random = system.random.lock();
    let random = random.get_or_insert_with(|| Random::new(system.engine.env().random_u64()));
    Arc::new((0..c.rows).map(|_| Some(random.next())).collect::<Float64Array>())
}

/// `setseed(seed)`. 22023
pub(super) fn seed(c: &Call<'_>, row: usize) -> Result<Option<String>> {
    let seeds = c.arguments[0].as_primitive_opt::<Float64Type>().filter(|seeds| seeds.is_valid(row));
    let (Some(seeds), Some(system)) = (seeds, &c.info.system) else { return Ok(None) };
    let seed = seeds.value(row);
    if !(-1.0..=1.0).contains(&seed) {
        let shown = crate::values::show(&Datum::Float8(seed));
        let message = format!("setseed parameter {shown} is out of allowed range [-1,1]");
        return Err(external(EngineError::new("22023", message)));
    }
    *system.random.lock() = Some(Random::seeded(seed));
    Ok(Some(String::new()))
}
