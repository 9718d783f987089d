//! Scans of more than memory has room for.

use crate::common::*;
use std::fs;

/// What is read ahead is freed by the tasks that read it: a scan that is long enough ran out of memory by it.
#[test]
fn a_long_scan_takes_no_memory_for_what_it_has_read() {
    let scratch = Scratch::new("scan");
    fs::create_dir(scratch.0.join("flash")).unwrap();
    // With a flash tier, each page that is read has a future of its own.
    let config = "[memory]\npool = \"16MB\"\nqueries = \"4MB\"\n[log]\nsegment_size = \"4MB\"\n[devices.main]\n\
                  [devices.flash]\npath = \"../flash\"\n[flash_tier]\ndevice = \"flash\"\nsize = \"64MB\"\n";
    let settings = scratch.write("settings.toml", config);
    good(&["init", &scratch.at("db"), "--config", settings.to_str().unwrap()], "");
    let server = Served::start(&scratch.at("db"));
    server.sql("CREATE TABLE t (id int PRIMARY KEY, filler text)");
    for part in 0..10 {
        server.sql(&format!(
            "INSERT INTO t SELECT {part} * 5000 + n, repeat('x', 700) FROM generate_series(1, 5000) AS g(n)"
        ));
    }
    let scans = ["SELECT count(id) AS n FROM t WHERE filler <> ''"; 30].join(" UNION ALL ");
    assert_eq!(server.sql(&format!("SELECT sum(n) FROM ({scans}) AS u")).lines().last(), Some("1500000"));
}
