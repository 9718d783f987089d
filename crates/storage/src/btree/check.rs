//! Checks a whole tree, level by level from the top: what the level above says of its children against the chain of
//! pages.
use super::node::Target;
use super::*;

/// A child as the level above knows it.
struct Child {
    page: u32,
    /// Its lower bound; none for the leftmost of a level.
    low: Option<Vec<u8>>,
}

/// What a page says.
struct Seen {
    right: u32,
    high: Option<Vec<u8>>,
    is_incomplete: bool,
    keys: u64,
}

impl BTree {
    /// Checks order, links, bounds, levels, separators, and that the tree reaches every page of the object. For a quiet
    /// tree. Returns the number of keys.
    pub async fn check(&self, st: &Store) -> Result<u64> {
        let _epoch = st.space(self.space).enter();
        let root = self.pin(st, self.root, Access::Random).await?;
        let top = self.node(&root.read(), &root)?.level();
        let mut expected = vec![Child { page: self.root, low: None }];
        let (mut keys, mut pages) = (0, 0);
        for level in (0..=top).rev() {
            let mut below = Vec::new();
            (keys, pages) = self.check_level(st, level, &expected, &mut below, pages).await?;
            expected = below;
        }
        if pages != st.space(self.space).page_count(self.object) {
            return Err(self.damaged(self.root, "the object has pages that its tree does not reach"));
        }
        Ok(keys)
    }

    async fn check_level(
        &self,
        st: &Store,
        level: u8,
        expected: &[Child],
        below: &mut Vec<Child>,
        mut pages: u64,
    ) -> Result<(u64, u64)> {
        let mut children = expected.iter();
        let (mut keys, mut left, mut low) = (0, 0, None::<Vec<u8>>);
        let mut no = expected[0].page;
        let mut is_linked = true;
        loop {
            let pin = self.pin(st, no, Access::Sequential).await?;
            let seen = self.check_page(&pin, level, left, low.as_deref(), below)?;
            if is_linked && !children.next().is_some_and(|child| child.page == no && child.low == low) {
                return Err(self.damaged(no, "the level above knows it otherwise, or not at all"));
            }
            keys += seen.keys;
            pages += 1;
            if seen.right == 0 {
                break;
            }
            (is_linked, left, low, no) = (!seen.is_incomplete, no, seen.high, seen.right);
        }
        match children.next() {
            Some(child) => Err(self.damaged(child.page, "the level above leads to it, its left neighbour does not")),
            None => Ok((keys, pages)),
        }
    }

    fn check_page(&self, pin: &Pin, level: u8, left: u32, low: Option<&[u8]>, below: &mut Vec<Child>) -> Result<Seen> {
        let page = pin.read();
        let node = self.node(&page, pin)?;
        let wrong = |what: &str| Err(self.damaged(pin.id().no, what));
        if node.level() != level || node.is_dead() || node.left() != left {
            return wrong("level, left link or flags");
        }
        if !slotted::is_sound(&page) || (node.right() != 0 && slotted::slot_count(&page) == 0) {
            return wrong("its directory");
        }
        let (first, count) = ((level > 0) as usize, node.count());
        if count < first || (node.is_incomplete() && node.right() == 0) {
            return wrong("an inner page is empty, or a split has no right page");
        }
        for i in first..count {
            let key = node.key(i);
            if low.is_some_and(|low| key < low)
                || node.is_left_of(Target::Key(key))
                || (i > first && node.key(i - 1) >= key)
            {
                return wrong(&format!("entry {i} is out of order or out of bounds"));
            }
        }
        if level > 0 {
            let bound = |i: usize| if i == 0 { low.map(<[u8]>::to_vec) } else { Some(node.key(i).to_vec()) };
            below.extend((0..count).map(|i| Child { page: node.child(i), low: bound(i) }));
        }
        let high = node.high().map(<[u8]>::to_vec);
        Ok(Seen { right: node.right(), high, is_incomplete: node.is_incomplete(), keys: count as u64 })
    }
}
