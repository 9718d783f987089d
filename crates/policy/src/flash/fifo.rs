//! First in, first out: the order of admission, whatever is used. 12 bytes a frame.
//!
//! Frames stand in a doubly linked ring from their admission; those that are dirty stand in it too and are passed over,
//! so that a page cleaned late is replaced as early as one that was clean from the start.

use super::FlashReplacement;
use crate::{Class, Frame, Page};

const NONE: u32 = u32::MAX;
/// Set in `newer` of frames that may be replaced. Frame numbers stay below.
const CLEAN: u32 = 1 << 31;
const LINK: u32 = CLEAN - 1;

#[derive(Clone, Copy)]
struct Node {
    /// Towards the newest, and `CLEAN`; `LINK` = there is none.
    newer: u32,
    /// Towards the oldest; `NONE` = there is none.
    older: u32,
}

pub struct FlashFifo {
    nodes: Vec<Node>,
    oldest: u32,
    newest: u32,
    clean: usize,
}

impl FlashFifo {
    pub(crate) const FRAME_BYTES: usize = size_of::<Node>();

    pub fn new(capacity: usize) -> FlashFifo {
        assert!(capacity < LINK as usize, "a partition of {capacity} frames");
        FlashFifo { nodes: vec![Node { newer: LINK, older: NONE }; capacity], oldest: NONE, newest: NONE, clean: 0 }
    }

    fn newer(&self, frame: u32) -> u32 {
        match self.nodes[frame as usize].newer & LINK {
            LINK => NONE,
            newer => newer,
        }
    }

    fn set_newer(&mut self, frame: u32, to: u32) {
        let node = &mut self.nodes[frame as usize];
        node.newer = (node.newer & CLEAN) | (to & LINK);
    }

    fn append(&mut self, frame: u32) {
        self.set_newer(frame, NONE);
        self.nodes[frame as usize].older = self.newest;
        match self.newest {
            NONE => self.oldest = frame,
            newest => self.set_newer(newest, frame),
        }
        self.newest = frame;
    }

    fn unlink(&mut self, frame: u32) {
        let (older, newer) = (self.nodes[frame as usize].older, self.newer(frame));
        match older {
            NONE => self.oldest = newer,
            older => self.set_newer(older, newer),
        }
        match newer {
            NONE => self.newest = older,
            newer => self.nodes[newer as usize].older = older,
        }
    }

    fn is_clean(&self, frame: u32) -> bool {
        self.nodes[frame as usize].newer & CLEAN != 0
    }
}

impl FlashReplacement for FlashFifo {
    fn admit(&mut self, frame: Frame, _page: Page, clean: bool) {
        self.append(frame);
        if clean {
            self.cleaned(frame);
        }
    }

    fn hit(&mut self, _frame: Frame, _class: Class) {}

    fn cleaned(&mut self, frame: Frame) {
        assert!(!self.is_clean(frame), "frame {frame} is replaceable already");
        self.nodes[frame as usize].newer |= CLEAN;
        self.clean += 1;
    }

    fn victim(&self) -> Option<Frame> {
        if self.clean == 0 {
            return None;
        }
        let mut frame = self.oldest;
        while !self.is_clean(frame) {
            frame = self.newer(frame); // One that is clean follows.
        }
        Some(frame)
    }

    fn veto(&mut self, frame: Frame) {
        self.unlink(frame);
        self.append(frame);
    }

    fn remove(&mut self, frame: Frame, _page: Page) {
        self.unlink(frame);
        if self.is_clean(frame) {
            self.nodes[frame as usize].newer &= LINK;
            self.clean -= 1;
        }
    }

    fn clean(&self) -> usize {
        self.clean
    }

    fn arrange(&self, held: &mut Vec<Frame>) {
        let before = held.len();
        held.clear();
        let mut frame = self.oldest;
        while frame != NONE {
            held.push(frame);
            frame = self.newer(frame);
        }
        assert_eq!(held.len(), before, "the frames held stand in the ring");
    }

    fn resize(&mut self, capacity: usize) {
        assert!(capacity < LINK as usize, "a partition of {capacity} frames");
        self.nodes.resize(capacity, Node { newer: LINK, older: NONE });
        self.nodes.shrink_to_fit();
    }
}
