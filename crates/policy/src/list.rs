//! Doubly linked lists threaded through one array of frames: O(1) moves, no allocation after construction.

use crate::Frame;

const NONE: u32 = u32::MAX;

/// `LISTS` lists over frames `0..capacity`; a frame is on one list at most.
pub(crate) struct Lists<const LISTS: usize> {
    links: Vec<Link>,
    heads: [u32; LISTS],
    tails: [u32; LISTS],
    lens: [usize; LISTS],
}

#[derive(Clone, Copy)]
struct Link {
    /// Towards the head.
    newer: u32,
    /// Towards the tail.
    older: u32,
    list: u8,
}

const OFF: u8 = u8::MAX;

impl<const LISTS: usize> Lists<LISTS> {
    pub(crate) fn new(capacity: usize) -> Self {
        Lists {
            links: vec![Link { newer: NONE, older: NONE, list: OFF }; capacity],
            heads: [NONE; LISTS],
            tails: [NONE; LISTS],
            lens: [0; LISTS],
        }
    }

    /// The list a frame is on.
    pub(crate) fn list_of(&self, frame: Frame) -> Option<usize> {
        let list = self.links[frame as usize].list;
        (list != OFF).then_some(list as usize)
    }

    pub(crate) fn len(&self, list: usize) -> usize {
        self.lens[list]
    }

    pub(crate) fn tail(&self, list: usize) -> Option<Frame> {
        (self.tails[list] != NONE).then_some(self.tails[list])
    }

    pub(crate) fn push_head(&mut self, list: usize, frame: Frame) {
        assert_eq!(self.links[frame as usize].list, OFF, "frame {frame} is on a list already");
        let old = self.heads[list];
        self.links[frame as usize] = Link { newer: NONE, older: old, list: list as u8 };
        match old {
            NONE => self.tails[list] = frame,
            head => self.links[head as usize].newer = frame,
        }
        self.heads[list] = frame;
        self.lens[list] += 1;
    }

    pub(crate) fn unlink(&mut self, frame: Frame) {
        let Link { newer, older, list } = self.links[frame as usize];
        assert_ne!(list, OFF, "frame {frame} is on no list");
        let list = list as usize;
        match newer {
            NONE => self.heads[list] = older,
            n => self.links[n as usize].older = older,
        }
        match older {
            NONE => self.tails[list] = newer,
            o => self.links[o as usize].newer = newer,
        }
        self.links[frame as usize].list = OFF;
        self.lens[list] -= 1;
    }
}
