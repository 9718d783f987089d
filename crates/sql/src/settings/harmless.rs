//! Settings of PostgreSQL's that programs set and that change no answer: its planner's, its executor's memory, and what
//! it warns of. They are checked, kept and shown as PostgreSQL does, and nothing reads them.
//!
//! 1. None of them changes what a statement answers in PostgreSQL.
//! 2. A value is stored as SHOW prints it.
//!
//! Source: PostgreSQL 15 documentation, chapter 20 (Server Configuration).
use super::{boolean, invalid};
use terrace_engine::{EngineError, Result};

/// What values a setting takes.
#[derive(Clone, Copy)]
enum Takes {
    Bool,
    /// From, to.
    Int(i64, i64),
    /// In kB: from, and how many of them are one.
    Memory(i64, i64),
    Real(f64),
    Words(&'static [&'static str]),
}

/// Name, the value at the start, and what it takes.
const HARMLESS: &[(&str, &str, Takes)] = {
    use Takes::{Bool, Int, Memory, Real, Words};
    &[
        ("constraint_exclusion", "partition", Words(&["partition", "on", "off"])),
        ("cpu_index_tuple_cost", "0.005", Real(f64::MAX)),
        ("cpu_operator_cost", "0.0025", Real(f64::MAX)),
        ("cpu_tuple_cost", "0.01", Real(f64::MAX)),
        ("cursor_tuple_fraction", "0.1", Real(1.0)),
        ("default_statistics_target", "100", Int(1, 10_000)),
        ("effective_cache_size", "4GB", Memory(1, 8)),
        ("enable_async_append", "on", Bool),
        ("enable_bitmapscan", "on", Bool),
        ("enable_gathermerge", "on", Bool),
        ("enable_hashagg", "on", Bool),
        ("enable_hashjoin", "on", Bool),
        ("enable_incremental_sort", "on", Bool),
        ("enable_indexonlyscan", "on", Bool),
        ("enable_indexscan", "on", Bool),
        ("enable_material", "on", Bool),
        ("enable_memoize", "on", Bool),
        ("enable_mergejoin", "on", Bool),
        ("enable_nestloop", "on", Bool),
        ("enable_parallel_append", "on", Bool),
        ("enable_parallel_hash", "on", Bool),
        ("enable_partition_pruning", "on", Bool),
        ("enable_partitionwise_aggregate", "off", Bool),
        ("enable_partitionwise_join", "off", Bool),
        ("enable_seqscan", "on", Bool),
        ("enable_sort", "on", Bool),
        ("enable_tidscan", "on", Bool),
        ("escape_string_warning", "on", Bool),
        ("force_parallel_mode", "off", Words(&["off", "on", "regress"])),
        ("from_collapse_limit", "8", Int(1, i32::MAX as i64)),
        ("geqo", "on", Bool),
        ("geqo_effort", "5", Int(1, 10)),
        ("geqo_threshold", "12", Int(2, i32::MAX as i64)),
        ("hash_mem_multiplier", "2", Real(1000.0)),
        ("jit", "on", Bool),
        ("jit_above_cost", "100000", Real(f64::MAX)),
        ("join_collapse_limit", "8", Int(1, i32::MAX as i64)),
        ("maintenance_work_mem", "64MB", Memory(1024, 1)),
        ("max_parallel_maintenance_workers", "2", Int(0, 1024)),
        ("max_parallel_workers", "8", Int(0, 1024)),
        ("max_parallel_workers_per_gather", "2", Int(0, 1024)),
        ("parallel_leader_participation", "on", Bool),
        ("parallel_setup_cost", "1000", Real(f64::MAX)),
        ("parallel_tuple_cost", "0.1", Real(f64::MAX)),
        ("plan_cache_mode", "auto", Words(&["auto", "force_generic_plan", "force_custom_plan"])),
        ("random_page_cost", "4", Real(f64::MAX)),
        ("seq_page_cost", "1", Real(f64::MAX)),
        ("synchronize_seqscans", "on", Bool),
        ("temp_buffers", "8MB", Memory(100, 8)),
        ("work_mem", "4MB", Memory(64, 1)),
    ]
};

/// Names, and values at the start.
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    HARMLESS.iter().map(|(name, value, _)| (*name, *value))
}

/// A value as it is stored (invariant 2); `None`: the setting is none of these.
pub(super) fn stored(key: &str, value: &str) -> Option<Result<String>> {
    let (_, _, takes) = HARMLESS.iter().find(|(name, _, _)| *name == key)?;
    let value = value.trim();
    let lower = value.to_ascii_lowercase();
    Some(match takes {
        Takes::Bool => boolean(key, &lower).map(str::to_owned),
        Takes::Words(words) if words.contains(&lower.as_str()) => Ok(lower),
        Takes::Words(words) if words.contains(&"on") && matches!(lower.as_str(), "true" | "yes" | "1") => {
            Ok("on".into())
        }
        Takes::Words(words) if words.contains(&"off") && matches!(lower.as_str(), "false" | "no" | "0") => {
            Ok("off".into())
        }
        Takes::Words(words) => Err(invalid(key, value).with_hint(format!("Available values: {}.", words.join(", ")))),
        Takes::Int(low, high) => match value.parse::<i64>() {
            Ok(number) if (*low..=*high).contains(&number) => Ok(number.to_string()),
            Ok(number) => Err(outside(key, &number.to_string(), &format!("{low} .. {high}"))),
            Err(_) => Err(invalid(key, value)),
        },
        Takes::Real(high) => match value.parse::<f64>() {
            Ok(number) if (0.0..=*high).contains(&number) => Ok(number.to_string()),
            Ok(number) if number.is_finite() => {
                let high = if *high == f64::MAX { "1.79769e+308".to_owned() } else { high.to_string() };
                Err(outside(key, &number.to_string(), &format!("0 .. {high}")))
            }
            _ => Err(invalid(key, value)),
        },
        Takes::Memory(low, unit) => memory(key, value, *low, *unit),
    })
}

/// What `pg_settings` says of a value as it is stored: its kind, its unit, and the number of those. `None`: the setting
/// is none of these.
pub(crate) fn described(key: &str, value: &str) -> Option<(&'static str, Option<&'static str>, String)> {
    let (_, _, takes) = HARMLESS.iter().find(|(name, _, _)| *name == key)?;
    let same = value.to_owned();
    Some(match takes {
        Takes::Bool => ("bool", None, same),
        Takes::Int(..) => ("integer", None, same),
        Takes::Real(_) => ("real", None, same),
        Takes::Words(_) => ("enum", None, same),
        Takes::Memory(_, unit) => {
            let name = if *unit == 1 { "kB" } else { "8kB" };
            ("integer", Some(name), kilobytes(value, *unit).map_or(same, |size| (size as i64 / unit).to_string()))
        }
    })
}

/// Of `64MB`, or of a number of units of so many kB. `None`: it is no number, or in no such unit.
fn kilobytes(value: &str, unit: i64) -> Option<f64> {
    let name = value.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'));
    let number: f64 = value[..value.len() - name.len()].parse().ok()?;
    let scale = match name.trim() {
        "" => unit as f64,
        "B" => 1.0 / 1024.0,
        "kB" => 1.0,
        "MB" => 1024.0,
        "GB" => 1_048_576.0,
        "TB" => 1_073_741_824.0,
        _ => return None,
    };
    Some(number * scale)
}

const MEMORY_HINT: &str = "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".";

/// `64MB`, or a number of units of so many kB.
fn memory(key: &str, value: &str, low: i64, unit: i64) -> Result<String> {
    let Some(kilobytes) = kilobytes(value, unit) else {
        let error = invalid(key, value);
        return Err(if value.starts_with(|c: char| c.is_ascii_digit()) { error.with_hint(MEMORY_HINT) } else { error });
    };
    let units = (kilobytes / unit as f64).round() as i64;
    if !(low..=i64::from(i32::MAX)).contains(&units) {
        let shown = if unit == 1 { format!("{units} kB") } else { format!("{units} {unit}kB") };
        return Err(outside(key, &shown, &format!("{low} .. {}", i32::MAX)));
    }
    let kilobytes = units * unit;
    let scales = [("TB", 1 << 30), ("GB", 1 << 20), ("MB", 1 << 10), ("kB", 1)];
    let (name, scale) = scales.into_iter().find(|(_, scale)| kilobytes % scale == 0).expect("kB divides all");
    Ok(format!("{}{name}", kilobytes / scale))
}

fn outside(key: &str, value: &str, range: &str) -> EngineError {
    EngineError::new("22023", format!("{value} is outside the valid range for parameter \"{key}\" ({range})"))
}
