//! CLOCK: a hand sweeps the frames; a used frame gets a second chance.

use crate::{Class, Frame, Page, Replacement};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Absent,
    Unused,
    Used,
}

pub struct Clock {
    marks: Vec<Mark>,
    hand: usize,
    held: usize,
}

impl Clock {
    /// For frames `0..capacity`.
    pub fn new(capacity: usize) -> Clock {
        Clock { marks: vec![Mark::Absent; capacity], hand: 0, held: 0 }
    }

    fn step(&mut self) {
        self.hand = (self.hand + 1) % self.marks.len();
    }
}

impl Replacement for Clock {
    fn admit(&mut self, frame: Frame, _page: Page, class: Class) {
        let mark = &mut self.marks[frame as usize];
        assert!(*mark == Mark::Absent, "frame {frame} is held already");
        // A scanned page gets no second chance before it is used by someone else.
        *mark = if class == Class::Sequential { Mark::Unused } else { Mark::Used };
        self.held += 1;
    }

    fn hit(&mut self, frame: Frame, class: Class) {
        let mark = &mut self.marks[frame as usize];
        assert!(*mark != Mark::Absent, "a hit frame is held");
        if class == Class::Random {
            *mark = Mark::Used;
        }
    }

    fn victim(&mut self) -> Option<Frame> {
        if self.held == 0 {
            return None;
        }
        loop {
            match self.marks[self.hand] {
                Mark::Unused => return Some(self.hand as Frame),
                Mark::Used => self.marks[self.hand] = Mark::Unused,
                Mark::Absent => {}
            }
            self.step();
        }
    }

    fn veto(&mut self, frame: Frame) {
        assert!(self.marks[frame as usize] != Mark::Absent, "a vetoed frame is held");
        if self.hand == frame as usize {
            self.step();
        }
    }

    fn remove(&mut self, frame: Frame) {
        assert!(self.marks[frame as usize] != Mark::Absent, "a removed frame is held");
        self.marks[frame as usize] = Mark::Absent;
        self.held -= 1;
    }

    fn len(&self) -> usize {
        self.held
    }
}
