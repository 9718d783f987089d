//! The background writer keeps a restart short: by time (`restart_target`), and by pages where a warm tier takes them.

use super::*;

/// The mean of the estimates while pages are changed, and the last one with nothing changed for a while.
fn estimates(target: Option<Duration>) -> (Duration, Duration) {
    let sim = Sim::new(5, 2);
    let env = sim.env();
    let (_, devices) = blank(false);
    let devices = set(&devices);
    let config = StorageConfig { restart_target: target, redo_bound: 64 << 20, log_retention: 64 << 20, ..config() };
    let estimates = sim.run(async move {
        let st = Store::create(env.clone(), devices, config).await.expect("creates");
        let mut model = Model::default();
        add_pages(&st, &mut model).await.expect("adds pages");
        let mut sum = Duration::ZERO;
        for _ in 0..300 {
            step(&st, &mut model, env.random_u64(), 300).await.expect("works");
            env.sleep(Duration::from_millis(5)).await;
            sum += st.restart_estimate();
        }
        let mean = sum / 300;
        env.sleep(Duration::from_secs(10)).await;
        let at_rest = st.restart_estimate();
        st.close().await.expect("closes");
        (mean, at_rest)
    });
    sim.crash();
    estimates
}

#[test]
fn a_target_takes_pages_home_early() {
    let target = Duration::from_millis(8);
    let (free, _) = estimates(None);
    let (bound, at_rest) = estimates(Some(target));
    assert!(free > target * 3 / 2, "without a target a restart would take {free:?}");
    assert!(bound < target, "with a target of {target:?}: {bound:?}");
    assert!(at_rest < target / 4, "at rest: {at_rest:?}");
}

/// Dirty pages in memory two seconds after 6,000 were made, with a tier or without one.
fn left_dirty(tier: bool) -> usize {
    let sim = Sim::new(6, 2);
    let env = sim.env();
    let mut devices = set(&blank(false).1);
    devices.flash = tier.then(|| Arc::new(terrace_device::MemoryDevice::new("flash", 64 << 20)) as DeviceRef);
    let flash = FlashConfig { size: 48 << 20, ..FlashConfig::default() };
    let (redo_bound, log_retention) = (64 << 20, 64 << 20);
    let writer_interval = StorageConfig::default().writer_interval;
    let config = StorageConfig { pool_bytes: 32 << 20, flash, redo_bound, log_retention, writer_interval, ..config() };
    let dirty = sim.run(async move {
        let st = Store::create(env.clone(), devices, config).await.expect("creates");
        for _ in 0..6000 / PAGES {
            add_pages(&st, &mut Model::default()).await.expect("adds pages");
        }
        env.sleep(Duration::from_secs(2)).await;
        let dirty = st.pool().dirty();
        st.close().await.expect("closes");
        dirty
    });
    sim.crash();
    dirty
}

#[test]
fn a_warm_tier_takes_most_dirty_pages() {
    let (with, without) = (left_dirty(true), left_dirty(false));
    assert!(with <= 4096 && without > 5000, "{with} dirty pages with a tier, {without} without one");
}
