//! Splitting a full page, and linking the new one into the level above.
//!
//! A split makes room and no more; who needed the room tries again. Both halves of a split always fit, since together
//! they hold what the page held (the new bound is no longer than a key that left).
use super::node::{self, INCOMPLETE, Node, Target};
use super::*;
use crate::mtr::Latched;
use crate::space::ReservedPage;
use std::future::Future;

/// An unfinished split: the page, its level, and what the level above has to learn.
struct Unfinished {
    level: u8,
    bound: Vec<u8>,
    right: u32,
}

impl BTree {
    /// Splits a page unless a cell of `need` bytes fits in it by now. `append`: the page is the last of its level and
    /// grows at its end, so leave the left half nearly full.
    pub(super) async fn split(&self, st: &Store, pin: Pin, need: usize, append: bool) -> Result<()> {
        let no = pin.id().no;
        let space = st.space(self.space);
        if no == self.root {
            let rooms = [space.reserve_page(st, self.object).await?, space.reserve_page(st, self.object).await?];
            let permit = st.reserve(split_log(st.pool().page_size())).await?;
            self.try_split_root(st, st.mtr(permit), &pin, rooms, need, append);
            return Ok(());
        }
        self.finish_split(st, no).await?;
        let right = Node(&pin.read()).right();
        let room = space.reserve_page(st, self.object).await?;
        let right = if right == 0 { None } else { Some(self.pin(st, right, Access::Random).await?) };
        let permit = st.reserve(split_log(st.pool().page_size())).await?;
        if self.try_split(st, st.mtr(permit), &pin, right.as_ref(), room, need, append) {
            self.finish_split(st, no).await?;
        }
        Ok(())
    }

    /// Fills a fresh page with entries of `old`.
    fn fill(
        &self,
        mtr: &mut Mtr,
        at: Latched,
        old: Node<'_>,
        entries: std::ops::Range<usize>,
        high: Option<&[u8]>,
        links: (u32, u32),
    ) {
        mtr.apply(at, node::format(self.object));
        mtr.apply(at, node::write_special(&node::special(old.level(), 0, links.0, links.1)));
        let cells = high.into_iter().chain(entries.map(|i| old.entry(i)));
        for (slot, cell) in cells.enumerate() {
            mtr.apply(at, PageOp::InsertAt { slot: slot as u16, cell });
        }
    }

    fn try_split_root(
        &self,
        st: &Store,
        mut mtr: Mtr,
        pin: &Pin,
        mut rooms: [ReservedPage; 2],
        need: usize,
        append: bool,
    ) {
        rooms.sort_by_key(|room| room.page.no); // latch order of their map pages
        let at = mtr.latch(pin);
        if slotted::fits(mtr.page(at), need) {
            return; // another was here before
        }
        let copy = mtr.page(at).to_vec();
        let old = Node(&copy);
        let (left, right) = (rooms[0].page.no, rooms[1].page.no);
        let point = old.split_point(append);
        let bound = old.separator(point);
        let children = rooms.each_ref().map(|room| mtr.latch(&room.pin));
        self.fill(&mut mtr, children[0], old, 0..point, Some(bound), (0, right));
        self.fill(&mut mtr, children[1], old, point..old.count(), None, (left, 0));
        mtr.apply(at, node::format(self.object));
        mtr.apply(at, node::write_special(&node::special(old.level() + 1, 0, 0, 0)));
        mtr.apply(at, PageOp::InsertAt { slot: 0, cell: &node::inner_cell(left, b"") });
        mtr.apply(at, PageOp::InsertAt { slot: 1, cell: &node::inner_cell(right, bound) });
        for room in rooms {
            st.space(self.space).use_page(&mut mtr, room);
        }
        mtr.commit();
    }

    /// Moves the upper entries to `room`, right of the page; false where the page has changed meanwhile.
    #[expect(clippy::too_many_arguments, reason = "what a split needs was all obtained before latching")]
    pub(super) fn try_split(
        &self,
        st: &Store,
        mut mtr: Mtr,
        pin: &Pin,
        right: Option<&Pin>,
        room: ReservedPage,
        need: usize,
        append: bool,
    ) -> bool {
        let at = mtr.latch(pin);
        let copy = mtr.page(at).to_vec();
        let old = Node(&copy);
        let same_right = old.right() == right.map_or(0, |pin| pin.id().no);
        if old.is_dead() || old.is_incomplete() || !same_right || slotted::fits(&copy, need) {
            return false;
        }
        let point = old.split_point(append);
        let bound = old.separator(point);
        let new = mtr.latch(&room.pin);
        let right_at = right.map(|pin| mtr.latch(pin));
        self.fill(&mut mtr, new, old, point..old.count(), old.high(), (pin.id().no, old.right()));
        for i in (point..old.count()).rev() {
            mtr.apply(at, PageOp::RemoveAt { slot: old.slot(i) });
        }
        if old.right() != 0 {
            mtr.apply(at, PageOp::RemoveAt { slot: 0 });
        }
        mtr.apply(at, PageOp::InsertAt { slot: 0, cell: bound });
        mtr.apply(at, node::write_special(&node::special(old.level(), INCOMPLETE, old.left(), room.page.no)));
        if let Some(right_at) = right_at {
            assert_eq!(Node(mtr.page(right_at)).left(), pin.id().no, "the left link is exact");
            mtr.apply(right_at, node::write_left(&room.page.no.to_le_bytes()));
        }
        st.space(self.space).use_page(&mut mtr, room);
        mtr.commit();
        true
    }

    /// Links the right page of an incomplete split into the level above, splitting there as needed. Does nothing where
    /// there is nothing to finish. Boxed, because it calls itself on the way up.
    pub(super) fn finish_split<'a>(
        &'a self,
        st: &'a Store,
        no: u32,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>> {
        Box::pin(async move {
            let page = self.pin(st, no, Access::Random).await?;
            while let Some(split) = self.unfinished(&page)? {
                let parent = self.descend(st, Target::Key(&split.bound), split.level + 1, true).await?;
                let permit = st.reserve(split.bound.len() + KEY_LOG).await?;
                let cell = node::inner_cell(split.right, &split.bound);
                if let LeafChange::Full { append } = self.try_link(st.mtr(permit), &page, &parent, &split, &cell) {
                    self.split(st, parent, cell.len(), append).await?;
                }
            }
            Ok(())
        })
    }

    fn unfinished(&self, pin: &Pin) -> Result<Option<Unfinished>> {
        let page = pin.read();
        let node = self.node(&page, pin)?;
        if node.is_dead() || !node.is_incomplete() {
            return Ok(None);
        }
        let Some(bound) = node.high() else {
            return Err(self.damaged(pin.id().no, "an incomplete split without a right page"));
        };
        Ok(Some(Unfinished { level: node.level(), bound: bound.to_vec(), right: node.right() }))
    }

    fn try_link(&self, mut mtr: Mtr, page: &Pin, parent: &Pin, split: &Unfinished, cell: &[u8]) -> LeafChange {
        let (below, above) = (mtr.latch(page), mtr.latch(parent));
        let (child, node) = (Node(mtr.page(below)), Node(mtr.page(above)));
        let is_same = !child.is_dead()
            && child.is_incomplete()
            && child.right() == split.right
            && child.high() == Some(&split.bound[..]);
        if !is_same || node.level() != split.level + 1 || node.is_left_of(Target::Key(&split.bound)) {
            return LeafChange::Moved;
        }
        let i = node
            .search_separator(&split.bound)
            .expect_err("invariant 3 of pages: an incomplete split has no entry above");
        if !slotted::fits(node.0, cell.len()) {
            return LeafChange::Full { append: i == node.count() && node.right() == 0 };
        }
        let slot = node.slot(i);
        mtr.apply(above, PageOp::InsertAt { slot, cell });
        mtr.apply(below, node::write_flags(&[0]));
        mtr.commit();
        LeafChange::Done(true)
    }
}
