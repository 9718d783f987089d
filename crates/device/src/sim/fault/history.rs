//! What a crash may leave behind.
//!
//! A history is the sequence of starts and ends of writes and syncs over all devices of a database; a crash is possible
//! after each of its events. Invariants: (1) a sync settles exactly the changes that had completed before it began; (2)
//! settled changes are on the medium whatever a crash does; (3) an unsettled change is there, or not, or torn,
//! independently of every other (volatile caches reorder); (4) what is there was applied in the order of starts, so an
//! older write never hides a newer one; (5) after a failed sync, later syncs do not settle what it should have: the
//! kernel may have marked those pages clean. Only writing the same bytes again and a sync after that do; (6) what a
//! process had in flight when it died is there for those who read, whole or in its first part, and settles like any
//! other change.

use crate::Image;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The unit in which a write may tear.
pub const TEAR: usize = 512;

/// Which unsettled writes survive the crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    None,
    All,
    /// Each survives or not, or in part; how likely, and which, follow from the seed.
    Random(u64),
    /// All but the last over all devices, of which only the first so many units of [`TEAR`] bytes survive.
    Torn(usize),
    /// As `Torn`; the sector in which the write was cut cannot be read any more.
    Unreadable(usize),
    /// Only the last over all devices: as much reordering as there can be.
    OnlyLast,
}

#[derive(Clone, Debug)]
pub(super) enum Change {
    Write {
        offset: u64,
        data: Arc<[u8]>,
    },
    Clear {
        offset: u64,
        len: u64,
    },
    Grow {
        size: u64,
    },
    Flip {
        offset: u64,
        mask: u8,
    },
    /// The sectors of the range cannot be read any more.
    Spoil {
        offset: u64,
        len: u64,
    },
}

impl Change {
    fn range(&self) -> std::ops::Range<u64> {
        match self {
            Change::Write { offset, data } => *offset..offset + data.len() as u64,
            Change::Clear { offset, len } => *offset..offset + len,
            Change::Grow { .. } | Change::Flip { .. } | Change::Spoil { .. } => 0..0,
        }
    }

    fn units(&self) -> usize {
        if let Change::Write { data, .. } = self { data.len().div_ceil(TEAR) } else { 0 }
    }

    fn apply(&self, image: &mut Image) {
        self.apply_where(image, |_| true);
    }

    /// Applies a write unit by unit where `keep` says so; other changes are whole.
    fn apply_where(&self, image: &mut Image, mut keep: impl FnMut(usize) -> bool) {
        match self {
            Change::Write { offset, data } => {
                let kept: Vec<bool> = (0..self.units()).map(&mut keep).collect();
                if kept.iter().all(|kept| *kept) {
                    image.write(*offset, data);
                } else {
                    let units = data.chunks(TEAR).enumerate().filter(|(unit, _)| kept[*unit]);
                    units.for_each(|(unit, bytes)| image.write(offset + (unit * TEAR) as u64, bytes));
                }
                // A file that grows does so by whole blocks: a reader must find the bytes, torn or not.
                image.grow(image.size().next_multiple_of(crate::SECTOR as u64));
            }
            Change::Clear { offset, len } => image.clear(*offset, *len),
            Change::Grow { size } => image.grow(*size),
            Change::Flip { offset, mask } => image.flip(*offset, *mask),
            Change::Spoil { offset, len } => image.spoil(*offset, *len),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Event {
    /// A change begins; its number is the event's.
    Start {
        device: usize,
        change: Change,
    },
    /// The change of that number is complete (and visible).
    Done {
        device: usize,
        start: u64,
    },
    /// Damage to what lies on the medium, for certain.
    Rot {
        device: usize,
        change: Change,
    },
    /// The process died over this change: of a write the first so many units were made, and readers see it so.
    Cut {
        device: usize,
        start: u64,
        units: usize,
    },
    SyncStart,
    /// The sync of that number is complete, or failed.
    SyncDone {
        device: usize,
        start: u64,
    },
    SyncFailed {
        device: usize,
        start: u64,
    },
    /// The same, and the cache dropped what the sync should have settled: readers see what is on the medium.
    Dropped {
        device: usize,
        start: u64,
    },
}

#[derive(Clone, Debug)]
struct Pending {
    change: Change,
    done: Option<u64>,
    settled: bool,
    /// No sync will settle it any more (invariant 5).
    orphaned: bool,
    /// Damage, settled from the start.
    rot: bool,
}

impl Pending {
    fn new(change: &Change, done: Option<u64>, rot: bool) -> Pending {
        Pending { change: change.clone(), done, settled: false, orphaned: false, rot }
    }
}

/// A device between what is certain and what is not.
#[derive(Clone, Debug)]
pub(super) struct DeviceState {
    pub(super) name: String,
    pub(super) atomic_write: usize,
    pub(super) capacity: u64,
    durable: Image,
    /// By number. Begins with an unsettled change; settled ones after it wait here to keep the order (invariant 4).
    pending: BTreeMap<u64, Pending>,
}

impl DeviceState {
    pub(super) fn new(name: &str, atomic_write: usize, capacity: u64, image: Image) -> DeviceState {
        DeviceState { name: name.to_string(), atomic_write, capacity, durable: image, pending: BTreeMap::new() }
    }

    fn settle_where(&mut self, covered: impl Fn(&Pending) -> bool) {
        let numbers: Vec<u64> =
            self.pending.iter().filter(|(_, p)| !p.settled && covered(p)).map(|(n, _)| *n).collect();
        for number in &numbers {
            self.pending.get_mut(number).expect("numbers of what is pending").settled = true;
        }
        self.apply_settled();
        // What settled behind an unsettled change waits: what it replaces altogether no longer matters.
        for number in numbers {
            let Some(range) = self.pending.get(&number).map(|pending| pending.change.range()) else { continue };
            self.pending.retain(|n, p| {
                let hidden = p.change.range();
                *n >= number || p.settled || hidden.is_empty() || hidden.start < range.start || hidden.end > range.end
            });
        }
        self.apply_settled();
    }

    fn apply_settled(&mut self) {
        while let Some(first) = self.pending.first_entry()
            && first.get().settled
        {
            first.remove().change.apply(&mut self.durable);
        }
    }

    /// The contents after a crash now. `last`: the number of the last unsettled write over all devices.
    fn contents(&self, index: usize, choice: Choice, last: Option<u64>) -> Image {
        let mut image = self.durable.clone();
        let mut random = ChaCha8Rng::seed_from_u64(if let Choice::Random(seed) = choice { seed } else { 0 });
        random.set_stream(index as u64);
        let likely = [0.1, 0.5, 0.9][random.random_range(0..3)];
        for (number, pending) in &self.pending {
            let change = &pending.change;
            let atomic = change.units() * TEAR <= self.atomic_write;
            match choice {
                _ if pending.settled => change.apply(&mut image),
                Choice::None => {}
                Choice::All => change.apply(&mut image),
                Choice::OnlyLast if Some(*number) == last => change.apply(&mut image),
                Choice::OnlyLast => {}
                Choice::Torn(units) if Some(*number) == last => {
                    if !atomic || units >= change.units() {
                        change.apply_where(&mut image, |unit| unit < units);
                    }
                }
                Choice::Unreadable(units) if Some(*number) == last => {
                    change.apply_where(&mut image, |unit| unit < units);
                    if let Change::Write { offset, .. } = change
                        && units < change.units()
                    {
                        image.spoil(offset + (units * TEAR) as u64, 1);
                    }
                }
                Choice::Torn(_) | Choice::Unreadable(_) => change.apply(&mut image),
                Choice::Random(_) => {
                    if atomic || random.random_bool(0.5) {
                        if random.random_bool(likely) {
                            change.apply(&mut image);
                        }
                    } else {
                        change.apply_where(&mut image, |_| random.random_bool(likely));
                    }
                }
            }
        }
        image
    }

    fn last_unsettled_write(&self) -> Option<(u64, usize)> {
        let mut newest_first = self.pending.iter().rev();
        newest_first.find(|(_, p)| !p.settled && p.change.units() > 0).map(|(n, p)| (*n, p.change.units()))
    }
}

/// All devices at one point of a history.
#[derive(Clone, Debug, Default)]
pub(super) struct States(pub(super) Vec<DeviceState>);

impl States {
    /// Takes in event `number`.
    pub(super) fn apply(&mut self, number: u64, event: &Event) {
        match event {
            Event::Start { device, change } => {
                self.0[*device].pending.insert(number, Pending::new(change, None, false));
            }
            Event::Done { device, start } => {
                if let Some(pending) = self.0[*device].pending.get_mut(start) {
                    pending.done = Some(number);
                }
            }
            Event::Rot { device, change } => {
                let state = &mut self.0[*device];
                state.pending.insert(number, Pending::new(change, Some(number), true));
                state.settle_where(|p| p.rot);
            }
            Event::Cut { device, start, units } => {
                let Some(pending) = self.0[*device].pending.get_mut(start) else { return };
                pending.done = Some(number);
                if let Change::Write { data, .. } = &mut pending.change {
                    *data = data[..data.len().min(units * TEAR)].into();
                }
            }
            Event::SyncStart => {}
            Event::SyncDone { device, start } => {
                self.0[*device].settle_where(|p| !p.orphaned && p.done.is_some_and(|done| done < *start));
            }
            Event::SyncFailed { device, start } => {
                let covered = |p: &&mut Pending| p.done.is_some_and(|done| done < *start);
                self.0[*device].pending.values_mut().filter(covered).for_each(|p| p.orphaned = true);
            }
            Event::Dropped { device, start } => {
                // Sizes are the file system's, which does not forget them.
                self.0[*device].pending.retain(|_, p| {
                    p.settled || p.done.is_none_or(|done| done >= *start) || matches!(p.change, Change::Grow { .. })
                });
            }
        }
    }

    fn last(&self) -> Option<(u64, usize)> {
        self.0.iter().filter_map(DeviceState::last_unsettled_write).max()
    }

    /// Changes of a device's size and room that have begun and not ended.
    pub(super) fn unfinished_room(&self, device: usize) -> Vec<u64> {
        let is_room = |p: &Pending| matches!(p.change, Change::Grow { .. } | Change::Clear { .. });
        self.0[device].pending.iter().filter(|(_, p)| p.done.is_none() && is_room(p)).map(|(n, _)| *n).collect()
    }

    /// What readers of a device see.
    pub(super) fn visible(&self, index: usize) -> Image {
        self.0[index].contents(index, Choice::All, None)
    }

    pub(super) fn contents(&self, choice: Choice) -> Vec<Image> {
        let last = self.last().map(|(number, _)| number);
        self.0.iter().enumerate().map(|(index, state)| state.contents(index, choice, last)).collect()
    }
}

/// A recorded run. Point `n` is after its first `n` events; points go from 0 to `len()`.
#[derive(Clone, Debug)]
pub struct History {
    pub(super) start: States,
    pub(super) events: Arc<Vec<Event>>,
}

impl History {
    pub fn len(&self) -> usize {
        self.events.len()
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The devices' names, in the order of all lists of contents.
    pub fn names(&self) -> Vec<String> {
        self.start.0.iter().map(|state| state.name.clone()).collect()
    }

    /// What each device holds after a crash at point `n`. For a sweep over all points use [`History::cursor`].
    #[cfg(test)]
    pub(crate) fn devices_at(&self, n: usize, choice: Choice) -> Vec<Image> {
        let mut cursor = self.cursor();
        while cursor.position() < n {
            assert!(cursor.advance(), "point {n} is beyond the history's end, {}", self.len());
        }
        cursor.contents(choice)
    }

    /// A cursor at point 0.
    pub fn cursor(&self) -> Cursor {
        Cursor { states: self.start.clone(), events: self.events.clone(), position: 0 }
    }
}

/// Walks through a history from crash point to crash point.
#[derive(Clone, Debug)]
pub struct Cursor {
    states: States,
    events: Arc<Vec<Event>>,
    position: usize,
}

impl Cursor {
    pub fn position(&self) -> usize {
        self.position
    }

    /// To the next point; false at the end.
    pub fn advance(&mut self) -> bool {
        let Some(event) = self.events.get(self.position) else { return false };
        self.states.apply(self.position as u64, event);
        self.position += 1;
        true
    }

    pub fn contents(&self, choice: Choice) -> Vec<Image> {
        self.states.contents(choice)
    }

    /// Unsettled changes: with none, all choices are the same.
    pub fn unsettled(&self) -> usize {
        self.states.0.iter().flat_map(|s| s.pending.values()).filter(|p| !p.settled).count()
    }

    /// Units of [`TEAR`] bytes in the last unsettled write: `Choice::Torn(1..that)` are its torn forms. 0 = there is
    /// none, or its device writes it atomically.
    pub fn last_write_units(&self) -> usize {
        let Some((number, units)) = self.states.last() else { return 0 };
        let atomic = |s: &DeviceState| s.pending.contains_key(&number) && units * TEAR <= s.atomic_write;
        if self.states.0.iter().any(atomic) { 0 } else { units }
    }

    /// Where the last unsettled write goes: the device, by its place in the lists of contents, and the offset.
    pub fn last_write_at(&self) -> Option<(usize, u64)> {
        let (number, _) = self.states.last()?;
        let mut devices = self.states.0.iter().enumerate();
        devices.find_map(|(i, s)| s.pending.get(&number).map(|p| (i, p.change.range().start)))
    }

    /// Whether the last event was the start of a write: the points at which tearing that write is a new case.
    pub fn at_write(&self) -> bool {
        let last = self.position.checked_sub(1).and_then(|at| self.events.get(at));
        matches!(last, Some(Event::Start { change: Change::Write { .. }, .. }))
    }
}
