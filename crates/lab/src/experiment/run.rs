//! Runs a plan: one simulation to a thread, all seeds of all cases spread over the threads.
use super::{Experiment, Findings, Numbers, Results, Scale, Value};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub scale: Scale,
    /// The first seed; the others follow.
    pub seed: u64,
    /// Seeds of each case; at least one.
    pub seeds: u64,
    pub threads: usize,
}

/// An experiment that has been run.
pub struct Finished {
    pub experiment: Experiment,
    pub scale: Scale,
    pub seeds: Vec<u64>,
    pub config: Vec<(&'static str, Value)>,
    pub findings: Findings,
}

/// Hears what part of the work is done (0 to 1), from several threads.
pub type Progress<'a> = &'a (dyn Fn(f64) + Sync);

/// Runs all cases with all seeds, and judges. The first failure ends it, naming case and seed.
pub fn run(experiment: &Experiment, options: Options, progress: Progress<'_>) -> Result<Finished, String> {
    let plan = (experiment.plan)(options.scale);
    let seeds: Vec<u64> = (options.seed..).take(options.seeds.max(1) as usize).collect();
    // Seed by seed, so that cases which take longest do not all come last.
    let jobs: Vec<(usize, usize)> =
        (0..seeds.len()).flat_map(|seed| (0..plan.cases.len()).map(move |case| (case, seed))).collect();
    let whole: f64 = jobs.iter().map(|(case, _)| plan.cases[*case].work).sum();
    let done: Mutex<Vec<f64>> = Mutex::new(vec![0.0; jobs.len()]);
    let results: Mutex<Vec<Option<Numbers>>> = Mutex::new(vec![None; jobs.len()]);
    let failure: Mutex<Option<String>> = Mutex::new(None);
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(&(case, seed)) = jobs.get(at).filter(|_| failure.lock().is_none()) else { return };
            let (case, seed) = (&plan.cases[case], seeds[seed]);
            let hear = |so_far: f64| {
                let mut done = done.lock();
                done[at] = so_far.min(case.work);
                progress(done.iter().sum::<f64>() / whole);
            };
            match (case.run)(seed, &hear) {
                Ok(numbers) => {
                    hear(case.work);
                    results.lock()[at] = Some(numbers);
                }
                Err(why) => {
                    failure.lock().get_or_insert(format!("{} with seed {seed}: {why}", case.label));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..options.threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(work);
        }
    });
    if let Some(why) = failure.into_inner() {
        return Err(why);
    }
    let mut results = results.into_inner();
    let cases = plan.cases.iter().enumerate().map(|(at, case)| {
        let of_seed = |seed: usize| results[seed * plan.cases.len() + at].take().expect("no failure: every job ended");
        (case.label.clone(), (0..seeds.len()).map(of_seed).collect())
    });
    let results = Results { cases: cases.collect() };
    let findings = (plan.judge)(&results);
    Ok(Finished { experiment: *experiment, scale: options.scale, seeds, config: plan.config, findings })
}
