//! Going down: one page at a time, one shared latch at a time.
use super::node::{Node, Target};
use super::*;

/// What to do after looking at a page.
pub(super) enum Step {
    Here,
    Go(u32),
    /// An inserter met an incomplete split.
    Finish,
}

impl BTree {
    pub(super) async fn pin(&self, st: &Store, no: u32, access: Access) -> Result<Pin> {
        let id = PageId::new(self.space, no);
        match st.pool().get(id) {
            Some(pin) => Ok(pin),
            None => st.pool().fetch(id, access).await,
        }
    }

    /// The page as one of this tree.
    pub(super) fn node<'a>(&self, page: &'a [u8], pin: &Pin) -> Result<Node<'a>> {
        let node = Node(page);
        if !node.belongs(self.object) {
            return Err(self.damaged(pin.id().no, "it is not a page of this tree"));
        }
        Ok(node)
    }

    pub(super) fn damaged(&self, page: u32, what: &str) -> StorageError {
        StorageError::Damaged(format!("index {}, page {}: {what}", self.object, PageId::new(self.space, page)))
    }

    /// The page of `level` where `target` belongs (or did a moment ago). An `inserter` finishes the splits that it
    /// meets. The caller is inside an epoch.
    pub(super) async fn descend(&self, st: &Store, target: Target<'_>, level: u8, inserter: bool) -> Result<Pin> {
        let mut pin = self.pin(st, self.root, Access::Random).await?;
        loop {
            match self.step(&pin, target, level, inserter)? {
                Step::Here => return Ok(pin),
                Step::Go(no) => pin = self.pin(st, no, Access::Random).await?,
                Step::Finish => {
                    self.finish_split(st, pin.id().no).await?;
                    pin = self.pin(st, self.root, Access::Random).await?;
                }
            }
        }
    }

    pub(super) fn step(&self, pin: &Pin, target: Target<'_>, level: u8, inserter: bool) -> Result<Step> {
        let page = pin.read();
        let node = self.node(&page, pin)?;
        if node.level() < level {
            return Err(self.damaged(pin.id().no, "its level is lower than its parent says"));
        }
        if inserter && node.is_incomplete() && !node.is_dead() {
            return Ok(Step::Finish);
        }
        if node.is_left_of(target) {
            return Ok(Step::Go(node.right()));
        }
        if node.level() == level {
            return Ok(Step::Here);
        }
        if node.count() == 0 {
            return Err(self.damaged(pin.id().no, "an inner page is empty"));
        }
        Ok(Step::Go(node.child_for(target)))
    }
}
