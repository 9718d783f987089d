//! TAC's order: extents have temperatures, the coldest extent's pages go first, and a full tier lets in only what is
//! hotter.
//!
//! Source: Canim et al., *SSD Bufferpool Extensions for Database Systems*, VLDB 2010, as J. Do's thesis describes it in
//! section 3.5: an extent is 32 consecutive pages; each miss of memory adds to its extent's temperature the time that a
//! read of the flash device saves: what the devices' reads take now, measured ([`FlashReplacement::priced`]); until
//! both have been measured, what Do's table 3.1 has. What the text leaves open: of one extent's pages the oldest goes
//! first; when a temperature outgrows its counter, or more extents are known than `capacity + SPARE`, all temperatures
//! are halved (in the latter case the colder half of the extents without pages is forgotten), so that old heat fades.

use super::FlashReplacement;
use super::heap::Heap;
use crate::{Class, Frame, Page};
use rustc_hash::FxHashMap;

const NONE: u32 = u32::MAX;
/// Extents known beyond one for each frame.
const SPARE: usize = 1024;

/// Microseconds that a read from flash saves where nothing is measured: the thesis's table 3.1, 1/1015 s - 1/12182 s a
/// random page; a sequential one saves nothing.
const UNMEASURED: [u32; 2] = [903, 0];

#[derive(Clone, Copy)]
struct Node {
    /// The ring of the extent's replaceable frames; `NONE` = not in it.
    next: u32,
    before: u32,
    extent: u32,
}

const OUT: Node = Node { next: NONE, before: NONE, extent: NONE };

struct Extent {
    key: u64,
    /// Microseconds saved.
    temperature: u32,
    /// Place in the heap; `NONE`: nothing of it can be replaced.
    at: u32,
    /// The oldest of its replaceable frames.
    first: u32,
    /// Its frames in the tier.
    held: u32,
}

pub struct FlashTemperature {
    nodes: Vec<Node>,
    extents: Vec<Extent>,
    /// Unused places of `extents`.
    unused: Vec<u32>,
    index: FxHashMap<u64, u32>,
    /// Extents with replaceable frames, the coldest at the root.
    heap: Vec<u32>,
    clean: usize,
    /// Microseconds that a read saves: random, sequential.
    saved: [u32; 2],
}

impl FlashTemperature {
    /// Pages of an extent.
    pub const EXTENT: u64 = 32;
    pub(crate) const FRAME_BYTES: usize = size_of::<Node>();
    /// For each extent that is known: itself, its entry in index (a table at most 7/8 and at least 7/16 full) and heap.
    pub const EXTENT_BYTES: usize = size_of::<Extent>() + (size_of::<(u64, u32)>() + 1) * 16 / 7 + 2 * size_of::<u32>();

    pub fn new(capacity: usize) -> FlashTemperature {
        FlashTemperature {
            nodes: vec![OUT; capacity],
            extents: Vec::new(),
            unused: Vec::new(),
            index: FxHashMap::default(),
            heap: Vec::new(),
            clean: 0,
            saved: UNMEASURED,
        }
    }

    fn saved(&self, class: Class) -> u32 {
        self.saved[usize::from(class == Class::Sequential)]
    }

    /// The temperature of a page's extent, in microseconds saved.
    pub fn temperature(&self, page: Page) -> u32 {
        self.index.get(&(page / Self::EXTENT)).map_or(0, |&extent| self.at(extent).temperature)
    }

    fn at(&self, extent: u32) -> &Extent {
        &self.extents[extent as usize]
    }

    fn at_mut(&mut self, extent: u32) -> &mut Extent {
        &mut self.extents[extent as usize]
    }

    fn extent_of(&mut self, page: Page) -> u32 {
        let key = page / Self::EXTENT;
        if let Some(&extent) = self.index.get(&key) {
            return extent;
        }
        if self.index.len() >= self.nodes.len() + SPARE {
            self.fade();
        }
        let new = Extent { key, temperature: 0, at: NONE, first: NONE, held: 0 };
        let extent = match self.unused.pop() {
            Some(extent) => {
                *self.at_mut(extent) = new;
                extent
            }
            None => {
                self.extents.push(new);
                self.extents.len() as u32 - 1
            }
        };
        self.index.insert(key, extent);
        extent
    }

    fn halve(&mut self) {
        for extent in &mut self.extents {
            extent.temperature /= 2;
        }
        self.restore(); // Equals may stand in another order now.
    }

    /// Old heat counts half, and the colder half of the extents that the tier holds nothing of is forgotten.
    fn fade(&mut self) {
        self.halve();
        let idle = |i: &u32| self.at(*i).held == 0 && self.index.get(&self.at(*i).key) == Some(i);
        let mut idle: Vec<(u32, u32)> = (0..self.extents.len() as u32).filter(idle).map(|i| self.key(i)).collect();
        idle.sort_unstable();
        for &(_, extent) in &idle[..idle.len().div_ceil(2)] {
            let key = self.at(extent).key;
            self.index.remove(&key);
            self.unused.push(extent);
        }
    }

    fn warm(&mut self, extent: u32, class: Class) {
        let by = self.saved(class);
        if self.at(extent).temperature.checked_add(by).is_none() {
            self.halve();
        }
        self.at_mut(extent).temperature += by;
        if by > 0 && self.at(extent).at != NONE {
            self.down(self.at(extent).at as usize);
        }
    }

    /// Into the ring of its extent, as the newest.
    fn link(&mut self, frame: Frame) {
        let extent = self.nodes[frame as usize].extent;
        match self.at(extent).first {
            NONE => {
                let node = &mut self.nodes[frame as usize];
                (node.next, node.before) = (frame, frame);
                self.at_mut(extent).first = frame;
                self.push(extent);
            }
            first => {
                let newest = self.nodes[first as usize].before;
                self.nodes[frame as usize].next = first;
                self.nodes[frame as usize].before = newest;
                self.nodes[newest as usize].next = frame;
                self.nodes[first as usize].before = frame;
            }
        }
        self.clean += 1;
    }

    /// Out of the ring of its extent.
    fn unlink(&mut self, frame: Frame) {
        let Node { next, before, extent } = self.nodes[frame as usize];
        if next == frame {
            self.at_mut(extent).first = NONE;
            let at = std::mem::replace(&mut self.at_mut(extent).at, NONE) as usize;
            self.take(at);
        } else {
            self.nodes[before as usize].next = next;
            self.nodes[next as usize].before = before;
            if self.at(extent).first == frame {
                self.at_mut(extent).first = next;
            }
        }
        let node = &mut self.nodes[frame as usize];
        (node.next, node.before) = (NONE, NONE);
        self.clean -= 1;
    }

    fn is_clean(&self, frame: Frame) -> bool {
        self.nodes[frame as usize].next != NONE
    }
}

impl Heap for FlashTemperature {
    type Key = (u32, u32);

    fn heap(&mut self) -> &mut Vec<u32> {
        &mut self.heap
    }

    fn key(&self, extent: u32) -> (u32, u32) {
        (self.at(extent).temperature, extent)
    }

    fn moved(&mut self, extent: u32, at: usize) {
        self.at_mut(extent).at = at as u32;
    }
}

impl FlashReplacement for FlashTemperature {
    fn admit(&mut self, frame: Frame, page: Page, clean: bool) {
        let extent = self.extent_of(page);
        self.nodes[frame as usize].extent = extent;
        self.at_mut(extent).held += 1;
        if clean {
            self.link(frame);
        }
    }

    fn hit(&mut self, frame: Frame, class: Class) {
        self.warm(self.nodes[frame as usize].extent, class);
    }

    fn missed(&mut self, page: Page, class: Class) {
        if self.saved(class) > 0 {
            let extent = self.extent_of(page);
            self.warm(extent, class);
        }
    }

    fn admits(&self, page: Page, _dirty: bool) -> bool {
        let coldest = self.heap.first().map(|&extent| self.at(extent).temperature);
        coldest.is_none_or(|coldest| self.temperature(page) > coldest)
    }

    fn cleaned(&mut self, frame: Frame) {
        assert!(!self.is_clean(frame), "frame {frame} is replaceable already");
        self.link(frame);
    }

    fn victim(&self) -> Option<Frame> {
        self.heap.first().map(|&extent| self.at(extent).first)
    }

    /// Its extent's others, or those of extents as cold, go first.
    fn veto(&mut self, frame: Frame) {
        let extent = self.nodes[frame as usize].extent;
        self.unlink(frame);
        self.link(frame);
        if self.nodes[frame as usize].next == frame && self.at(extent).temperature < u32::MAX {
            self.at_mut(extent).temperature += 1;
            self.down(self.at(extent).at as usize);
        }
    }

    fn priced(&mut self, saved: [u32; 2]) {
        self.saved = saved;
    }

    fn remove(&mut self, frame: Frame, _page: Page) {
        if self.is_clean(frame) {
            self.unlink(frame);
        }
        let extent = std::mem::replace(&mut self.nodes[frame as usize].extent, NONE);
        self.at_mut(extent).held -= 1;
    }

    fn clean(&self) -> usize {
        self.clean
    }

    fn arrange(&self, held: &mut Vec<Frame>) {
        held.sort_by_key(|&frame| (self.key(self.nodes[frame as usize].extent), frame));
    }

    fn resize(&mut self, capacity: usize) {
        self.nodes.resize(capacity, OUT);
        self.nodes.shrink_to_fit();
    }
}
