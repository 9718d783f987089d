//! Which pages are read from the disk: those of indexes, or those of rows. The papers' tables are clustered by their
//! keys; ours are heaps beside an index, whose pages are read and hardly ever change.
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use std::pin::Pin;
use terrace_device::emulate::Emulator;
use terrace_device::latency::{Delay, Operation};
use terrace_engine::Database;
use terrace_storage::DATA;
use terrace_storage::home::PAGES_AT;

/// The disk's delays, and what was read there.
pub(super) struct Watched {
    delay: Emulator,
    read: Mutex<Reads>,
}

#[derive(Default)]
struct Reads {
    /// Where those began that are not classified yet.
    new: Vec<u64>,
    /// Reads that began with a page of an index.
    of_indexes: u64,
}

impl Watched {
    pub(super) fn new(delay: Emulator) -> Watched {
        Watched { delay, read: Mutex::default() }
    }

    /// Nanoseconds that each spindle has been at work.
    pub(super) fn served(&self) -> Vec<u64> {
        self.delay.served()
    }

    /// Reads of index pages so far.
    pub(super) fn index_reads(&self, database: &Database) -> u64 {
        let mut read = self.read.lock();
        if read.new.is_empty() {
            return read.of_indexes;
        }
        let (catalog, store) = (database.catalog(), database.store());
        let indexes = catalog.tables().flat_map(|table| table.indexes.iter());
        let pages: FxHashSet<u32> =
            indexes.flat_map(|index| store.space(DATA).pages(index.oid, 0, usize::MAX)).collect();
        let size = store.config().page_size as u64;
        let page = |offset: u64| offset.checked_sub(PAGES_AT).and_then(|at| u32::try_from(at / size).ok());
        let of_indexes = std::mem::take(&mut read.new).into_iter().filter_map(page).filter(|no| pages.contains(no));
        read.of_indexes += of_indexes.count() as u64;
        read.of_indexes
    }
}

impl Delay for Watched {
    fn serve(&self, operation: Operation, offset: u64, bytes: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        if operation == Operation::Read {
            self.read.lock().new.push(offset);
        }
        self.delay.serve(operation, offset, bytes)
    }
}
