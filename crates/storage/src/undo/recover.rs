//! After redo: what the segments' tails say at once (which transactions lost, where ids go on), and the finished
//! transactions behind them. The latter are read later, one by one: there may be millions, and only purge needs them.
use super::format::{Begin, ExtentEntry, Layout, SlotEntry, StoredState, TailState};
use super::*;
use crate::bytes::{U32, front};
use futures::StreamExt;
use terrace_env::yield_now;

/// Tail pages read at once.
const IN_FLIGHT: usize = 16;

/// Finished transactions that purge has not consumed and nobody has read yet: for each segment where to go on,
/// backwards.
#[derive(Default)]
pub struct Unread(Vec<Walk>);

struct Walk {
    slot: u32,
    consumed: TxnId,
    state: TailState,
}

impl Unread {
    /// The next one, of one segment after the other, each from its last one back. What was read is not read again after
    /// an error.
    pub async fn next(&mut self, st: &Store) -> Result<Option<History>> {
        while let Some(walk) = self.0.last_mut() {
            if walk.state.txn <= walk.consumed {
                self.0.pop();
                continue;
            }
            let (slot, state) = (walk.slot, walk.state);
            let begin = st.undo().read_begin(st, state.begin).await?;
            if begin.txn != state.txn || begin.previous.txn >= state.txn {
                return Err(StorageError::Damaged(format!("undo segment {slot}: {:?} does not follow", state.txn)));
            }
            walk.state = begin.previous;
            if let Some(history) = state.history(slot) {
                return Ok(Some(history));
            }
        }
        Ok(None)
    }
}

impl UndoSpace {
    /// After redo: losers to roll back, and what there is to purge. New transactions end behind all of those.
    pub async fn recover(&self, st: &Store) -> Result<(Vec<Loser>, Unread)> {
        let layout = Layout { page_size: st.pool().page_size() };
        self.read_directory(st, layout).await?;
        let slots = self.inner.lock().slots.clone();
        let mut tails: Vec<u32> = slots.iter().map(|slot| slot.tail_page).filter(|no| *no != 0).collect();
        tails.sort_unstable();
        tails.truncate(st.pool().frames() / 4);
        let read = |no| async move { drop(st.pool().fetch(PageId::new(UNDO, no), Access::Random).await) };
        futures::stream::iter(tails).for_each_concurrent(IN_FLIGHT, read).await; // A failure shows again below.
        let (mut losers, mut unread) = (Vec::new(), Vec::new());
        for (no, slot) in slots.iter().enumerate() {
            let no = no as u32;
            let (mut last, mut seq, mut free) = (slot.consumed, 0, true);
            if slot.tail_page != 0 {
                let tail = st.pool().fetch(PageId::new(UNDO, slot.tail_page), Access::Random).await?;
                let state = TailState::decode(slotted::special(&tail.read()));
                last = last.max(state.txn);
                free = state.state != StoredState::Active;
                seq = state.seq;
                if !free {
                    seq = self.read_begin(st, state.begin).await?.previous.seq;
                    let writer =
                        UndoWriter { txn: state.txn, slot: no, tail: Some(tail), begin: state.begin, top: state.top };
                    losers.push(Loser { writer, next: state.top });
                }
                unread.push(Walk { slot: no, consumed: slot.consumed, state });
            }
            let mut inner = self.inner.lock();
            inner.next_txn = inner.next_txn.max(last.0 + 1);
            // In a segment they ascend: none before the last is higher.
            inner.next_seq = inner.next_seq.max(seq + 1);
            inner.slots[no as usize].last = last;
            if free {
                inner.free_slots.insert(no);
            }
        }
        Ok((losers, Unread(unread)))
    }

    /// Shows what a transaction found after a crash has written: the body of every record from its first to the page of
    /// the last that is not undone. Some may be undone already. Reads these pages once, many at a time. `each` says
    /// whether to go on.
    pub async fn survey(
        &self,
        st: &Store,
        writer: &UndoWriter,
        mut each: impl FnMut(&[u8]) -> bool + Send,
    ) -> Result<()> {
        for (first, end) in self.written(st, writer)? {
            let mut ahead = first;
            for no in first..end {
                if no == ahead {
                    let count = (end - no).min(st.config().read_ahead.max(1) as u32);
                    st.pool().prefetch(UNDO, no, count).await;
                    yield_now().await;
                    ahead = no + count;
                }
                let pin = st.pool().fetch(PageId::new(UNDO, no), Access::Sequential).await?;
                let page = pin.read();
                let records = (0..slotted::slot_count(&page)).filter_map(|at| slotted::cell(&page, at));
                let mut own = records.filter_map(format::decode_record).filter(|record| record.txn == writer.txn);
                if !own.all(|record| each(&record.body)) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The pages of these records: first and end of each run of neighbours.
    fn written(&self, st: &Store, writer: &UndoWriter) -> Result<Vec<(u32, u32)>> {
        if writer.top.is_none() {
            return Ok(Vec::new());
        }
        let per_extent = Layout { page_size: st.pool().page_size() }.pages_per_extent();
        let (begin, top) = (writer.begin.page(), writer.top.page());
        let inner = self.inner.lock();
        let extents = &inner.slots[writer.slot as usize].extents;
        let place = |page: u32| extents.iter().position(|extent| *extent == page / per_extent);
        let (Some(from), Some(to)) = (place(begin), place(top)) else {
            return Err(StorageError::Damaged(format!(
                "undo segment {}: pages {begin} to {top} of {:?} are not in its extents",
                writer.slot, writer.txn
            )));
        };
        let run = |extent: &u32| {
            let (first, end) = (extent * per_extent, (extent + 1) * per_extent);
            let first = if begin / per_extent == *extent { begin } else { first };
            (first, if top / per_extent == *extent { top + 1 } else { end })
        };
        Ok(extents.range(from..to + 1).map(run).collect())
    }

    pub(super) async fn read_begin(&self, st: &Store, ptr: UndoPtr) -> Result<Begin> {
        let pin = st.pool().fetch(PageId::new(UNDO, ptr.page()), Access::Random).await?;
        let page = pin.read();
        let begin = slotted::cell(&page, ptr.offset()).and_then(Begin::decode);
        begin.ok_or_else(|| StorageError::Damaged(format!("no begin mark at {ptr:?}")))
    }

    /// Fills the memory of segments and extents.
    async fn read_directory(&self, st: &Store, layout: Layout) -> Result<()> {
        let (mut owners, mut next) = (Vec::new(), Vec::new());
        let mut slots: Vec<Slot> = Vec::new();
        let mut heads = Vec::new();
        let (mut page_no, mut count) = (1, 1);
        while page_no <= count {
            let pin = st.pool().fetch(PageId::new(UNDO, page_no), Access::Sequential).await?;
            let page = pin.read();
            if page_no == 1 {
                // At its place whatever the page says of its special area's length: what is no directory is damage.
                count = front::<U32>(&page[slotted::SPECIAL_START..]).get();
                if count == 0 || count > layout.max_directories() {
                    return Err(StorageError::Damaged(format!("the undo directory claims {count} pages")));
                }
            }
            let from = (page_no - 1) * layout.slots_per_directory();
            for slot in from..from + layout.slots_per_directory() {
                let entry = SlotEntry::decode(&page, layout.slot_entry(slot).1);
                slots.push(Slot { consumed: entry.consumed, tail_page: entry.tail_page, ..Slot::default() });
                heads.push(entry.head_extent);
            }
            let from = (page_no - 1) * layout.extents_per_directory();
            for extent in from..from + layout.extents_per_directory() {
                let entry: &ExtentEntry = front(&page[layout.extent_entry(extent).1 as usize..]);
                owners.push(entry.owner.get());
                next.push(entry.next.get());
            }
            page_no += 1;
        }
        // Extents in use, and what else the device has allocated. An allocation may have been lost in a crash while the
        // log remembers pages in it: it is made again.
        let used = owners.iter().rposition(|o| *o != 0).map_or(1, |last| last as u32 + 1);
        let allocated = (st.space_bytes(UNDO) / format::EXTENT_BYTES).min(owners.len() as u64) as u32;
        for extent in allocated..used {
            space::allocate(st, extent).await?;
        }
        let extents = used.max(allocated);
        owners.truncate(extents as usize);
        for (no, slot) in slots.iter_mut().enumerate().filter(|(_, s)| s.tail_page != 0) {
            let last = slot.tail_page / layout.pages_per_extent();
            let mut extent = heads[no];
            loop {
                if extent == 0
                    || extent >= extents
                    || owners[extent as usize] != no as u32 + 1
                    || slot.extents.len() > extents as usize
                {
                    return Err(StorageError::Damaged(format!(
                        "undo segment {no}: its extents ({:?}, then {extent}) do not lead to its tail, page {}",
                        slot.extents, slot.tail_page
                    )));
                }
                slot.extents.push_back(extent);
                if extent == last {
                    break;
                }
                extent = next[extent as usize];
            }
        }
        let mut inner = self.inner.lock();
        inner.free_extents = (1..extents).filter(|e| owners[*e as usize] == 0).collect();
        inner.directories = count;
        inner.slots = slots;
        inner.owners = owners;
        inner.free_slots.clear();
        Ok(())
    }
}
