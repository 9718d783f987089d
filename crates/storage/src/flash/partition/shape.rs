//! Changing a partition while pages flow: more frames, fewer, another order, frames in turn. What is cached stays where
//! it can: all but the frames that go, which are those with the highest numbers.

use super::Partition;
use crate::flash::layout::ENTRIES;
use crate::flash::record::{FrameState, NONE, Record};
use crate::types::PageId;
use terrace_policy::flash::FlashOrder;

impl Partition {
    /// Frames are `0..frames`, no fewer than before. O(frames) under the latch.
    pub(in crate::flash) fn grow(&mut self, frames: u32) {
        assert!(frames >= self.frames() && frames < NONE, "from {} to {frames} frames", self.frames());
        assert_eq!(self.limit, self.frames(), "one change at a time");
        self.records.reserve_exact((frames - self.frames()) as usize);
        self.records.resize(frames as usize, Record::FREE);
        self.resize_sectors(frames);
        self.dirty.reserve_exact(frames as usize - self.dirty.len());
        self.order.resize(frames as usize);
        self.limit = frames;
        self.index_anew();
        self.list_free();
    }

    /// Frames from `limit` on are going; `end_shrink` takes them away.
    pub(in crate::flash) fn begin_shrink(&mut self, limit: u32) {
        assert!(limit <= self.frames(), "{limit} of {} frames", self.frames());
        self.limit = limit;
        self.turn = self.turn.map(|turn| if turn < limit { turn } else { 0 });
        for frame in limit..self.frames() {
            let record = self.record(frame);
            // Clean pages on their way in give up; dirty ones are written, and cleaned.
            let waiting = record.state() == FrameState::Ready && record.at == NONE;
            if !record.is_void() && (waiting || matches!(record.state(), FrameState::Clean | FrameState::Invalid)) {
                self.drop_frame(frame);
            }
        }
        self.list_free();
    }

    /// Up to `most` frames beyond the limit that are to be cleaned.
    pub(in crate::flash) fn going(&self, most: usize) -> Vec<u32> {
        (self.limit..self.frames()).filter(|&frame| self.is_cleanable(frame)).take(most).collect()
    }

    /// Takes the frames beyond the limit away, if all of them are free. With a sector goes who waits for it: so tickets
    /// of such sectors must be `hard`.
    pub(in crate::flash) fn end_shrink(&mut self, hard: u64) -> bool {
        let going = &self.sectors[(self.limit as usize).div_ceil(ENTRIES)..];
        let busy = self.records[self.limit as usize..].iter().any(|r| r.state() != FrameState::Free);
        if busy || going.iter().any(|sector| sector.ticket > hard) {
            return false;
        }
        if self.limit < self.frames() {
            self.records.truncate(self.limit as usize);
            self.records.shrink_to_fit();
            self.resize_sectors(self.limit);
            self.dirty.shrink_to(self.limit as usize);
            self.order.resize(self.limit as usize);
            self.index_anew();
            self.list_free();
        }
        true
    }

    /// recLSNs are on their way elsewhere.
    pub(in crate::flash) fn is_rising(&self) -> bool {
        !self.rising.is_empty()
    }

    /// Another replacement order, which takes the frames over in the old one's sequence. O(frames log frames) under the
    /// latch.
    pub(in crate::flash) fn set_order(&mut self, order: FlashOrder) {
        let ordered = |r: &Record| {
            !r.is_void()
                && matches!(
                    r.state(),
                    FrameState::Clean | FrameState::Dirty | FrameState::LazyCleaning | FrameState::Invalid
                )
        };
        let mut held: Vec<u32> = (0..self.frames()).filter(|&frame| ordered(self.record(frame))).collect();
        self.order.arrange(&mut held);
        let mut next = order.make(self.records.len());
        for frame in held {
            let record = self.record(frame);
            let clean = matches!(record.state(), FrameState::Clean | FrameState::Invalid);
            next.admit(frame, record.page().to_u64(), clean);
        }
        self.order = next;
    }

    /// Whether frames are given out in turn.
    pub(in crate::flash) fn set_turns(&mut self, turns: bool) {
        if turns != self.turn.is_some() {
            self.turn = turns.then_some(0);
            self.list_free();
        }
    }

    /// Whether free frames are bases as long as possible.
    pub(in crate::flash) fn keep_bases(&mut self, keeps: bool) {
        self.keeps_bases = keeps;
    }

    /// Drops what is clean (the device is gone); returns how many frames.
    pub(in crate::flash) fn drop_all_clean(&mut self) -> u64 {
        self.drop_where(|state| matches!(state, FrameState::Clean | FrameState::Invalid)).len() as u64
    }

    /// Drops the frames that are kept for pages which changed; returns whose they were.
    pub(in crate::flash) fn drop_kept(&mut self) -> Vec<PageId> {
        self.drop_where(|state| state == FrameState::Invalid)
    }

    fn drop_where(&mut self, which: impl Fn(FrameState) -> bool) -> Vec<PageId> {
        let mut dropped = Vec::new();
        for frame in 0..self.frames() {
            if which(self.record(frame).state()) && !self.record(frame).is_void() {
                dropped.push(self.record(frame).page());
                self.drop_frame(frame);
            }
        }
        dropped
    }

    fn index_anew(&mut self) {
        self.buckets = vec![NONE; self.records.len().max(1)];
        for frame in 0..self.frames() {
            if self.record(frame).state() != FrameState::Free && !self.record(frame).is_void() {
                self.index(frame);
            }
        }
    }

    /// The lowest first: what fills an empty tier is written from its beginning on.
    pub(super) fn list_free(&mut self) {
        (self.free, self.free_last) = (NONE, NONE);
        if self.turn.is_some() {
            return;
        }
        for frame in (0..self.limit).rev() {
            if self.record(frame).state() == FrameState::Free {
                if self.free == NONE {
                    self.free_last = frame;
                }
                self.at(frame).next = self.free;
                self.free = frame;
            }
        }
    }
}
