use super::run::{Options, run};
use super::*;
use std::sync::Mutex;

fn counted(case: &'static str, factor: f64) -> Case {
    let run: Runner = Box::new(move |seed, hear| {
        hear(1.0);
        let mut numbers = Numbers::default();
        numbers.set("speed", factor * seed as f64).set_series("curve", vec![(0.0, 1.0), (1.0, seed as f64)]);
        Ok(numbers)
    });
    Case { label: case.into(), work: 2.0, run }
}

fn judge(results: &Results) -> Findings {
    let mut found = Findings::default();
    for label in ["fast", "slow"] {
        found.row(label, "speed", "1/s", results.interval(label, "speed"), Some(7.0));
    }
    found.row("fast", "speedup", "x", results.ratio("fast", "slow", "speed"), None);
    found.falls("speed", &["fast", "slow"]);
    found.at_least("fast", "speedup", 10.0);
    found.untestable("something <larger>");
    found.bars("Speeds", "speed", "1/s");
    found.lines(results, "curve", "Curves", "s", "1/s");
    found
}

fn plan(_: Scale) -> Plan {
    let cases = vec![counted("fast", 10.0), counted("slow", 1.0)];
    Plan { config: vec![("pool", "2 MiB".into()), ("terminals", 4.into())], cases, judge: Box::new(judge) }
}

const LONG: &str = "A source whose name is so long that it takes a good deal more than what has room in one line, for \
                    the author had several names, and so had the book";

const EXPERIMENT: Experiment = Experiment { id: "test/1", shows: "that it works", source: "nowhere", plan };

fn options(seeds: u64, threads: usize) -> Options {
    Options { scale: Scale::Quick, seed: 3, seeds, threads }
}

#[test]
fn an_interval_is_students() {
    let one = Interval::of(&[4.0]);
    assert_eq!((one.mean, one.low, one.high), (4.0, 4.0, 4.0));
    // Standard deviation 1, t(4) = 2.776: half the width is 2.776 * sqrt(2.5 / 5).
    let five = Interval::of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(five.mean, 3.0);
    assert!((five.high - 3.0 - 2.776 * 0.5f64.sqrt()).abs() < 1e-9);
}

/// Of one seed 3 is taken off, of the other 1: of 10 and 5 are left 7 and 2, and 9 and 4.
#[test]
fn what_every_case_needs_is_taken_off() {
    let of = |whole: f64, parts: [f64; 2]| {
        parts.map(|part| Numbers::default().set("whole", whole).set("part", part).clone()).to_vec()
    };
    let results = Results { cases: vec![("slow".into(), of(10.0, [3.0, 6.0])), ("fast".into(), of(5.0, [4.0, 1.0]))] };
    let cases = ["slow", "fast"].map(String::from);
    let found = results.ratio_beyond("slow", "fast", "whole", ("part", &cases));
    assert!((found.mean - (7.0 / 2.0 + 9.0 / 4.0) / 2.0).abs() < 1e-9, "{found:?}");
}

/// What both cases have of a seed's luck does not count: the intervals meet, the differences are all above zero.
#[test]
fn cases_are_compared_seed_by_seed() {
    let of = |add: f64| [10.0, 20.0, 30.0].map(|luck| Numbers::default().set("speed", luck + add).clone()).to_vec();
    let results = Results { cases: vec![("a".into(), of(2.0)), ("b".into(), of(1.0)), ("c".into(), of(1.0))] };
    let mut found = Findings::default();
    for label in ["a", "b"] {
        found.row(label, "speed", "1/s", results.interval(label, "speed"), None);
    }
    found.falls("speed", &["a", "b"]);
    found.falls_paired(&results, "speed", "speed", "1/s", &["a", "b"]);
    found.falls_paired(&results, "speed", "speed", "1/s", &["a", "b", "c"]);
    let holds: Vec<_> = found.shapes.iter().map(|shape| shape.holds).collect();
    assert_eq!(holds, [Some(false), Some(true), Some(false)]);
    assert_eq!(found.ours("a less b", "speed, seed by seed").mean, 1.0);
    assert!(results.measured("a", "speed") && !results.measured("a", "size"));
}

#[test]
fn every_seed_of_every_case_is_run_and_judged() {
    let parts = Mutex::new(vec![]);
    let finished = run(&EXPERIMENT, options(3, 2), &|part| parts.lock().unwrap().push(part)).unwrap();
    assert_eq!(finished.seeds, [3, 4, 5]);
    assert_eq!(finished.findings.ours("slow", "speed").mean, 4.0);
    assert_eq!(finished.findings.ours("fast", "speedup").mean, 10.0);
    // [15.2, 64.8] lies above [1.5, 6.5]; the ratio, taken seed by seed, is the same in all.
    let holds: Vec<_> = finished.findings.shapes.iter().map(|shape| shape.holds).collect();
    assert_eq!(holds, [Some(true), Some(true), None]);
    let parts = parts.into_inner().unwrap();
    assert!(parts.iter().all(|part| (0.0..=1.0).contains(part)));
    assert!(parts.contains(&1.0));
}

#[test]
fn a_report_has_what_it_promises() {
    let finished = run(&EXPERIMENT, options(2, 1), &|_| {}).unwrap();
    let json = finished.json();
    assert_eq!((&json["id"], &json["scale"], &json["seed"]), (&"test/1".into(), &"quick".into(), &3.into()));
    assert_eq!(json["config"]["terminals"], 4);
    let row = &json["rows"][1];
    assert_eq!((&row["label"], &row["metric"], &row["unit"]), (&"slow".into(), &"speed".into(), &"1/s".into()));
    assert_eq!((row["ours"].as_f64(), row["paper"].as_f64()), (Some(3.5), Some(7.0)));
    assert_eq!((&json["shapes"][1]["holds"], &json["shapes"][2]["holds"]), (&true.into(), &Value::Null));
    let html = finished.html();
    assert_eq!(html.matches("<svg").count(), 2);
    assert!(html.contains("something &lt;larger&gt;") && html.contains("virtual"), "{html}");
    assert!(!html.contains("href") && !html.contains("src="), "it stands alone");
}

#[test]
fn a_section_of_the_results_has_the_numbers() {
    let text = run(&EXPERIMENT, options(2, 1), &|_| {}).unwrap().markdown();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "## test/1");
    assert_eq!(lines[2], "That it works. nowhere. Scale quick, seeds 3, 4.");
    assert_eq!(
        lines[4..7],
        ["| case | speed, 1/s | speedup |", "| --- | --- | --- |", "| fast | 35.0 ± 63.5 [7.00] | 10.0 |"]
    );
    assert!(text.contains("\n- slow: 3.50 ± 6.35 [7.00] 1/s, speed\n"), "{text}");
    assert!(text.contains("\n- speed: fast > slow: **fails**\n"), "{text}");
    assert!(text.ends_with("\nConfiguration: pool: 2 MiB; terminals: 4.\n"), "{text}");
    let long = run(&Experiment { source: LONG, ..EXPERIMENT }, options(2, 1), &|_| {}).unwrap().markdown();
    assert!(long.lines().all(|line| line.chars().count() <= 120) && long.contains("the book. Scale"), "{long}");
}

#[test]
fn a_failure_names_case_and_seed() {
    let failing = |_: Scale| {
        let run: Runner = Box::new(|_, _| Err("the disk is on fire".into()));
        Plan { config: vec![], cases: vec![Case { label: "hot".into(), work: 1.0, run }], judge: Box::new(judge) }
    };
    let error = run(&Experiment { plan: failing, ..EXPERIMENT }, options(2, 2), &|_| {}).err();
    assert_eq!(error.as_deref(), Some("hot with seed 3: the disk is on fire"));
}
