use super::*;
use std::time::Duration;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("db/terrace.toml"))
}

fn problem(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn the_documented_file_is_the_defaults() {
    assert_eq!(parse(DEFAULT).unwrap(), Config::default());
    assert_eq!(parse("").unwrap(), Config::default());
}

/// A key that stands under the wrong table would be known, and read by nobody.
#[test]
fn every_documented_key_is_read() {
    fn leaves(table: &toml::Table, path: &str, found: &mut Vec<(String, String)>) {
        for (key, value) in table {
            match value {
                toml::Value::Table(inner) => leaves(inner, &format!("{path}{key}."), found),
                _ => found.push((path.trim_end_matches('.').to_owned(), key.clone())),
            }
        }
    }
    let mut keys = vec![];
    leaves(&DEFAULT.parse().unwrap(), "", &mut keys);
    assert!(keys.len() > 40 && keys.contains(&("server".into(), "auth".into())));
    for (table, key) in keys {
        let header = if table.is_empty() { String::new() } else { format!("[{table}]\n") };
        let problem = problem(&format!("{header}{key} = [[[]]]"));
        assert!(!problem.contains("unknown"), "{table}.{key}: {problem}");
    }
    assert_eq!(parse("[server]\nauth = \"password\"").unwrap().server.auth, AuthName::Password);
}

#[test]
fn settings_reach_the_engine() {
    let config = parse(
        "page_size = 16384\n[devices.ssd]\npath = \"/mnt/ssd\"\n[devices.hdd]\nbackend = \"threads\"\n\
         [tablespaces]\nlog = { device = \"ssd\", capacity = \"10GB\" }\nundo.device = \"ssd\"\n\
         data.device = \"hdd\"\ntemp.device = \"hdd\"\n[memory]\npool = \"64MB\"\npolicy = \"lru2\"\n\
         [limits]\nlock_timeout = \"250ms\"\n[server]\nlisten = \"[::1]:6000\"\n",
    )
    .unwrap();
    let storage = config.storage();
    assert_eq!((storage.page_size, storage.pool_bytes), (16384, 64 << 20));
    assert_eq!(storage.pool_policy, PoolPolicy::Lru2);
    assert_eq!(config.engine().lock_timeout, Duration::from_millis(250));
    assert_eq!(config.tablespaces.log.capacity, Capacity(10 << 30));
    assert_eq!(config.device_path(Path::new("/db"), "ssd"), Path::new("/mnt/ssd"));
    assert_eq!(config.devices["hdd"].backend, BackendName::Threads);
    assert_eq!(config.server.listen.port(), 6000);
}

/// What recovery gathers and the two segments that it reads.
#[test]
fn recovery_takes_64_mib_or_half_the_pool() {
    let taken = |text: &str| {
        let storage = parse(text).unwrap().storage();
        storage.redo_memory as u64 + 2 * storage.segment_size
    };
    assert_eq!(taken(""), 64 << 20);
    assert_eq!(taken("[memory]\npool = \"16MB\""), 64 << 20);
    assert_eq!(taken("[memory]\npool = \"1GB\""), 512 << 20);
    assert_eq!(taken("[log]\nsegment_size = \"1MB\""), 64 << 20);
    assert_eq!(taken("[log]\nsegment_size = \"64MB\""), (128 + 16) << 20, "segments count as they are");
}

#[test]
fn what_can_be_off_says_so() {
    let config = parse(
        "[server]\nmetrics = \"127.0.0.1:9187\"\n[logging]\nformat = \"json\"\nmin_duration_statement = \"250ms\"\n\
         lock_waits = \"off\"\n",
    )
    .unwrap();
    assert_eq!(config.server.metrics.0.unwrap().port(), 9187);
    assert_eq!(config.logging.format, LogFormat::Json);
    let options = config.logging.options();
    assert_eq!((options.min_duration, options.lock_wait), (Some(Duration::from_millis(250)), None));
    let options = Config::default().logging.options();
    assert_eq!((options.min_duration, options.lock_wait), (None, Some(Duration::from_secs(1))));
    assert!(problem("[server]\nmetrics = \"here\"").contains("invalid socket address"));
    assert!(problem("[logging]\nlock_waits = \"5\"").contains("\"5\" is not a time such as"));
}

#[test]
fn unknown_keys_are_refused_with_a_suggestion() {
    for (text, expected) in [
        (
            "[memory]\npol = \"1GB\"",
            "db/terrace.toml line 2: unknown key \"memory.pol\"; did you mean \"memory.pool\"?",
        ),
        ("pagesize = 1", "line 1: unknown key \"pagesize\"; did you mean \"page_size\"?"),
        ("redo_bound = \"1GB\"", "unknown key \"redo_bound\"; did you mean \"log.redo_bound\"?"),
        ("[device.main]", "unknown key \"device\"; did you mean \"devices\"?"),
        (
            "\n\n[devices.ssd]\npaht = \"x\"",
            "line 4: unknown key \"devices.ssd.paht\"; did you mean \"devices.ssd.path\"?",
        ),
        ("[limits]\nzzzzzz = 1", "unknown key \"limits.zzzzzz\"; known here: "),
        ("[logging]\nauth = \"password\"", "unknown key \"logging.auth\"; did you mean \"server.auth\"?"),
        ("memory = 3", "memory is a table: write [memory]"),
        ("[page_size]\nx = 1", "page_size is a key with a value"),
    ] {
        let problem = problem(text);
        assert!(problem.contains(expected), "{text:?} gives {problem:?}");
    }
}

#[test]
fn wrong_values_name_key_value_and_way_out() {
    for (text, expected) in [
        (
            "[tablespaces.log]\ndevice = \"man\"",
            "tablespaces.log.device = \"man\" names a device that is not defined; did you mean \"main\"?",
        ),
        ("[devices.ssd]\npath = \"/\"", "tablespaces.log.device = \"main\" names a device that is not defined"),
        ("page_size = \"5KB\"", "page_size = 5KB must be 4KB, 8KB, 16KB or 32KB"),
        ("[memory]\npool = \"1MB\"", "memory.pool = 1MB must be at least 256 pages: 2MB"),
        ("[log]\nredo_bound = \"3GB\"", "log.retention = 2GB must be at least log.redo_bound: 3GB"),
        ("[log]\nsegment_size = 1048577", "log.segment_size = 1048577B must be a multiple of 64KB"),
        (
            "[flash_tier]\ndevice = \"mian\"",
            "flash_tier.device = \"mian\" names a device that is not defined; did you mean",
        ),
        ("[flash_tier]\nsize = \"100KB\"", "flash_tier.size = 100KB must be at least 64 pages: 512KB"),
        ("[flash_tier]\ndirty_fraction = 1.5", "flash_tier.dirty_fraction = 1.5 must be from 0 to 1"),
        ("[flash_tier]\ncleaning_batch = 0", "flash_tier.cleaning_batch = 0 must be at least 1"),
        ("[flash_tier]\nexpanded_read = 65", "flash_tier.expanded_read = 65 must be from 1 to 64"),
        (
            "[flash_tier]\nwrite_budget = \"200GB\"\nrestart = \"memory-mapped\"",
            "it needs write_budget = \"off\", or another restart (\"instant\")",
        ),
        ("[flash_tier]\nrestart = \"warm\"", "restart"),
        ("[flash_tier]\nwrite_budget = \"1MB\"", "flash_tier.write_budget = 1MB must be \"off\", or at least"),
        (
            "[flash_tier]\nwrite_budget = \"0 DWPD\"",
            "\"0 DWPD\" is not bytes a day such as \"200GB\", or drive writes per day",
        ),
        (
            "[flash_tier]\nendurance = \"1MB\"",
            "flash_tier.endurance = 1MB must be \"off\", or at least flash_tier.size",
        ),
        ("[flash_tier]\nwrite_policy = \"rotating\"", "it needs replacement = \"fifo\", not \"lru2-history\""),
        ("[flash_tier]\nwrite_policy = \"heterodrive\"", "it needs replacement = \"fifo\", not \"lru2-history\""),
        ("[flash_tier]\nwrite_policy = \"lzy\"", "expected one of `clean-write`, `dual-write`, `lazy-cleaning`"),
        ("[memory]\npool = \"lots\"", "\"lots\" is not a size such as \"128MB\""),
        ("[memory]\npool = -5", "-5 is not a size"),
        ("[limits]\nlock_timeout = 5", "5 is not a time such as \"5s\", with its unit"),
        ("[memory]\npolicy = \"mru\"", "expected one of `lru`, `clock`, `lru2`"),
        ("[server]\nlisten = \"0.0.0.0:5433\"", "0.0.0.0:5433 is not a loopback address"),
        ("[server]\nmax_connections = 0", "server.max_connections = 0 must be at least 1"),
        ("[server]\nthreads = 2000", "server.threads = 2000 must be at most 1024"),
        ("[memory\n", "line 1"),
    ] {
        let problem = problem(text);
        assert!(problem.contains(expected), "{text:?} gives {problem:?}");
    }
}

#[test]
fn sizes_and_times_print_as_they_are_read() {
    for text in ["1B", "3KB", "128MB", "1GB", "1025B", "2TB"] {
        assert_eq!(Size::parse(text).unwrap().to_string(), text);
    }
    for text in ["1ms", "1500ms", "5s", "30min", "1h", "7d", "0s"] {
        assert_eq!(Span::parse(text).unwrap().to_string(), text);
    }
    assert_eq!(Size::parse("18446744073709551616"), None);
    assert_eq!(Size::parse("99999999999TB"), None);
    assert_eq!(Size::parse("1.5GB"), None);
}

#[test]
fn a_write_budget_is_bytes_or_drive_writes() {
    let budget = |text: &str| {
        let tier = parse(&format!("[flash_tier]\nsize = \"10GB\"\nwrite_budget = {text}")).unwrap().flash_tier;
        tier.storage().write_budget
    };
    assert_eq!(budget("\"off\""), None);
    assert_eq!(budget("\"200GB\""), Some(200 << 30));
    assert_eq!(budget("\"1.5 DWPD\""), Some(15 << 30));
    assert_eq!(budget("\"2dwpd\""), Some(20 << 30));
    assert_eq!(DailyWrites::parse("1.5 DWPD").unwrap().to_string(), "1.5 DWPD");
}
