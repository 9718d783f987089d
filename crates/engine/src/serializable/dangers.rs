//! When transactions that read what others wrote endanger serialisability, and which of them has to go.
//!
//! `A -> B` means: A has read something, and B, which ran at the same time, has written the next version of it. So A
//! comes before B in every order that explains what both have seen. Under snapshot isolation, every cycle of such
//! orders has two of these edges in a row, `T0 -> T1 -> T2` (T0 and T2 may be one), and T2 is the first of the whole
//! cycle that commits (Fekete et al. 2005). T1 is the *pivot*. So where T2 has not committed before T0 and T1, nothing
//! is wrong. If T0 only reads, nothing is wrong either unless T2 had committed before T0's snapshot was taken (Ports
//! and Grittner 2012, section 4.1).
//!
//! 1. Whenever an edge is new, and whenever a transaction is about to commit, no dangerous structure remains whose
//!    transactions may all commit: one of them gets 40001 now, or is *doomed*, which is 40001 at its next step.
//! 2. Nobody that has prepared is doomed: its commit may be in the log. The pivot goes if it can, because then its
//!    repetition does not meet the same danger: T2 has committed by then.
use super::reads::Id;
use super::{Inner, Member, NEVER, Seq, refused};
use crate::error::Result;

impl Inner {
    /// When the first of those committed that wrote over what `member` had read. (Of a transaction that has prepared,
    /// that moment counts.)
    pub(super) fn first_out(&self, member: &Member) -> Seq {
        let prepared = member.outs.iter().filter_map(|id| self.all.get(id)?.prepared);
        prepared.min().unwrap_or(NEVER).min(member.old_out)
    }

    /// `reader -> writer -> T2`, and T2 has committed first.
    fn writer_is_pivot(&self, reader: &Member, writer: &Member) -> bool {
        let first = self.first_out(writer);
        let before = |limit: Option<Seq>| limit.is_none_or(|limit| first <= limit);
        let snapshot = reader.read_only.then_some(reader.snapshot);
        first < NEVER && before(reader.committed) && before(writer.committed) && before(snapshot)
    }

    /// `T0 -> reader -> writer`, and the writer commits first.
    fn reader_is_pivot(&self, reader: &Member, writer: &Member) -> bool {
        let Some(prepared) = writer.prepared.filter(|_| !reader.read_only) else { return false };
        self.has_late_in(reader, prepared)
    }

    /// Whether `T0 -> pivot` and T0 has not committed before `prepared`; if it only reads, its snapshot is later, too.
    pub(super) fn has_late_in(&self, pivot: &Member, prepared: Seq) -> bool {
        let late = |t0: &Member| {
            !t0.doomed
                && t0.committed.is_none_or(|committed| committed >= prepared)
                && (!t0.read_only || t0.snapshot >= prepared)
        };
        pivot.old_in >= prepared || pivot.ins.iter().filter_map(|id| self.all.get(id)).any(late)
    }

    /// The edge `reader -> writer`. `me` is one of the two, and at work.
    pub(super) fn edge(&mut self, reader: Id, writer: Id, me: Id) -> Result<()> {
        let (r, w) = (&self.all[&reader], &self.all[&writer]);
        if w.ins.contains(&reader) {
            return Ok(());
        }
        if self.writer_is_pivot(r, w) || self.reader_is_pivot(r, w) {
            if writer == me {
                return Err(refused("Canceled on identification as a pivot, during write."));
            }
            if w.prepared.is_some() {
                let reason = format!("Canceled on conflict out to pivot {}, during read.", w.txn.0);
                return Err(refused(&reason));
            }
            self.doom(writer);
        }
        self.member(reader).outs.insert(writer);
        self.member(writer).ins.insert(reader);
        Ok(())
    }

    /// `me` is about to commit: every pivot `T0 -> T1 -> me` goes, if T0 may still commit later.
    pub(super) fn before_commit(&mut self, me: Id) -> Result<()> {
        let open = |id: &Id| self.all.get(id).filter(|m| m.committed.is_none() && !m.doomed);
        let dangerous =
            |pivot: &Member| pivot.ins.iter().any(|far| *far == me || open(far).is_some_and(|far| !far.read_only));
        let near = self.all[&me].ins.iter().filter(|near| open(near).is_some_and(dangerous));
        let pivots: Vec<Id> = near.copied().collect();
        for pivot in pivots {
            if self.all[&pivot].prepared.is_some() {
                return Err(refused("Canceled on commit attempt with conflict in from prepared pivot."));
            }
            self.doom(pivot);
        }
        Ok(())
    }
}
