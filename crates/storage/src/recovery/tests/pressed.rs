//! While the log is near its bound: redo in the background, with memory full; rounds of the background writer.

use super::*;
use std::pin::Pin;
use terrace_device::latency::{Delay, LatencyDevice, Operation};
use terrace_env::Env;

/// Each transfer takes so long, however many there are at a time.
struct Slow {
    env: Env,
    read: Duration,
    write: Duration,
}

const READ: Duration = Duration::from_millis(5);

impl Delay for Slow {
    fn serve(&self, operation: Operation, _: u64, _: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.env.sleep(match operation {
            Operation::Read => self.read,
            Operation::Write => self.write,
            _ => Duration::ZERO,
        })
    }
}

impl Machine {
    /// Makes the data device slow in a simulation.
    pub(super) fn slow(&mut self, env: &Env, read: Duration, write: Duration) {
        let slow = Slow { env: env.clone(), read, write };
        self.devices.data = Arc::new(LatencyDevice::new(self.data.clone(), Arc::new(slow)));
    }
}

/// It read ahead only where frames were free, and else one page after the other: writers waited for the log, which
/// waited for it.
#[test]
fn waiting_pages_are_read_many_at_a_time() {
    let mut machine = Machine::new(4000, 4 << 20);
    let pages = machine.work(5, 6000, 3000, 1);
    machine.config.pool_bytes = 64 * PAGE;
    machine.config.flash.restart = Restart::Instant;
    machine.config.redo_bound = 1 << 20;
    let sim = Sim::new(6, 2);
    let env = sim.env();
    machine.slow(&env, READ, Duration::ZERO);
    let (devices, config) = (machine.devices.clone(), machine.config.clone());
    let (waiting, took) = sim.run(async move {
        let (st, report) = Store::open(env.clone(), devices, config).await.expect("opens");
        let began = env.now();
        st.checkpoint().await.expect("it waits for redo");
        (report.pages_waiting, Duration::from_nanos(env.now().0 - began.0))
    });
    assert!(waiting > 2000 && waiting <= pages.len() as u64 + 50, "{waiting} pages wait");
    let one_by_one = READ * waiting as u32;
    assert!(took * 15 < one_by_one * 2, "{took:?} for {waiting} pages; one by one {one_by_one:?}");
}

/// A round that had much to write recorded the redo LSN at its end only. Meanwhile writers were delayed for log that
/// restart would not have repeated.
#[test]
fn the_redo_lsn_moves_on_in_a_long_round() {
    let mut machine = Machine::new(4000, 4 << 20);
    (machine.config.redo_bound, machine.config.log_retention) = (1 << 20, 2 << 20);
    let sim = Sim::new(7, 2);
    let env = sim.env();
    machine.slow(&env, Duration::ZERO, Duration::from_millis(50));
    let (devices, config) = (machine.devices.clone(), machine.config.clone());
    let seen = sim.run(async move {
        let st = Store::create(env.clone(), devices, config).await.expect("creates");
        let pages = make_pages(&st, 2000).await;
        st.checkpoint().await.expect("writes home");
        for one in &pages {
            change(&st, std::slice::from_ref(one)).await;
        }
        let (begin, end) = (st.log().redo_lsn(), st.log().end());
        assert!(end.0 - begin.0 > 1 << 19, "all of it is due: {} bytes of log", end.0 - begin.0);
        st.log().press();
        let mut seen = vec![begin];
        for _ in 0..1000 {
            env.sleep(Duration::from_millis(5)).await;
            let redo = st.log().redo_lsn();
            seen.extend((*seen.last().expect("the first") != redo).then_some(redo));
        }
        seen
    });
    assert!(seen.len() > 3, "it moved in steps: {seen:?}");
}
