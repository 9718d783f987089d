use super::*;

fn row(columns: &[(&str, &str)]) -> Row {
    columns.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
}

fn sample(uptime: &str, statements: &str, hits: &str, buckets: &[(&str, &str)]) -> Sample {
    Sample {
        status: row(&[("uptime_s", uptime), ("statements", statements), ("statement_ms", "0"), ("sessions", "3")]),
        pool: row(&[("hits", hits), ("random_reads", "0"), ("page_size", "8192"), ("capacity", "16384")]),
        latency: buckets.iter().map(|(le, n)| row(&[("name", "statement"), ("le_ms", le), ("count", n)])).collect(),
        io: vec![row(&[("device", "data on main"), ("purpose", "data"), ("reads", statements), ("read_ms", "5")])],
        sessions: vec![row(&[
            ("pid", "7"),
            ("state", "active"),
            ("blocked_by", "3,4"),
            ("waiting_s", "2.5"),
            ("waiting_for", "row (1,2) of t"),
            ("query", "UPDATE t\n  SET v = 1"),
        ])],
        ..Sample::default()
    }
}

#[test]
fn rates_are_of_the_time_between_two_readings() {
    let before = sample("10", "100", "50", &[("1", "90"), ("2", "10")]);
    let now = sample("12", "300", "150", &[("1", "190"), ("2", "10"), ("8", "100")]);
    let screen = render(&before, &now, "here");
    for line in [
        "statements  100.0/s, mean 0.00 ms, p50 <= 1.000 ms, p99 <= 8.000 ms, 0.0/s failed",
        "commits     0.0/s, 0.0/s rolled back, log wait -",
        "pool        100.0 % hits, 0 of 128.0 MB in use, 0 dirty",
        "blocked: 7 waits 2.5 s for row (1,2) of t, held by 3,4: UPDATE t SET v = 1",
    ] {
        assert!(screen.lines().any(|l| l == line), "{line:?} is not in\n{screen}");
    }
    let data = screen.lines().find(|l| l.starts_with("data on main, data")).expect("a line of the device");
    assert!(data.contains("100.0"), "{data}");
}

#[test]
fn nothing_counted_has_no_quantile() {
    assert_eq!(quantile(&[], &[], "statement", 0.5), None);
    let rows = [row(&[("name", "statement"), ("le_ms", "1"), ("count", "5")])];
    assert_eq!(quantile(&rows, &rows, "statement", 0.5), None);
    assert_eq!(quantile(&[], &rows, "other", 0.5), None);
    assert_eq!(quantile(&[], &rows, "statement", 0.99), Some(1.0));
}

#[test]
fn the_flash_tier_has_its_lines_where_there_is_one() {
    let with = |hits: &str, more: &[(&str, &str)]| {
        let columns =
            [("state", "on"), ("write_policy", "lazy-cleaning"), ("hits", hits), ("misses", "0"), ("frames", "256")];
        Sample { flash: row(&[&columns[..], more].concat()), ..sample("12", "0", "0", &[]) }
    };
    let screen = render(&with("0", &[]), &with("5", &[("time_to_clean_s", "3.2"), ("problem", "it is gone")]), "here");
    for part in ["flash       on (lazy-cleaning), 100.0 % hits", "clean in 3 s", "lost: it is gone"] {
        assert!(screen.contains(part), "{part:?} is not in\n{screen}");
    }
    assert!(!render(&sample("1", "0", "0", &[]), &sample("2", "0", "0", &[]), "here").contains("flash"));
}

#[test]
fn it_names_itself() {
    assert_eq!(own_version("15.0 (Terrace 0.1.0)"), "Terrace 0.1.0");
    assert_eq!(own_version("of some other kind"), "of some other kind");
}
