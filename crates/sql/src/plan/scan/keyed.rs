//! The scan of a join that looks for few keys: ranges of an index, one for each.
//!
//! 1. The keys stand beside the conditions of the scan, and its ranges are chosen as for any condition (`key_ranges`):
//!    they may contain too much, never too little.
//! 2. Where the keys are many for the table, or their rows are, the whole table is read. So the first rows of the
//!    ranges are held back until that is known.
use super::{Output, Role, ScanExec};
use crate::plan::key_joins::Keys;
use crate::plan::key_ranges::{MOST_RANGES, choose, usable};
use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, ident};
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;
use terrace_engine::{Scan, Table};

/// Keys looked up in a table of which it is not known how large it is.
const FEW: usize = 256;

/// Rows that are read one after the other in the time that looking a key up takes.
const ROWS_A_KEY: u64 = 20;

/// Rows that keys may have in a table of which it is not known how large it is.
const FEW_ROWS: usize = 4096;

/// Bytes of rows that are held back.
pub(super) const MOST_BYTES: usize = 4 << 20;

/// A column, and the keys that it is compared with.
#[derive(Debug)]
struct Compared {
    /// The number of the key.
    key: usize,
    name: String,
    of: ArrowType,
}

#[derive(Debug)]
pub(super) struct Keyed {
    keys: Arc<Keys>,
    columns: Vec<Compared>,
    /// The index and the condition, as they are shown.
    pub(super) shown: (String, String),
}

impl Keyed {
    pub(super) fn of(scan: &ScanExec, keys: &Arc<Keys>, columns: &[(usize, usize)], names: &[String]) -> Option<Keyed> {
        if scan.role == Role::Given {
            return None;
        }
        let compared = columns.iter().filter_map(|(key, at)| match scan.outputs[*at] {
            Output::Column(column) => {
                let (name, of) =
                    (scan.table.columns[column].name.clone(), scan.schema().field(*at).data_type().clone());
                let sample = ScalarValue::new_default(&of).ok()?;
                // One that no index has would narrow nothing.
                usable(&scan.table, &among(&name, vec![sample])).then_some(Compared { key: *key, name, of })
            }
            _ => None,
        });
        let columns: Vec<Compared> = compared.collect();
        let samples = columns.iter().filter_map(|c| Some(among(&c.name, vec![ScalarValue::new_default(&c.of).ok()?])));
        let before = scan.late.as_ref().map_or_else(|| Ok(scan.filters.clone()), |late| late.settled(true)).ok()?;
        let index = choose(&scan.table, &samples.chain(before).collect::<Vec<Expr>>())?.first()?.index.name.clone();
        let conditions = columns.iter().map(|c| format!("{} = {}", c.name, names[c.key]));
        let shown = (index, conditions.collect::<Vec<String>>().join(" AND "));
        Some(Keyed { keys: keys.clone(), columns, shown })
    }

    /// The ranges; `None`: the whole table is to be read.
    pub(super) fn scans(&self, table: &Table, filters: &[Expr]) -> Option<Vec<Scan>> {
        let mut conditions = filters.to_vec();
        for compared in &self.columns {
            let keys = self.keys.few(compared.key)?;
            let values = keys.into_iter().map(|key| compared.value(key)).collect::<Option<Vec<_>>>()?;
            let values: Vec<ScalarValue> = values.into_iter().flatten().collect();
            if values.is_empty() {
                return Some(vec![]); // No row has such a key.
            }
            if values.len() > most_keys(table) {
                return None;
            }
            conditions.push(among(&compared.name, values));
        }
        let ranges = choose(table, &conditions)?;
        Some(ranges.into_iter().map(Scan::Index).collect())
    }
}

impl Compared {
    /// A key as the column would have it; within, `None`: the column cannot have it. `None`: it is not known.
    fn value(&self, key: ScalarValue) -> Option<Option<ScalarValue>> {
        if key.data_type() == self.of {
            return Some(Some(key));
        }
        let number = match key {
            ScalarValue::Int16(Some(number)) => i64::from(number),
            ScalarValue::Int32(Some(number)) => i64::from(number),
            ScalarValue::Int64(Some(number)) => number,
            _ => return None,
        };
        Some(match self.of {
            ArrowType::Int16 => number.try_into().ok().map(|number| ScalarValue::Int16(Some(number))),
            ArrowType::Int32 => number.try_into().ok().map(|number| ScalarValue::Int32(Some(number))),
            ArrowType::Int64 => Some(ScalarValue::Int64(Some(number))),
            _ => return None,
        })
    }
}

fn among(column: &str, values: Vec<ScalarValue>) -> Expr {
    ident(column).in_list(values.into_iter().map(|value| Expr::Literal(value, None)).collect(), false)
}

/// Keys that are looked up sooner than the whole table is read.
pub(super) fn most_keys(table: &Table) -> usize {
    match table.statistics {
        Some(known) => ((known.rows / ROWS_A_KEY) as usize).clamp(8, MOST_RANGES),
        None => FEW,
    }
}

/// Rows that are looked up sooner than the whole table is read.
pub(super) fn most_rows(table: &Table) -> usize {
    match table.statistics {
        Some(known) => ((known.rows / ROWS_A_KEY) as usize).clamp(64, 20_000),
        None => FEW_ROWS,
    }
}
