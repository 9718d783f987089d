//! Building a tree from sorted keys: pages are filled in order and written once, each in a mini-transaction of its own;
//! the root is written last, so that until then the tree is empty. A crash in the middle leaves pages that belong to
//! the object and that nothing leads to; freeing the object frees them.
use super::node::{self, Node};
use super::*;
use crate::page::header;
use crate::space::ReservedPage;

/// A level under construction.
#[derive(Default)]
struct Level {
    /// Cells of the page being filled.
    cells: Vec<Vec<u8>>,
    bytes: usize,
    /// Lower bound of that page.
    low: Vec<u8>,
    /// The page before it; 0 = none was written.
    left: u32,
    /// The page it will be, where that has been promised to the page before it.
    room: Option<ReservedPage>,
}

struct Builder<'a> {
    tree: &'a BTree,
    st: &'a Store,
    levels: Vec<Level>,
    /// Bytes behind the special area.
    body: usize,
}

impl BTree {
    /// Builds a fresh tree from sorted keys, bottom-up, pages nine tenths full. The tree must be empty, and nobody else
    /// may use it.
    pub async fn bulk_load(&self, st: &Store, keys: impl Iterator<Item = Vec<u8>> + Send) -> Result<()> {
        let _epoch = st.space(self.space).enter();
        let body = st.pool().page_size() - slotted::special_offset() as usize - node::SPECIAL as usize;
        let mut builder = Builder { tree: self, st, levels: vec![Level::default()], body };
        self.expect_empty(&self.pin(st, self.root, Access::Random).await?)?;
        for key in keys {
            self.check_key(st, &key)?;
            builder.add(key).await?;
        }
        builder.finish().await
    }

    fn expect_empty(&self, root: &Pin) -> Result<()> {
        let page = root.read();
        let node = self.node(&page, root)?;
        if node.level() != 0 || node.count() != 0 {
            return Err(self.damaged(root.id().no, "a bulk load needs an empty tree"));
        }
        Ok(())
    }
}

impl Level {
    fn push(&mut self, cell: Vec<u8>) {
        self.bytes += cell.len() + slotted::SLOT;
        self.cells.push(cell);
    }
    fn pop(&mut self) -> Vec<u8> {
        let cell = self.cells.pop().expect("half a page holds at least one cell");
        self.bytes -= cell.len() + slotted::SLOT;
        cell
    }
}

/// The bound between two neighbouring cells of a level.
fn bound(level: usize, left: &[u8], right: &[u8]) -> Vec<u8> {
    if level == 0 { node::separator(left, right).to_vec() } else { right[size_of::<u32>()..].to_vec() }
}

impl Builder<'_> {
    async fn add(&mut self, key: Vec<u8>) -> Result<()> {
        if let Some(last) = self.levels[0].cells.last() {
            assert!(*last < key, "keys of a bulk load ascend");
        }
        let (mut level, mut cell) = (0, key);
        while let Some(parent) = self.push(level, cell).await? {
            level += 1;
            cell = parent;
        }
        Ok(())
    }

    /// Adds a cell to a level; where that completes a page, the page is written and its entry for the level above
    /// returned.
    async fn push(&mut self, l: usize, cell: Vec<u8>) -> Result<Option<Vec<u8>>> {
        if self.levels.len() == l {
            self.levels.push(Level::default());
        }
        let level = &mut self.levels[l];
        if level.cells.len() < 2 || level.bytes + cell.len() + slotted::SLOT <= self.body / 10 * 9 {
            level.push(cell);
            return Ok(None);
        }
        // The page's bound must fit too; cells that stand in its way begin the next page.
        let mut carry = vec![cell];
        let high = loop {
            let (last, next) = (&level.cells[level.cells.len() - 1], &carry[carry.len() - 1]);
            let high = bound(l, last, next);
            if level.bytes + high.len() + slotted::SLOT <= self.body {
                break high;
            }
            carry.push(level.pop());
        };
        let next = self.st.space(self.tree.space).reserve_page(self.st, self.tree.object).await?;
        let entry = self.write(l, Some((next.page.no, &high))).await?;
        let level = &mut self.levels[l];
        (level.room, level.low) = (Some(next), high);
        carry.into_iter().rev().for_each(|cell| level.push(cell));
        Ok(Some(entry))
    }

    /// Writes the page being filled; its entry for the level above.
    async fn write(&mut self, l: usize, right: Option<(u32, &[u8])>) -> Result<Vec<u8>> {
        let space = self.st.space(self.tree.space);
        let level = &mut self.levels[l];
        let room = match level.room.take() {
            Some(room) => room,
            None => space.reserve_page(self.st, self.tree.object).await?,
        };
        let permit = self.st.reserve(split_log(self.st.pool().page_size())).await?;
        let no = room.page.no;
        let mut mtr = self.st.mtr(permit);
        self.fill(&mut mtr, &room.pin, l, right);
        space.use_page(&mut mtr, room);
        mtr.commit();
        let level = &mut self.levels[l];
        let entry = node::inner_cell(no, &level.low);
        *level = Level { left: no, ..Level::default() };
        Ok(entry)
    }

    fn fill(&self, mtr: &mut Mtr, pin: &Pin, l: usize, right: Option<(u32, &[u8])>) {
        let level = &self.levels[l];
        let at = mtr.latch(pin);
        mtr.apply(at, node::format(self.tree.object));
        let special = node::special(l as u8, 0, level.left, right.map_or(0, |(no, _)| no));
        mtr.apply(at, node::write_special(&special));
        let cells = right.map(|(_, high)| high).into_iter().chain(level.cells.iter().map(|cell| &cell[..]));
        for (slot, cell) in cells.enumerate() {
            mtr.apply(at, PageOp::InsertAt { slot: slot as u16, cell });
        }
    }

    /// Writes the last page of each level; what is left on top becomes the root.
    async fn finish(mut self) -> Result<()> {
        let mut l = 0;
        while l + 1 < self.levels.len() || self.levels[l].left != 0 {
            let mut up = (l + 1, self.write(l, None).await?);
            while let Some(parent) = self.push(up.0, up.1).await? {
                up = (up.0 + 1, parent);
            }
            l += 1;
        }
        let root = self.tree.pin(self.st, self.tree.root, Access::Random).await?;
        let permit = self.st.reserve(split_log(self.st.pool().page_size())).await?;
        let mut mtr = self.st.mtr(permit);
        let at = mtr.latch(&root);
        assert!(
            Node(mtr.page(at)).count() == 0 && header::owner(mtr.page(at)) == self.tree.object,
            "somebody else uses the tree"
        );
        self.fill(&mut mtr, &root, l, None);
        mtr.commit();
        Ok(())
    }
}
