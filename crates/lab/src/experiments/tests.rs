//! What experiments have in common: what chapter 3 does, and no more.
use super::*;
use crate::experiment::{Scale, Value};
use crate::machine::Machine;
use terrace_storage::config::{FlashOrder, Restart, WritePolicy};

const SCALES: [Scale; 2] = [Scale::Quick, Scale::Full];

/// What a configuration says under a name, in the parts of it, too.
fn told<'a>(of: &'a Value, name: &str) -> Vec<&'a Value> {
    let Value::Object(rows) = of else { return vec![] };
    rows.iter().flat_map(|(key, value)| if key == name { vec![value] } else { told(value, name) }).collect()
}

/// Section 4.4.1.1: chapter 3 reads one page for one.
#[test]
fn reads_are_expanded_in_chapter_4_only() {
    let mut seen = 0;
    for experiment in all() {
        for scale in SCALES {
            let config = (experiment.plan)(scale).config;
            let config = Value::Object(config.into_iter().map(|(name, value)| (name.to_string(), value)).collect());
            let found = told(&config, "expanded reads, pages");
            let chapter4 = experiment.id.starts_with("do/fig4");
            assert!(chapter4 || !found.is_empty(), "{} does not say", experiment.id);
            assert!(chapter4 || found.iter().all(|pages| **pages == 1), "{}: {found:?}", experiment.id);
            seen += usize::from(!chapter4);
        }
    }
    assert_eq!(seen, 2 * 15, "chapter 3, section 3.5, and ours");
}

/// All of chapter 3: cold restarts, no history of pages that change, and the same disks: eight spindles whose seeks are
/// as long as over the whole database.
#[test]
fn chapter_3_has_one_machine() {
    for scale in SCALES {
        let lazy = Some(WritePolicy::LazyCleaning);
        let machines: [(&str, u64, Machine); 3] = [
            ("TPC-C", scale.pick(1000, 500), do3_tpcc::shrunk(scale).machine(lazy, 0.5)),
            ("TPC-E", scale.pick(4000, 2000), do3_tpce::Shrunk::of(scale).sharp(lazy, 0.01)),
            ("TPC-H", scale.pick(4000, 1000), do3_tpch::thirty(scale).0),
        ];
        for (name, factor, machine) in machines {
            assert_eq!(format!("{:?}", machine.data), format!("{:?}", case::disks(factor)), "{name}: its disks");
            let flash = machine.storage.flash;
            assert_eq!((flash.restart, flash.replacement), (Restart::Cold, FlashOrder::Lru2), "{name}");
            assert_eq!(flash.expanded_read, 1, "{name}");
        }
    }
}
