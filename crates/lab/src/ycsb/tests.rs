use super::*;
use crate::machine::Run;
use crate::testing::machine;
use rand::SeedableRng;
use std::sync::Arc;
use std::time::Duration;

fn run(letter: char) -> (Ycsb, u64, u64) {
    let machine = machine("sata-consumer", "nvme-datacentre", 9);
    let sizes = Sizes { records: 3000, ..Sizes::default() };
    let workload = Arc::new(Ycsb::new(Mix::core(letter).unwrap(), sizes));
    let run = Run { terminals: 4, duration: Duration::from_secs(1), window: Duration::from_millis(500) };
    let measured = machine.run(&workload, run, &|_| {}).unwrap();
    assert_eq!(measured.problems, Vec::<String>::new(), "{letter}");
    let done = measured.samples.iter().map(|s| s.transactions).sum();
    let workload = Arc::into_inner(workload).expect("all terminals have ended");
    (workload, done, measured.data.reads)
}

#[test]
fn each_mix_leaves_what_it_wrote() {
    for letter in 'a'..='f' {
        let (ycsb, done, reads) = run(letter);
        assert!(done > 200, "{letter}: {done} operations");
        assert!(reads > 50, "{letter}: the pool is smaller than the data");
        let share = ycsb.updates.load(Ordering::Relaxed) as f64 / done as f64;
        let wanted = f64::from(ycsb.mix.update + ycsb.mix.modify) / 100.0;
        assert!((share - wanted).abs() < 0.1, "{letter}: {share} are updates");
        assert_eq!(ycsb.keys.inserted() > 3000, ycsb.mix.insert > 0, "{letter}");
    }
    assert_eq!(Mix::core('g'), None);
}

#[test]
fn frequent_keys_are_frequent() {
    let keys = Keys::new(10_000, 0.99);
    let random = &mut ChaCha8Rng::seed_from_u64(1);
    let mut zipfian: Vec<u64> = (0..20_000).map(|_| keys.zipfian(random)).collect();
    zipfian.sort_unstable();
    let mut counts: Vec<usize> = zipfian.chunk_by(|a, b| a == b).map(<[u64]>::len).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    // The harmonic numbers: the first of 10,000 ranks has about a tenth, the first hundred about half.
    assert!((1600..2600).contains(&counts[0]), "{}", counts[0]);
    let hundred: usize = counts[..100].iter().sum();
    assert!((9_000..12_000).contains(&hundred), "{hundred}");
    let newest = (0..2000).filter(|_| keys.latest(random) >= 9900).count();
    assert!((900..1200).contains(&newest), "{newest}");
}

#[test]
fn keys_under_way_are_not_read() {
    let keys = Keys::new(5, 0.99);
    let (first, second) = (keys.begin(), keys.begin());
    keys.done(second);
    assert_eq!((first, second, keys.inserted()), (5, 6, 5));
    keys.done(first);
    assert_eq!(keys.inserted(), 7);
}
