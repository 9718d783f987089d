//! A pool over a home in memory that counts, waits, fails on demand, and checks what the pool owes it.

use super::{Access, Pool};
use crate::config::{PoolPolicy, StorageConfig};
use crate::error::{BadPage, Result, StorageError};
use crate::home::{Fetched, Home, HomeFuture, Reason, Tier, WriteBack};
use crate::log::{Log, LogUse};
use crate::mtr::{LogPermit, Mtr};
use crate::page::op::PageOp;
use crate::page::{PageKind, header, slotted};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::types::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use terrace_device::{IoBuf, MemoryDevice};
use terrace_env::Env;

pub(crate) const PAGE: usize = 4096;

#[derive(Default)]
pub(crate) struct Inside {
    pub(crate) pages: BTreeMap<PageId, Vec<u8>>,
    /// Every request: first page and count.
    pub(crate) reads: Vec<(PageId, u32)>,
    pub(crate) writes: Vec<(Vec<PageId>, Reason)>,
    pub(crate) evicted_clean: Vec<PageId>,
    pub(crate) dirtied: Vec<PageId>,
    pub(crate) forgotten: Vec<(u32, u32)>,
    /// What `dirtied` says of a page that is dirty below the pool.
    pub(crate) rec_lsns: BTreeMap<PageId, Lsn>,
    writing: BTreeSet<PageId>,
}

pub(crate) struct MemoryHome {
    env: Env,
    log: Log,
    delay: Option<Duration>,
    pub(crate) inside: Mutex<Inside>,
    pub(crate) fail_reads: AtomicBool,
    pub(crate) fail_writes: AtomicBool,
    /// Writes stand still while set.
    pub(crate) hold_writes: AtomicBool,
    /// Durable before the log was: as many pages (R4 is broken).
    pub(crate) ahead_of_log: AtomicU64,
}

impl MemoryHome {
    async fn pause(&self) {
        if let Some(delay) = self.delay {
            self.env.sleep(delay).await;
        }
    }
}

impl Home for MemoryHome {
    fn fetch(&self, first: PageId, count: u32, _access: Access) -> HomeFuture<'_, Vec<Result<Fetched>>> {
        Box::pin(async move {
            self.inside.lock().reads.push((first, count));
            self.pause().await;
            let inside = self.inside.lock();
            let read = |no| {
                let page = PageId::new(first.space, no);
                if self.fail_reads.load(Ordering::Acquire) {
                    return Err(StorageError::Damaged("read fails".into()));
                }
                let why = BadPage::Blank;
                let bytes = inside.pages.get(&page).ok_or(StorageError::BadPage { page, why })?;
                Ok(Fetched { bytes: IoBuf::padded(bytes), tier: Tier::Disk, leaves: false })
            };
            (first.no..first.no + count).map(read).collect()
        })
    }
    fn create(&self, _page: PageId) {}
    fn dirtied(&self, page: PageId) -> Option<Lsn> {
        let mut inside = self.inside.lock();
        inside.dirtied.push(page);
        inside.rec_lsns.remove(&page)
    }
    fn write_back(&self, pages: Vec<WriteBack>, reason: Reason) -> HomeFuture<'_, Result<()>> {
        Box::pin(async move {
            {
                let mut inside = self.inside.lock();
                for page in &pages {
                    assert!(inside.writing.insert(page.page), "two writes of {} at a time", page.page);
                    assert!(header::verify(&page.bytes, page.page) == Ok(()), "an unsealed copy");
                    assert!(page.rec_lsn < page.lsn && header::lsn(&page.bytes) == page.lsn);
                    self.ahead_of_log.fetch_add((self.log.durable() < page.lsn) as u64, Ordering::AcqRel);
                }
                inside.writes.push((pages.iter().map(|p| p.page).collect(), reason));
            }
            self.pause().await;
            while self.hold_writes.load(Ordering::Acquire) {
                self.env.sleep(Duration::from_millis(1)).await;
            }
            let mut inside = self.inside.lock();
            for page in &pages {
                inside.writing.remove(&page.page);
            }
            if self.fail_writes.load(Ordering::Acquire) {
                return Err(StorageError::Damaged("write fails".into()));
            }
            for page in pages {
                inside.pages.insert(page.page, page.bytes.to_vec());
            }
            Ok(())
        })
    }
    fn evicted_clean(&self, page: PageId, bytes: &[u8], _access: Access) {
        let mut inside = self.inside.lock();
        assert_eq!(inside.pages[&page][4..], bytes[4..], "page {page} was evicted as clean and differs from its home");
        inside.evicted_clean.push(page);
    }
    fn forget(&self, _space: SpaceId, first: u32, count: u32) {
        self.inside.lock().forgotten.push((first, count));
    }
    fn oldest_rec_lsn(&self) -> Option<Lsn> {
        None
    }
    fn sync(&self) -> HomeFuture<'_, Result<()>> {
        Box::pin(async { Ok(()) })
    }
    fn failure(&self) -> Option<StorageError> {
        None
    }
}

#[derive(Clone)]
pub(crate) struct Fixture {
    pub(crate) env: Env,
    pub(crate) pool: Arc<Pool>,
    pub(crate) home: Arc<MemoryHome>,
    pub(crate) log: Log,
}

pub(crate) fn page(no: u32) -> PageId {
    PageId::new(DATA, no)
}

pub(crate) fn config(frames: usize) -> StorageConfig {
    StorageConfig {
        page_size: PAGE,
        pool_bytes: frames * PAGE,
        segment_size: 1 << 20,
        write_group: 8,
        ..StorageConfig::default()
    }
}

pub(crate) async fn fixture(env: Env, frames: usize) -> Fixture {
    fixture_with(env, config(frames), Some(Duration::from_micros(100))).await
}

pub(crate) async fn fixture_with(env: Env, config: StorageConfig, delay: Option<Duration>) -> Fixture {
    let log = Log::unopened(env.clone(), Arc::new(MemoryDevice::new("log", 1 << 30)), 7, &config);
    log.format().await.expect("a memory device takes a log");
    log.start(1, Lsn(0)).await.expect("a fresh log starts");
    let home = Arc::new(MemoryHome {
        env: env.clone(),
        log: log.clone(),
        delay,
        inside: Mutex::default(),
        fail_reads: AtomicBool::new(false),
        fail_writes: AtomicBool::new(false),
        hold_writes: AtomicBool::new(false),
        ahead_of_log: AtomicU64::new(0),
    });
    let pool = Pool::new(env.clone(), &config, home.clone(), log.clone());
    Fixture { env, pool, home, log }
}

pub(crate) fn policies() -> [PoolPolicy; 3] {
    [PoolPolicy::Lru, PoolPolicy::Clock, PoolPolicy::Lru2]
}

impl Fixture {
    /// Puts pages `range` in the home, each with a cell that tells its number.
    pub(crate) fn seed(&self, range: std::ops::Range<u32>) {
        for no in range {
            let mut bytes = vec![0; PAGE];
            PageOp::Format { kind: PageKind::Heap, owner: ObjectId(1), special: 0 }.apply(&mut bytes, page(no));
            PageOp::Put { slot: 0, cell: &(no as u64).to_le_bytes() }.apply(&mut bytes, page(no));
            header::seal(&mut bytes);
            self.home.inside.lock().pages.insert(page(no), bytes);
        }
    }

    pub(crate) async fn permit(&self) -> LogPermit {
        self.log.reserve(16 << 10, LogUse::Normal).await.expect("the log has room")
    }

    /// Reads the number in a page's first cell.
    pub(crate) async fn value(&self, no: u32) -> Result<u64> {
        let pin = self.pool.fetch(page(no), Access::Random).await?;
        let bytes = pin.read();
        assert_eq!(header::id(&bytes), page(no));
        Ok(value_of(&bytes))
    }

    /// Sets the number in a page's first cell.
    pub(crate) async fn set(&self, no: u32, value: u64) -> Result<Lsn> {
        let pin = self.pool.fetch(page(no), Access::Random).await?;
        let permit = self.log.reserve(1 << 10, LogUse::Normal).await?;
        let mut mtr = Mtr::new(&self.pool, permit);
        let at = mtr.latch(&pin);
        mtr.apply(at, PageOp::Patch { slot: 0, offset: 0, bytes: &value.to_le_bytes() });
        Ok(mtr.commit())
    }
}

pub(crate) fn value_of(bytes: &[u8]) -> u64 {
    let cell = slotted::cell(bytes, 0).expect("the first slot is taken");
    u64::from_le_bytes(cell.try_into().expect("eight bytes"))
}
