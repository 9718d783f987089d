//! `terrace.flash_tier` and `terrace.percentiles`.
use super::*;
use terrace_storage::FlashStats;

/// A method as terrace.toml writes it: LazyCleaning is lazy-cleaning.
pub(crate) fn words(method: &impl std::fmt::Debug) -> String {
    let mut text = String::new();
    for letter in format!("{method:?}").chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

/// One row: the tier, or that there is none.
pub(super) fn flash_tier(s: &System) -> Row {
    let Some(tier) = s.engine.store().flash() else {
        let (.., shape) = SHAPES.iter().find(|(_, name, _)| *name == "flash_tier").expect("this relation is in SHAPES");
        let value = |column| if column == "state" { V::from("none") } else { V::Null };
        return columns_of(shape).into_iter().map(|(column, _)| (column, value(column))).collect();
    };
    let page = s.engine.store().config().page_size as u64;
    let (log, ended) = (s.engine.log_status(), s.engine.ended());
    let (reads, transactions) = (tier.hits + tier.misses, ended.committed + ended.rolled_back);
    let FlashStats { problem, oldest_dirty, budget_left, restored: found, .. } = &tier;
    let mut row = row! {
        state: tier.state.name(), problem: problem.clone(), write_policy: words(&tier.write),
        replacement: words(&tier.replacement), size_bytes: tier.frames * page, frames: tier.frames, used: tier.used,
        dirty: tier.dirty, hit_rate: (reads > 0).then(|| tier.hits as f64 / reads as f64),
        cleaned_per_s: tier.cleaning_rate, time_to_clean_s: tier.time_to_clean().map(|time| time.as_secs_f64()),
        oldest_dirty_lsn: oldest_dirty.map(|lsn| lsn.0), redo_lsn: log.redo_lsn.0, retain_lsn: log.retain_lsn.0,
        written_per_transaction: (transactions > 0).then(|| tier.written_bytes as f64 / transactions as f64),
        written_per_day: tier.written_per_day(), write_budget: tier.write_budget,
        write_budget_left: budget_left.map(|left| left.max(0.0) as u64), endurance: tier.endurance,
        life_days: tier.life_days(), found: found.listed, found_current: found.current, found_dirty: found.dirty,
        found_bases: found.bases, found_older: found.older, found_unknown: found.unknown, found_lost: found.lost,
        inventory_ms: ms(found.inventory_nanos), noting_ms: ms(found.noting_nanos),
    };
    row.extend(tier.counters().map(|counter| (counter.name, V::from(counter.value))));
    row
}

/// Where latencies are told: a name, and what was counted.
fn all(s: &System) -> Vec<(String, Distribution)> {
    let mut found =
        vec![("statement".to_owned(), s.observed.latency()), ("commit wait".to_owned(), s.engine.commit_wait())];
    if let Some(tier) = s.engine.store().flash() {
        found.push(("miss served by flash".to_owned(), tier.hit_time));
        found.push(("miss served by disk".to_owned(), tier.miss_time));
    }
    for u in s.engine.store().io() {
        let (device, purpose) = (&u.device, u.purpose.name());
        for (what, distribution) in [("read", u.reads), ("write", u.writes), ("sync", u.syncs)] {
            found.push((format!("{what} {purpose} ({device})"), distribution));
        }
    }
    found
}

/// The buckets of the histograms.
pub(super) fn latencies(s: &System) -> Vec<Row> {
    let mut rows = vec![];
    for (name, distribution) in all(s) {
        for (bucket, count) in distribution.buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
            let bound = Distribution::bound(bucket).map(ms);
            rows.push(row! {name: &*name, le_ms: bound, count: *count});
        }
    }
    rows
}

/// What the histograms say of the share of what was slower.
pub(super) fn percentiles(s: &System) -> Vec<Row> {
    let told = all(s).into_iter().filter(|(_, d)| d.count() > 0);
    told.map(|(name, d)| {
        row! {
            name: &*name, count: d.count(), mean_ms: ms(d.mean()), p50_ms: ms(d.quantile(0.5)),
            p90_ms: ms(d.quantile(0.9)),
            p99_ms: ms(d.quantile(0.99)), p999_ms: ms(d.quantile(0.999)),
        }
    })
    .collect()
}
