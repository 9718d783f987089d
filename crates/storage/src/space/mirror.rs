//! The in-memory mirror of the map pages, which answers every search. Deterministic: ordered structures only.
//!
//! Invariants:
//! 1. An extent has an owner here exactly while it has a used or a held page.
//! 2. `free` holds the extents below the frontier that have no owner, save those of the tablespace itself.
//! 3. An object's `open` holds its extents with a page neither used nor held; its `roomy` the used pages with category
//!    > 0.
//! 4. A page is *held* while it is reserved but not yet used, or freed but perhaps still known to a reader.
use super::EXTENT;
use super::map::{category, with_category};
use crate::types::*;
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct Extent {
    pub(super) owner: ObjectId,
    pub(super) used: u64,
    pub(super) held: u64,
    pub(super) categories: [u8; 32],
}

#[derive(Default)]
struct Object {
    extents: BTreeSet<u32>,
    open: BTreeSet<u32>,
    roomy: BTreeSet<(u8, u32)>,
    used: u64,
}

#[derive(Default)]
pub(super) struct Mirror {
    extents: Vec<Extent>,
    free: BTreeSet<u32>,
    objects: BTreeMap<ObjectId, Object>,
}

fn split(page: u32) -> (u32, u64) {
    (page / EXTENT, 1 << (page % EXTENT))
}

/// The tablespace itself, owner of map extents.
const ITSELF: ObjectId = ObjectId(0);

impl Mirror {
    /// Extents known: allocated on the device and covered by a map page.
    pub(super) fn frontier(&self) -> u32 {
        self.extents.len() as u32
    }
    pub(super) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }
    /// Adds the extent at the frontier, as its map entry says.
    pub(super) fn push(&mut self, owner: ObjectId, used: u64, categories: [u8; 32]) {
        let e = self.frontier();
        self.extents.push(Extent { owner, used, held: 0, categories });
        if owner == ITSELF {
            if used == 0 {
                self.free.insert(e);
            }
            return;
        }
        let object = self.objects.entry(owner).or_default();
        object.extents.insert(e);
        object.used += used.count_ones() as u64;
        if used != u64::MAX {
            object.open.insert(e);
        }
        for n in (0..EXTENT).filter(|n| used >> n & 1 == 1 && category(&categories, *n) > 0) {
            object.roomy.insert((category(&categories, n), e * EXTENT + n));
        }
    }
    /// Takes a page for `object` and holds it; `None` where the tablespace must grow.
    pub(super) fn take(&mut self, object: ObjectId) -> Option<u32> {
        assert!(object != ITSELF, "page of no object");
        let open = self.objects.get(&object).and_then(|o| o.open.first().copied());
        let e = match open {
            Some(e) => e,
            None => {
                let e = self.free.pop_first()?;
                let object = self.objects.entry(object).or_default();
                object.extents.insert(e);
                object.open.insert(e);
                e
            }
        };
        let extent = &mut self.extents[e as usize];
        extent.owner = object;
        let n = (extent.used | extent.held).trailing_ones();
        assert!(n < EXTENT, "invariant 3: an open extent has a page to give");
        extent.held |= 1 << n;
        if extent.used | extent.held == u64::MAX {
            self.objects.get_mut(&object).expect("it has an extent").open.remove(&e);
        }
        Some(e * EXTENT + n)
    }
    /// Gives a held page that is not used back.
    pub(super) fn unhold(&mut self, page: u32) {
        let (e, bit) = split(page);
        let extent = &mut self.extents[e as usize];
        assert!(extent.held & bit != 0 && extent.used & bit == 0, "page {page} is not held");
        extent.held &= !bit;
        let owner = extent.owner;
        if extent.used | extent.held != 0 {
            self.objects.get_mut(&owner).expect("it has an extent").open.insert(e);
            return;
        }
        extent.owner = ITSELF;
        self.free.insert(e);
        let object = self.objects.get_mut(&owner).expect("it has an extent");
        object.extents.remove(&e);
        object.open.remove(&e);
        if object.extents.is_empty() {
            self.objects.remove(&owner);
        }
    }
    /// A held page becomes a used one; its extent's owner.
    pub(super) fn set_used(&mut self, page: u32) -> ObjectId {
        let (e, bit) = split(page);
        let extent = &mut self.extents[e as usize];
        assert!(extent.held & bit != 0 && extent.used & bit == 0, "page {page} is not reserved");
        extent.held &= !bit;
        extent.used |= bit;
        self.objects.get_mut(&extent.owner).expect("it has an extent").used += 1;
        extent.owner
    }
    /// A used page becomes a held one.
    pub(super) fn set_unused(&mut self, page: u32) {
        self.set_category(page, 0);
        let (e, bit) = split(page);
        let extent = &mut self.extents[e as usize];
        assert!(extent.used & bit != 0 && extent.owner != ITSELF, "page {page} is not in use");
        extent.used &= !bit;
        extent.held |= bit;
        self.objects.get_mut(&extent.owner).expect("it has an extent").used -= 1;
    }
    pub(super) fn extent(&self, e: u32) -> &Extent {
        &self.extents[e as usize]
    }
    /// Category of a used page.
    pub(super) fn category(&self, page: u32) -> u8 {
        category(&self.extents[(page / EXTENT) as usize].categories, page % EXTENT)
    }
    pub(super) fn set_category(&mut self, page: u32, to: u8) {
        let (e, bit) = split(page);
        let from = self.category(page);
        let extent = &mut self.extents[e as usize];
        assert!(extent.used & bit != 0, "page {page} is not in use");
        let n = page % EXTENT;
        let byte = &mut extent.categories[n as usize / 2];
        *byte = with_category(*byte, n % 2 == 1, to);
        let object = self.objects.get_mut(&extent.owner).expect("it has an extent");
        object.roomy.remove(&(from, page));
        if to > 0 {
            object.roomy.insert((to, page));
        }
    }
    /// One of the first `choice` pages with category `from` or higher, the fullest first.
    pub(super) fn find(&self, object: ObjectId, from: u8, spread: u64, choice: usize) -> Option<u32> {
        let roomy = &self.objects.get(&object)?.roomy;
        let candidates = roomy.range((from.max(1), 0)..).take(choice);
        let count = candidates.clone().count();
        if count == 0 {
            return None;
        }
        candidates.map(|&(_, page)| page).nth((spread % count as u64) as usize)
    }
    /// Extents of an object.
    pub(super) fn extents_of(&self, object: ObjectId) -> Vec<u32> {
        self.objects.get(&object).map_or(Vec::new(), |o| o.extents.iter().copied().collect())
    }
    /// Forgets the used pages of an object's extent, whose map entry is free by now.
    pub(super) fn clear(&mut self, e: u32) {
        let first = e * EXTENT;
        for n in (0..EXTENT).filter(|n| self.extents[e as usize].used >> n & 1 == 1).collect::<Vec<_>>() {
            self.set_unused(first + n);
            self.unhold(first + n);
        }
    }
    pub(super) fn pages(&self, object: ObjectId, from: u32, max: usize) -> Vec<u32> {
        let Some(object) = self.objects.get(&object) else { return Vec::new() };
        let used = object.extents.range(from / EXTENT..).flat_map(|&e| {
            let used = self.extents[e as usize].used;
            (0..EXTENT).filter(move |n| used >> n & 1 == 1).map(move |n| e * EXTENT + n)
        });
        used.filter(|&page| page >= from).take(max).collect()
    }
    pub(super) fn page_count(&self, object: ObjectId) -> u64 {
        self.objects.get(&object).map_or(0, |o| o.used)
    }
    pub(super) fn objects(&self) -> Vec<ObjectId> {
        self.objects.iter().filter(|(_, o)| o.used > 0).map(|(id, _)| *id).collect()
    }
}
