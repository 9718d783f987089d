//! The group-commit ceiling of a device: how many durable commits a second it can do at most, where N clients commit at
//! the same time and one write and one sync serve them all.
//!
//! ```sh
//! cd bench/embedded && cargo run --release --bin ceiling -- DIRECTORY [BYTES_PER_COMMIT]
//! ```
//!
//! Groups of 1, 8 and 32 commits are written one after the other to a log file of zeros, as Terrace's log writer does,
//! each followed by `fdatasync`. No database can commit faster with that many clients on that device, where each waits
//! for its commit.

use std::path::Path;
use std::time::{Duration, Instant};
use terrace_device::{Device, FileDevice, IoBuf, OpenOptions, Purpose};

const FILE: u64 = 256 << 20;
const SECTOR: u64 = 4096;
const ROUND: Duration = Duration::from_secs(3);

/// Groups a second: the median of five rounds, with the lowest and the highest.
async fn rounds(device: &FileDevice, bytes: usize) -> [f64; 3] {
    let mut rates = vec![];
    for _ in 0..5 {
        let (start, mut groups, mut at) = (Instant::now(), 0u32, 0u64);
        while start.elapsed() < ROUND {
            // Each begins with the sector in which the last one ended.
            let from = at / SECTOR * SECTOR;
            let length = (at - from) as usize + bytes;
            device.write(from, IoBuf::padded(&vec![7; length]), Purpose::Log).await.expect("the device takes writes");
            device.sync(Purpose::Log).await.expect("the device syncs");
            at = (at + bytes as u64) % (FILE - (1 << 20));
            groups += 1;
        }
        rates.push(f64::from(groups) / start.elapsed().as_secs_f64());
    }
    rates.sort_unstable_by(f64::total_cmp);
    [rates[2], rates[0], rates[4]]
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().expect("a directory on the device to be measured");
    let each: usize = arguments.next().map_or(1500, |bytes| bytes.parse().expect("bytes that a commit logs"));
    let path = Path::new(&directory).join(format!("ceiling-{}", std::process::id()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let options = OpenOptions { create: true, zero: true, ..OpenOptions::default() };
        let device = FileDevice::open(&path, &options).expect("a writable directory");
        device.allocate(0, FILE).await.expect("room for the file");
        device.sync(Purpose::Log).await.expect("the device syncs");
        println!("| commits in a group | groups/s (lowest to highest) | ceiling, commits/s |\n|---:|---:|---:|");
        for group in [1, 8, 32] {
            let [median, low, high] = rounds(&device, group * each).await;
            println!("| {group} | {median:.0} ({low:.0} to {high:.0}) | {:.0} |", median * group as f64);
        }
    });
    std::fs::remove_file(&path).expect("it was made here");
}
