//! A partition's structures against a model, and the memory they take.

mod flow;
pub(crate) mod home;
mod journal;

use crate::flash::layout::{ENTRIES, Entry};
use crate::flash::partition::{Cleaned, Due, Found, Lacks, Noted, Partition, Totals, Written, frame_bytes};
use crate::flash::record::FrameState;
use crate::flash::tune::Shape;
use crate::types::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use terrace_policy::Class;
use terrace_policy::flash::FlashOrder;

/// The records' share is 36 bytes; a history takes 10 more; TAC's extents (70 bytes each of the extents known, 32 pages
/// apiece) come on top of its 48.
#[test]
fn a_frame_takes_62_bytes_of_memory_at_most() {
    assert_eq!(FlashOrder::ALL.map(frame_bytes), [52, 62, 44, 48, 52]);
}

#[test]
fn frames_are_shared_out() {
    assert_eq!(Shape::new(24, false), Shape { parts: 1, each: 24 });
    assert_eq!(Shape::new(400, false), Shape { parts: 6, each: 64 });
    assert_eq!(Shape::new(1 << 20, false), Shape { parts: 16, each: 1 << 16 });
    assert_eq!(Shape::new(10_000, false), Shape { parts: 16, each: 624 });
    assert_eq!(Shape::new(10_000, true), Shape { parts: 1, each: 10_000 }, "one turn for all");
}

fn page(no: u64) -> PageId {
    PageId::new(DATA, no as u32)
}

/// A partition and what should be in it.
struct Checked {
    part: Partition,
    totals: Arc<Totals>,
    /// Pages in the tier with their recLSNs; those whose frame was kept; frames in transfer.
    model: BTreeMap<u64, Option<Lsn>>,
    kept: BTreeSet<u64>,
    writing: Vec<(u32, bool)>,
    cleaning: Vec<u32>,
    readers: Vec<u32>,
    /// A shrink is under way.
    shrinking: bool,
    turns: bool,
}

impl Checked {
    fn new(order: FlashOrder, frames: u32) -> Checked {
        let totals = Arc::new(Totals::default());
        let mut part = Partition::new(totals.clone());
        part.set_order(order);
        part.grow(frames);
        let (model, kept, writing) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        let (cleaning, readers) = (Vec::new(), Vec::new());
        Checked { part, totals, model, kept, writing, cleaning, readers, shrinking: false, turns: false }
    }

    fn allocate(&mut self, no: u64, rec: Option<Lsn>, lsn: u64) {
        // A kept frame is given up for this, even where no other can be had.
        self.kept.remove(&no);
        let Ok(allocated) = self.part.allocate(page(no), rec, Lsn(lsn)) else { return };
        if let Some(gone) = allocated.evicted {
            let gone = u64::from(gone.no);
            if !self.kept.remove(&gone) {
                assert_eq!(
                    self.model.remove(&gone).expect("what is evicted was there"),
                    None,
                    "dirty pages are not evicted"
                );
            }
        }
        self.model.insert(no, rec);
        assert!(self.part.start_write(allocated.frame));
        self.writing.push((allocated.frame, rec.is_some()));
    }

    fn invalidate(&mut self, no: u64, keep: bool) {
        let expected = self.model.remove(&no);
        let rec = self.part.invalidate(page(no), keep, true);
        assert_eq!(rec, expected);
        if self.part.is_kept(page(no)) == Some(true) {
            assert!(keep || self.kept.contains(&no));
            self.kept.insert(no);
        }
        if let Some(Some(rec)) = rec {
            assert!(self.part.oldest_rec().is_some_and(|oldest| oldest <= rec), "rising recLSNs count");
            self.part.risen(page(no), rec);
            assert!(self.part.oldest_rec().is_some_and(|oldest| oldest <= rec), "until the next scan begins");
        }
    }

    fn end_clean(&mut self, which: usize, how: Cleaned) {
        let frame = self.cleaning.swap_remove(which);
        let at = u64::from(self.part.record(frame).page().no);
        if self.part.end_clean(frame, how) {
            match how {
                Cleaned::Home if self.part.find(page(at)).is_some() => drop(self.model.insert(at, None)),
                Cleaned::Home => assert!(self.shrinking && self.model.remove(&at).is_some()),
                Cleaned::Unreadable => drop(self.model.remove(&at)),
                Cleaned::Failed => {}
            }
        }
    }

    /// Another size, order, or frames in turn.
    fn reshape(&mut self, random: u64) {
        if self.shrinking {
            self.shrinking = !self.part.end_shrink(0);
            return;
        }
        match random % 4 {
            0 => self.part.grow((self.part.frames() + random as u32 / 4 % 9).min(40)),
            1 => {
                self.part.begin_shrink(self.part.frames() - (random as u32 / 4 % 9).min(self.part.frames()));
                self.shrinking = !self.part.end_shrink(0);
                // Clean pages in frames that go are dropped at once.
                let there = |no: &u64| self.part.find(page(*no)).is_some();
                self.model.retain(|no, rec| rec.is_some() || there(no));
                self.kept.retain(there);
            }
            2 => {
                self.part.set_order(FlashOrder::ALL[random as usize / 4 % FlashOrder::ALL.len()]);
                self.part.keep_bases((random / 32).is_multiple_of(2));
            }
            _ => {
                self.turns = !self.turns;
                self.part.set_turns(self.turns);
                for dropped in self.part.drop_kept() {
                    assert!(self.kept.remove(&u64::from(dropped.no)));
                }
            }
        }
    }

    fn check(&self) {
        self.part.assert_sound();
        for no in 0..40 {
            let found = self.part.find(page(no));
            assert_eq!(found.is_some(), self.model.contains_key(&no) || self.kept.contains(&no), "page {no}");
            if let Some(frame) = found {
                assert_ne!(self.part.record(frame).state(), FrameState::Free);
                assert_eq!(self.part.is_kept(page(no)), Some(self.kept.contains(&no)), "page {no}");
            }
        }
        assert_eq!(self.part.oldest_dirty(), self.model.values().flatten().min().copied());
        let used = (0..self.part.frames()).filter(|&f| self.part.record(f).state() != FrameState::Free).count();
        assert_eq!(self.totals.used.load(Ordering::Acquire), used);
    }
}

fn run(seed: u64, order: FlashOrder, reshape: bool) {
    let mut it = Checked::new(order, 16);
    let mut random = 77 + seed;
    for step in 0..40_000u64 {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let (what, no) = ((random >> 33) % 9, (random >> 40) % 40);
        match what {
            0 | 1 if !it.model.contains_key(&no) => {
                it.allocate(no, (what == 0).then_some(Lsn(step << 20 | 5)), step << 20 | 6);
            }
            2 | 3 if !it.writing.is_empty() => {
                let (frame, dirty) = it.writing.swap_remove(no as usize % it.writing.len());
                let (page, void) = (it.part.record(frame).page(), it.part.record(frame).is_void());
                let how = if dirty { Written::Dirty } else { Written::Clean };
                if !it.part.end_write(frame, how) && !void {
                    assert!(it.shrinking && !dirty);
                    it.model.remove(&u64::from(page.no));
                }
            }
            4 => it.invalidate(no, step % 3 == 0),
            5 => {
                let oldest = it.part.oldest_cleanable().map(|(_, frame)| frame);
                let coldest = if step % 2 == 0 { it.part.coldest_cleanable() } else { None };
                assert!(coldest.is_none() || oldest.is_some());
                if let Some(first) = coldest.or(oldest) {
                    it.cleaning.extend(it.part.start_clean(first, 4).into_iter().map(|(_, frame)| frame));
                }
            }
            6 if !it.cleaning.is_empty() => {
                let how = [Cleaned::Home, Cleaned::Failed, Cleaned::Unreadable][step as usize % 3];
                it.end_clean(no as usize % it.cleaning.len(), how);
            }
            7 => {
                if let Some(frame) = it.part.find(page(no))
                    && it.part.record(frame).readers() < 3
                    && it.part.pin(frame).is_some()
                {
                    it.readers.push(frame);
                } else {
                    it.part.missed(page(no), Class::Random);
                }
            }
            8 if !it.readers.is_empty() => {
                let frame = it.readers.swap_remove(no as usize % it.readers.len());
                it.part.unpin(frame, (step % 2 == 0).then_some(Class::Random));
            }
            _ if reshape && step % 7 == 0 => it.reshape(random >> 20),
            _ => it.part.begin_scan(),
        }
        it.check();
    }
}

#[test]
fn a_partition_keeps_its_invariants() {
    for (seed, order) in FlashOrder::ALL.into_iter().enumerate() {
        run(seed as u64, order, false);
    }
}

#[test]
fn a_partition_keeps_its_invariants_while_it_changes() {
    for seed in 0..4 {
        run(100 + seed, FlashOrder::ALL[seed as usize], true);
    }
}

/// The frame that replacement would take first goes home first, though another has the older recLSN.
#[test]
fn cold_frames_are_told_from_old_ones() {
    let mut it = Checked::new(FlashOrder::Lru2, 8);
    for no in 0..3 {
        it.allocate(no, Some(Lsn(100 + no)), 200 + no);
        let (frame, _) = it.writing.pop().expect("it was allocated");
        assert!(it.part.end_write(frame, Written::Dirty));
    }
    // Pages 0 and 2 are read since.
    for no in [0, 2] {
        let frame = it.part.find(page(no)).expect("it is there");
        it.part.pin(frame);
        it.part.unpin(frame, Some(Class::Random));
    }
    let cold = it.part.coldest_cleanable().expect("three can be cleaned");
    let (_, old) = it.part.oldest_cleanable().expect("three can be cleaned");
    assert_eq!((it.part.record(cold).page(), it.part.record(old).page()), (page(1), page(0)));
}

/// Two frames: page 1 is used first and third, page 2 second and, once it has changed in memory and come back, last.
#[test]
fn a_page_that_changed_may_keep_its_last_use() {
    for (order, gone) in [(FlashOrder::Lru2, 2), (FlashOrder::Lru2History, 1)] {
        let mut part = Partition::new(Arc::default());
        part.set_order(order);
        part.grow(2);
        let admit = |part: &mut Partition, no: u64| {
            let allocated = part.allocate(page(no), None, Lsn(7)).unwrap_or_else(|why| panic!("page {no}: {why:?}"));
            assert!(part.start_write(allocated.frame) && part.end_write(allocated.frame, Written::Clean));
            allocated.evicted
        };
        assert_eq!((admit(&mut part, 1), admit(&mut part, 2)), (None, None));
        assert_eq!(part.invalidate(page(2), false, true), Some(None));
        let first = part.find(page(1)).expect("it was let in");
        assert_eq!(part.pin(first), Some(false));
        part.unpin(first, Some(Class::Random));
        assert_eq!(admit(&mut part, 2), None);
        assert_eq!(admit(&mut part, 3), Some(page(gone)), "{order:?}");
    }
}

/// A sector goes with its frames: not before the device has them as free.
#[test]
fn frames_go_when_their_records_are_hard() {
    let totals = Arc::new(Totals::default());
    let mut part = Partition::new(totals.clone());
    part.set_order(FlashOrder::Lru2);
    part.grow(ENTRIES as u32 + 4);
    for no in 0..ENTRIES as u64 + 2 {
        let frame = part.allocate(page(no), None, Lsn(7)).unwrap_or_else(|why| panic!("page {no}: {why:?}")).frame;
        assert!(part.start_write(frame) && part.end_write(frame, Written::Clean));
    }
    let named = |part: &mut Partition| part.list(1, (Lsn(1), 0), true).frames.into_iter().flatten().count();
    assert_eq!(named(&mut part), 2);
    part.begin_shrink(8);
    let last = totals.queue.tickets.load(Ordering::Acquire);
    assert!(last == 2 && !part.end_shrink(0) && !part.end_shrink(last - 1));
    assert_eq!(part.next_due(1, Due { changed: true, ..Due::default() }), Some(1), "it is to be written");
    assert_eq!(named(&mut part), 0);
    assert!(part.end_shrink(last));
    part.assert_sound();
}

/// Of two frames of a page the newer counts. The log drops what it has newer versions of, makes dirty what redo
/// repeats, and must know every version from the floor on.
#[test]
fn the_log_says_which_found_frames_are_current() {
    let totals = Arc::new(Totals::default());
    let mut part = Partition::new(totals.clone());
    part.set_order(FlashOrder::Lru2);
    part.grow(13);
    let versions = [(0, 1, 100), (2, 1, 110), (3, 2, 50), (4, 3, 120), (5, 4, 60), (6, 5, 20), (7, 6, 115)];
    for (frame, no, lsn) in
        versions.into_iter().chain([(8, 7, 55), (9, 8, 57), (10, 9, 58), (11, 10, 59), (12, 11, 75)])
    {
        assert!(part.find_again(frame, Entry::of(page(no), Lsn(lsn))), "page {no}");
    }
    assert!(!part.find_again(1, Entry::of(page(1), Lsn(109))), "an older version");
    assert!(!part.find_again(7, Entry::of(page(7), Lsn(1))), "the frame is another's");
    assert!(!part.find_again(13, Entry::of(page(13), Lsn(1))), "there is no such frame");
    assert!(!part.find_again(1, Entry::of(page(12), Lsn(1 << 56))), "no log is so long");
    let batch = |start, end, redo: Option<Option<u64>>| {
        let redo = redo.map(|before| before.map(Lsn));
        Noted { start: Lsn(start), end: Lsn(end), redo }
    };
    assert_eq!(part.note(page(1), batch(95, 100, None)), None, "below the redo LSN");
    assert_eq!(part.note(page(2), batch(70, 80, Some(Some(60)))), Some(false), "the frame lacks what was before");
    assert_eq!(part.note(page(1), batch(105, 110, Some(Some(100)))), None);
    // Bases: the log goes on from their version, which it has, or which is home.
    for (no, start, end, before) in [(7, 70, 80, 55), (7, 80, 90, 80), (8, 56, 57, 30), (8, 80, 90, 57)] {
        assert_eq!(part.note(page(no), batch(start, end, Some(Some(before)))), None);
    }
    assert!(part.found_with(page(8), Lsn(57)) && !part.found_with(page(8), Lsn(90)));
    // Not those: it goes on below the redo LSN, or begins afresh, or goes on from another version than it should.
    assert_eq!(part.note(page(9), batch(80, 90, None)), Some(false));
    assert_eq!(part.note(page(10), batch(80, 90, Some(None))), Some(false));
    assert_eq!(part.note(page(11), batch(60, 70, Some(Some(30)))), None, "it may be met yet");
    assert_eq!(part.note(page(11), batch(80, 90, Some(Some(70)))), Some(true));
    assert_eq!(part.note(page(3), batch(60, 70, Some(Some(30)))), None, "it may be met yet");
    let mut found = Vec::new();
    let missed = part.end_finding(Lsn(55), Lsn(115), |what| found.push(what));
    assert_eq!(missed, [page(3)], "redo has passed over a change of it");
    let bases = [Found::Base, Found::Base];
    assert_eq!(
        found,
        [&[Found::Dirty, Found::Unknown, Found::Unknown, Found::Clean, Found::Unknown], &bases[..]].concat()
    );
    part.assert_sound();
    assert_eq!((totals.used.load(Ordering::Acquire), part.oldest_dirty()), (4, Some(Lsn(56))));
    assert_eq!((part.find(page(1)), part.find(page(5))), (Some(2), Some(6)));
    assert_eq!(part.unread_dirty(), [(9, page(8)), (2, page(1))]);
    part.set_read(2);
    assert_eq!(part.unread_dirty(), [(9, page(8))]);
    // What it says is what is there; a sector that has not changed is written again only when it is old.
    let due = |old, changed| Due { old: Lsn(old), changed, ..Due::default() };
    assert_eq!(part.next_due(0, due(50, true)), None, "nothing has entered since");
    let listed: Vec<_> = part.list(0, (Lsn(40), 0), false).frames.into_iter().flatten().collect();
    assert_eq!(listed, [(1, 110), (5, 20), (7, 55), (8, 57)].map(|(no, lsn)| Entry::of(page(no), Lsn(lsn))));
    assert_eq!((part.next_due(0, due(40, true)), part.next_due(0, due(41, false))), (None, Some(0)));
    part.unlisted(0);
    assert_eq!(part.next_due(0, due(0, true)), Some(0));
}

/// What has entered is journaled once, or listed; what is journaled is listed before its number is used again.
#[test]
fn what_has_entered_is_journaled_or_listed() {
    let mut part = Partition::new(Arc::default());
    part.set_order(FlashOrder::Lru2);
    part.grow(2 * ENTRIES as u32);
    let admit = |part: &mut Partition, no: u64| {
        let frame = part.allocate(page(no), None, Lsn(100 + no)).expect("frames are free").frame;
        assert!(part.start_write(frame) && part.end_write(frame, Written::Clean));
        frame
    };
    let crowded = Due { crowded: true, ..Due::default() };
    let behind = |behind| Due { behind, ..Due::default() };
    let entry = |no: u64| (no as u32, Entry::of(page(no), Lsn(100 + no)));
    (0..31).for_each(|no| assert_eq!(admit(&mut part, no), no as u32));
    assert_eq!(part.next_due(0, crowded), None);
    assert_eq!(part.journal((Lsn(9), 7), 30), (0..30).map(entry).collect::<Vec<_>>());
    assert_eq!(part.journal((Lsn(9), 8), 30), [entry(30)], "what did not fit");
    assert_eq!(part.journal((Lsn(9), 9), 30), [], "once");
    assert_eq!((part.next_due(0, behind(7)), part.next_due(0, behind(8))), (None, Some(0)), "the oldest number counts");
    // Written in the inventory, it needs no journal, nor does what enters until then.
    admit(&mut part, 31);
    part.list(0, (Lsn(1), 9), false);
    assert_eq!((part.next_due(0, behind(u64::MAX)), part.journal((Lsn(9), 9), 30)), (None, vec![]));
    // A write that failed is to be repeated.
    part.unlist(3);
    assert_eq!(part.journal((Lsn(9), 10), 30), [entry(3)]);
    (32..64).for_each(|no| assert_eq!(admit(&mut part, no), no as u32));
    assert_eq!(part.next_due(0, crowded), Some(0), "32 frames");
    part.list(0, (Lsn(1), 11), false);
    assert_eq!(part.next_due(0, crowded), None);
    part.unlisted(0);
    assert_eq!((part.next_due(0, crowded), part.journal((Lsn(9), 12), 500).len()), (Some(0), 64), "all of them again");
    // A frame that holds nothing by now.
    let frame = admit(&mut part, 64);
    assert_eq!(part.invalidate(page(64), false, true), Some(None));
    assert_eq!((frame, part.journal((Lsn(9), 13), 500)), (64, vec![]));
    part.assert_sound();
}

/// The newer statement about a frame counts, and the newer version of a page.
#[test]
fn what_the_journal_says_replaces_what_the_inventory_said_before() {
    let mut part = Partition::new(Arc::default());
    part.set_order(FlashOrder::Lru2);
    part.grow(4);
    let entry = |no, lsn| Entry::of(page(no), Lsn(lsn));
    part.listed(0, Lsn(5), 40, &[]);
    assert!(part.find_again(0, entry(1, 10)) && part.find_again(1, entry(2, 20)));
    assert_eq!(part.find_journaled(39, 0, entry(7, 90)), (false, false), "the inventory was written after that");
    assert_eq!(part.find_journaled(40, 0, entry(3, 30)), (true, true));
    assert_eq!(part.find_journaled(41, 2, entry(1, 11)), (true, false));
    assert_eq!(part.find_journaled(42, 3, entry(2, 19)), (false, false), "an older version");
    assert_eq!(part.find_journaled(43, 2, entry(1, 12)), (true, true), "the journal's own, and newer");
    assert_eq!(part.find_journaled(44, 4, entry(5, 50)), (false, false), "there is no such frame");
    assert_eq!([1, 2, 3].map(|no| part.find(page(no))), [Some(2), Some(1), Some(0)]);
    let behind = |behind| Due { behind, ..Due::default() };
    assert_eq!((part.next_due(0, behind(39)), part.next_due(0, behind(41))), (None, Some(0)), "it is to be listed");
    part.end_finding(Lsn(1000), Lsn(1000), |_| ());
    part.assert_sound();
}

/// A page whose frame became void by a change is listed as a base until its frame is used again: the frame that was
/// freed first.
#[test]
fn a_free_frame_is_listed_as_a_base() {
    let mut part = Partition::new(Arc::default());
    part.set_order(FlashOrder::Lru2);
    part.keep_bases(true);
    part.grow(3);
    let admit = |part: &mut Partition, no: u64, lsn| {
        let frame = part.allocate(page(no), None, Lsn(lsn)).expect("frames are free").frame;
        assert!(part.start_write(frame) && part.end_write(frame, Written::Clean));
        frame
    };
    let list = |part: &mut Partition, hard| part.list(0, (Lsn(1), 0), hard).frames;
    let base = |no, lsn| Some(Entry { base: true, ..Entry::of(page(no), Lsn(lsn)) });
    assert_eq!([admit(&mut part, 1, 10), admit(&mut part, 2, 20)], [0, 1]);
    for no in [2, 1] {
        assert_eq!(part.invalidate(page(no), false, true), Some(None));
    }
    assert_eq!(list(&mut part, false), [base(1, 10), base(2, 20), None]);
    assert_eq!(list(&mut part, true), [None; 3], "a hardened record says what can be read");
    assert_eq!([admit(&mut part, 3, 30), admit(&mut part, 2, 25)], [2, 1], "what was freed first is used first");
    assert_eq!(
        list(&mut part, false),
        [base(1, 10), Some(Entry::of(page(2), Lsn(25))), Some(Entry::of(page(3), Lsn(30)))]
    );
    // What was not written is no base.
    let frame = part.allocate(page(4), None, Lsn(40)).expect("one is free").frame;
    assert_eq!(part.invalidate(page(4), false, true), Some(None));
    assert!(!part.start_write(frame));
    assert_eq!(list(&mut part, false)[0], None);
    part.assert_sound();
}

/// An entry of a base counts only with what the log says; one of the page's newest version is better.
#[test]
fn what_a_free_frame_holds_is_a_base_or_nothing() {
    let mut part = Partition::new(Arc::default());
    part.set_order(FlashOrder::Lru2);
    part.grow(10);
    let base = |no, lsn| Entry { base: true, ..Entry::of(page(no), Lsn(lsn)) };
    for (frame, no) in [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)] {
        assert!(part.find_again(frame, base(no, 50)), "page {no}");
    }
    assert!(part.find_again(5, Entry::of(page(5), Lsn(50))), "the same version, and nothing is newer");
    assert!(!part.find_again(6, base(5, 50)));
    assert!(part.find_again(7, base(6, 50)));
    assert!(part.find_again(8, base(7, 50)) && part.find_again(9, Entry::of(page(8), Lsn(50))));
    let redone = |start, end, before| Noted { start: Lsn(start), end: Lsn(end), redo: Some(Some(Lsn(before))) };
    assert_eq!(part.note(page(1), redone(70, 80, 50)), None, "the log goes on from it");
    assert_eq!(part.note(page(1), redone(80, 90, 80)), None);
    assert_eq!(part.note(page(2), redone(70, 80, 60)), Some(false), "it has changed between");
    assert_eq!(part.note(page(3), redone(40, 50, 30)), None, "its newest version: what was newer is lost");
    let mut kept = |no, is_version: bool| part.note_kept(page(no), Lsn(60), Lsn(90), |_| is_version, Lsn(55));
    assert_eq!(kept(6, true), Err(Lacks { since: Lsn(60), dropped: false }));
    assert_eq!(kept(7, false), Err(Lacks { since: Lsn(60), dropped: true }), "old as it is, it may have changed since");
    assert_eq!(kept(8, false), Err(Lacks { since: Lsn(60), dropped: false }), "it was the newest version");
    let mut found = Vec::new();
    assert_eq!(part.end_finding(Lsn(45), Lsn(95), |what| found.push(what)), []);
    // Of page 4 the log says nothing, so what it has is older; of page 5 neither, and the version was not met.
    assert_eq!(found, [Found::Base, Found::Dirty, Found::Older, Found::Unknown, Found::Base, Found::Base]);
    part.assert_sound();
}
