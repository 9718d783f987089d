//! The power test, the throughput test, and what they come to (clause 5.4). Times are those of the database's
//! environment.
use super::TpcH;
use futures::FutureExt;
use futures::future::{BoxFuture, try_join_all};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use std::time::Duration;
use terrace_engine::{Database, Result};

/// The order of the queries in the power test (appendix A, stream 0).
const POWER: [usize; 22] = [14, 2, 9, 20, 6, 17, 18, 8, 21, 13, 3, 22, 16, 4, 11, 15, 1, 10, 19, 5, 7, 12];

#[derive(Clone, Debug)]
pub struct Power {
    /// Of queries 1 to 22.
    pub queries: [Duration; 22],
    /// Of the inserting and the deleting refresh.
    pub refreshes: [Duration; 2],
    pub scale_factor: f64,
}

#[derive(Clone, Copy, Debug)]
pub struct Throughput {
    pub streams: usize,
    pub elapsed: Duration,
    pub scale_factor: f64,
}

impl Power {
    /// Power@Size: queries per hour of one user times the scale factor, by the geometric mean of all times (clause
    /// 5.4.1).
    pub fn metric(&self) -> f64 {
        let times = self.queries.iter().chain(&self.refreshes).map(Duration::as_secs_f64);
        // A time below a thousandth of the longest counts as that (clause 5.4.1.4).
        let floor = times.clone().fold(0.0, f64::max) / 1000.0;
        let logarithms: f64 = times.map(|t| t.max(floor).ln()).sum();
        3600.0 / (logarithms / 24.0).exp() * self.scale_factor
    }
}

impl Throughput {
    /// Throughput@Size: queries per hour of all users times the scale factor (clause 5.4.2).
    pub fn metric(&self) -> f64 {
        (self.streams * 22) as f64 * 3600.0 / self.elapsed.as_secs_f64() * self.scale_factor
    }
}

/// QphH@Size (clause 5.4.3).
pub fn composite(power: &Power, throughput: &Throughput) -> f64 {
    (power.metric() * throughput.metric()).sqrt()
}

impl TpcH {
    /// One user: a refresh's inserts, all queries, its deletes.
    pub async fn power(&self, database: &Database, seed: u64) -> Result<Power> {
        let random = &mut ChaCha8Rng::seed_from_u64(seed);
        let env = database.env().clone();
        let mut last = env.now();
        let mut lap = move || {
            let took = Duration::from_nanos(env.now().0 - last.0);
            last = env.now();
            took
        };
        let (mut queries, mut refreshes) = ([Duration::ZERO; 22], [Duration::ZERO; 2]);
        let pair = self.begin_refresh();
        self.insert(database, random).await?;
        refreshes[0] = lap();
        for number in POWER {
            self.query(database, number, random).await?;
            queries[number - 1] = lap();
        }
        self.delete(database, pair).await?;
        refreshes[1] = lap();
        Ok(Power { queries, refreshes, scale_factor: self.sizes.scale_factor() })
    }

    /// Several users at once, and beside them a refresh pair for each, one after the other.
    pub async fn throughput(self: Arc<Self>, database: &Database, streams: usize, seed: u64) -> Result<Throughput> {
        let from = database.env().now();
        let mut all: Vec<BoxFuture<'static, Result<()>>> = Vec::new();
        for stream in 0..=streams {
            let (tpch, database) = (self.clone(), database.clone());
            let mut random = ChaCha8Rng::seed_from_u64(seed ^ (stream as u64 + 1) << 32);
            all.push(
                async move {
                    if stream == 0 {
                        for _ in 0..streams {
                            tpch.refresh(&database, &mut random).await?;
                        }
                        return Ok(());
                    }
                    for number in TpcH::stream(&mut random) {
                        tpch.query(&database, number, &mut random).await?;
                    }
                    Ok(())
                }
                .boxed(),
            );
        }
        try_join_all(all).await?;
        let elapsed = Duration::from_nanos(database.env().now().0 - from.0);
        Ok(Throughput { streams, elapsed, scale_factor: self.sizes.scale_factor() })
    }
}
