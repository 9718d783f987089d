//! What devices, tier and locks did in a window of time.
use super::media::Devices;
use terrace_device::DeviceStats;
use terrace_engine::Database;
use terrace_storage::FlashStats;

/// What the devices and the flash tier did in a window of time; gauges are as of its end. A block cache counts as a
/// tier whose frames are of a page's size.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// Seconds since the run began, at the window's end.
    pub at: f64,
    pub data: DeviceStats,
    /// Of the disk's reads, those of index pages.
    pub index_reads: u64,
    /// Nanoseconds that each of the disk's spindles was at work.
    pub spindles: Vec<u64>,
    pub log: DeviceStats,
    pub flash: DeviceStats,
    /// Reads that the tier served, and those that it did not.
    pub tier_hits: u64,
    pub tier_misses: u64,
    /// Of the hits, pages that were newer there than on the disk.
    pub tier_dirty_hits: u64,
    /// Of the misses, pages that the tier held and was too busy to give.
    pub tier_throttled: u64,
    /// Pages not let in, by [`REJECTED`].
    pub tier_rejected: [u64; REJECTED.len()],
    /// Bytes written to the tier.
    pub tier_written: u64,
    /// Gauges: frames of the tier in use, and of them dirty.
    pub tier_used: u64,
    pub tier_dirty: u64,
    /// Nanoseconds that transactions waited for each other's locks, in waits that have ended.
    pub lock_wait: u64,
}

/// Why pages are not let into the tier.
pub const REJECTED: [&str; 8] = [
    "rejected sequential",
    "rejected throttled",
    "rejected policy",
    "rejected old",
    "rejected dirty",
    "rejected cold",
    "rejected no frame",
    "rejected budget",
];

fn rejected(tier: &FlashStats) -> [u64; REJECTED.len()] {
    REJECTED.map(|reason| {
        let counter = tier.counters().find(|counter| counter.name == reason.replace(' ', "_"));
        counter.expect("REJECTED names counters of the tier").value
    })
}

impl Traffic {
    /// Counters since the machine was switched on (the tier's: since it was opened), with no window's width.
    pub(super) fn totals(devices: &Devices, database: &Database) -> Traffic {
        let stats = database.store().flash();
        let tier = |value: fn(&FlashStats) -> u64| stats.as_ref().map_or(0, value);
        let mut traffic = Traffic {
            at: 0.0,
            data: devices.data(),
            index_reads: devices.index_reads(database),
            spindles: devices.spindles(),
            log: devices.log(),
            flash: devices.flash(),
            tier_hits: tier(|t| t.hits),
            tier_misses: tier(|t| t.misses),
            tier_dirty_hits: tier(|t| t.dirty_hits),
            tier_throttled: tier(|t| t.throttled_reads),
            tier_rejected: stats.as_ref().map(rejected).unwrap_or_default(),
            tier_written: tier(|t| t.written_bytes),
            tier_used: tier(|t| t.used),
            tier_dirty: tier(|t| t.dirty),
            lock_wait: database.lock_wait().as_nanos() as u64,
        };
        if let Some(cache) = devices.cache_stats() {
            let page = database.store().config().page_size as u64;
            traffic.tier_hits = cache.read_hits;
            traffic.tier_misses = cache.read_misses + cache.bypassed_reads;
            traffic.tier_dirty_hits = cache.dirty_hits;
            traffic.tier_written = traffic.flash.write_bytes;
            (traffic.tier_used, traffic.tier_dirty) = (cache.used / page, cache.dirty / page);
        }
        traffic
    }

    pub(super) fn since(&self, before: &Traffic, at: f64) -> Traffic {
        Traffic {
            at,
            data: difference(self.data, before.data),
            index_reads: self.index_reads - before.index_reads,
            spindles: self.spindles.iter().zip(&before.spindles).map(|(now, then)| now - then).collect(),
            log: difference(self.log, before.log),
            flash: difference(self.flash, before.flash),
            tier_hits: self.tier_hits - before.tier_hits,
            tier_misses: self.tier_misses - before.tier_misses,
            tier_dirty_hits: self.tier_dirty_hits - before.tier_dirty_hits,
            tier_throttled: self.tier_throttled - before.tier_throttled,
            tier_rejected: std::array::from_fn(|at| self.tier_rejected[at] - before.tier_rejected[at]),
            tier_written: self.tier_written - before.tier_written,
            tier_used: self.tier_used,
            tier_dirty: self.tier_dirty,
            lock_wait: self.lock_wait - before.lock_wait,
        }
    }
}

pub(super) fn difference(after: DeviceStats, before: DeviceStats) -> DeviceStats {
    DeviceStats {
        reads: after.reads - before.reads,
        read_bytes: after.read_bytes - before.read_bytes,
        writes: after.writes - before.writes,
        write_bytes: after.write_bytes - before.write_bytes,
        syncs: after.syncs - before.syncs,
    }
}
