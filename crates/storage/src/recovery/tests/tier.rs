//! What redo leaves of the frames that an opening has found.

use super::*;
use crate::config::WritePolicy;

/// Pages with changes are written in long runs, and so were the pages between them: a page that is written loses its
/// frame, and the tier lost most of what it held.
#[test]
fn redo_leaves_frames_of_pages_without_changes() {
    let mut machine = Machine::new(4000, 64 << 10);
    machine.devices.flash = Some(Arc::new(MemoryDevice::new("flash", 64 << 20)));
    machine.config.writer_interval = Duration::from_millis(10);
    let flash = &mut machine.config.flash;
    (flash.size, flash.write) = (8 << 20, WritePolicy::DualWrite);
    let sim = Sim::new(3, 2);
    let (env, devices, config) = (sim.env(), machine.devices.clone(), machine.config.clone());
    sim.run(async move {
        let st = Store::create(env, devices, config).await.expect("creates");
        let pages = make_pages(&st, 1200).await;
        st.checkpoint().await.expect("writes home, and to the tier");
        st.env().sleep(Duration::from_secs(2)).await; // The inventory is written.
        for one in pages.chunks(4) {
            change(&st, &one[..1]).await;
        }
        st.log().flush_to(st.log().end()).await.expect("flushes");
    });
    sim.crash();
    machine.config.pool_bytes = 128 * PAGE;
    let (_sim, st, report) = machine.open(4, Upto::End);
    let used = st.flash().expect("there is a tier").used;
    assert!(report.tier.current > 800 && report.pages > 250, "{report:?}");
    assert!(used >= report.tier.current, "{used} frames are left: {report:?}");
}
