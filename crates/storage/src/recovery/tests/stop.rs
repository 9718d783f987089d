//! A stop while frames of the flash tier are on their way.

use super::*;
use crate::config::WritePolicy;

/// A frame that was given out needs records in the log. When the log closed before them, the tier began empty after the
/// stop, with all that it held.
#[test]
fn a_stop_under_load_keeps_a_tier_whose_records_are_in_the_log() {
    for (seed, fast) in (0..12).map(|seed| (seed, seed % 2 == 0)) {
        let mut machine = Machine::new(64, 1 << 20);
        machine.devices.flash = Some(Arc::new(MemoryDevice::new("flash", 64 << 20)));
        machine.config.writer_interval = Duration::from_millis(10);
        let config = &mut machine.config.flash;
        (config.size, config.write, config.restart) = (400 * PAGE as u64, WritePolicy::DualWrite, Restart::LogBased);
        let sim = Sim::new(seed, 2);
        let (env, devices, config) = (sim.env(), machine.devices.clone(), machine.config.clone());
        sim.run(async move {
            let st = Store::create(env, devices, config).await.expect("creates");
            let pages = make_pages(&st, 1000).await;
            st.checkpoint().await.expect("is written");
            for reader in 0..8 {
                let (st, pages) = (st.clone(), pages.clone());
                st.env().clone().spawn("reader", async move {
                    // Until the store has stopped.
                    for at in (reader * 131..).step_by(7) {
                        let page = PageId { space: DATA, no: pages[at % pages.len()] };
                        if st.pool().fetch(page, Access::Random).await.is_err() {
                            return;
                        }
                        st.env().sleep(Duration::from_micros(20)).await;
                    }
                });
            }
            st.env().sleep(Duration::from_millis(300)).await;
            assert!(st.flash().expect("there is a tier").used > 300);
            if fast { st.close_fast().await } else { st.close().await }.expect("closes");
        });
        let (sim, st, report) = machine.open(100 + seed, Upto::End);
        assert!(report.tier.empty.is_none() && report.tier.listed > 300, "seed {seed}: {report:?}");
        sim.run(async move { st.close().await.expect("closes") });
    }
}
