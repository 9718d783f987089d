//! Unlinking empty pages.
//!
//! The keys that an empty leaf covered go to its right neighbour: in the level above, the entry of the leaf takes over
//! the neighbour's child and the neighbour's entry goes. Where the leaf is its parent's only child, the parent goes
//! with it, its keys to *its* right neighbour, and so on up to an ancestor with more than one child.
use super::node::{self, DEAD, Node, Target};
use super::*;
use crate::mtr::Latched;

/// Log bytes of unlinking a page and up to seven ancestors that hold nothing else.
pub(super) const UNLINK_LOG: usize = 8192;
const MAX_CHAIN: usize = 8;

/// A page that is to go, with its neighbours and map page.
struct Doomed {
    left: Option<Pin>,
    page: Pin,
    right: Pin,
    map: Pin,
}

/// What was seen of a page that is to go.
struct Links {
    left: u32,
    right: u32,
    high: Vec<u8>,
}

fn no(pin: &Pin) -> u32 {
    pin.id().no
}

impl BTree {
    /// Unlinks an empty leaf if that can be, and its right neighbours while they are empty too (such a one may have had
    /// to wait for its left neighbour). What cannot be unlinked stays and is used again when keys come back.
    pub(super) async fn delete_empty(&self, st: &Store, leaf: Pin) -> Result<()> {
        let mut leaf = Some(leaf);
        while let Some(pin) = leaf {
            leaf = self.delete_one(st, pin).await?;
        }
        Ok(())
    }

    /// The right neighbour if the leaf was unlinked.
    async fn delete_one(&self, st: &Store, leaf: Pin) -> Result<Option<Pin>> {
        let Some(links) = self.deletable(&leaf, 0)? else { return Ok(None) };
        let bound = links.high.clone();
        let mut chain = vec![self.doom(st, leaf, &links).await?];
        let parent = loop {
            let level = chain.len() as u8;
            let above = self.descend(st, Target::Key(&bound), level, false).await?;
            let (top, at) = (&chain[chain.len() - 1], self.place(&above, level, &bound)?);
            match at {
                SeparatorPlace::Second { left, right } if left == no(&top.page) && right == no(&top.right) => {
                    break above;
                }
                SeparatorPlace::First { left } if left != 0 && chain.len() < MAX_CHAIN => {
                    let only = self.pin(st, left, Access::Random).await?;
                    if !self.has_only_child(&only, level, no(&top.page))? {
                        return Ok(None);
                    }
                    let Some(links) = self.deletable(&only, level)? else { return Ok(None) };
                    if links.high != bound {
                        return Ok(None);
                    }
                    let doomed = self.doom(st, only, &links).await?;
                    chain.push(doomed);
                }
                _ => return Ok(None),
            }
        };
        let permit = st.reserve_for_cleanup(UNLINK_LOG).await?;
        if !self.try_unlink(st, st.mtr(permit), &chain, &parent, &bound) {
            return Ok(None);
        }
        Ok(Some(chain.swap_remove(0).right))
    }

    async fn doom(&self, st: &Store, page: Pin, links: &Links) -> Result<Doomed> {
        let left = if links.left == 0 { None } else { Some(self.pin(st, links.left, Access::Random).await?) };
        let right = self.pin(st, links.right, Access::Random).await?;
        let map = st.space(self.space).map_pin(st, no(&page)).await?;
        Ok(Doomed { left, page, right, map })
    }

    /// The links of a page that holds nothing (a leaf) or no more than one child (an inner page) and has a right
    /// neighbour.
    fn deletable(&self, pin: &Pin, level: u8) -> Result<Option<Links>> {
        let page = pin.read();
        let node = self.node(&page, pin)?;
        let is_bare = node.level() == level && node.count() == (level > 0) as usize;
        if no(pin) == self.root || node.is_dead() || node.is_incomplete() || !is_bare {
            return Ok(None);
        }
        Ok(node.high().map(|high| Links { left: node.left(), right: node.right(), high: high.to_vec() }))
    }

    fn has_only_child(&self, pin: &Pin, level: u8, child: u32) -> Result<bool> {
        let page = pin.read();
        let node = self.node(&page, pin)?;
        Ok(!node.is_dead() && node.level() == level && node.count() == 1 && node.child(0) == child)
    }

    /// Where the boundary `bound` lies in the page of `level` that covers it.
    fn place(&self, pin: &Pin, level: u8, bound: &[u8]) -> Result<SeparatorPlace> {
        let page = pin.read();
        let node = self.node(&page, pin)?;
        if node.level() != level || node.is_left_of(Target::Key(bound)) {
            return Ok(SeparatorPlace::Nowhere);
        }
        Ok(match node.search_separator(bound) {
            Ok(i) => SeparatorPlace::Second { left: node.child(i - 1), right: node.child(i) },
            Err(1) => SeparatorPlace::First { left: node.left() },
            Err(_) => SeparatorPlace::Nowhere,
        })
    }

    /// Looks at everything again under latches, and unlinks the chain; false where something has changed.
    fn try_unlink(&self, st: &Store, mut mtr: Mtr, chain: &[Doomed], parent: &Pin, bound: &[u8]) -> bool {
        let mut latched = Vec::with_capacity(chain.len());
        for doomed in chain {
            let left = doomed.left.as_ref().map(|pin| mtr.latch(pin));
            latched.push((left, mtr.latch(&doomed.page), mtr.latch(&doomed.right)));
        }
        let above = mtr.latch(parent);
        for (level, (doomed, at)) in chain.iter().zip(&latched).enumerate() {
            let below = level.checked_sub(1).map(|l| no(&chain[l].page));
            if !self.still_doomed(&mtr, doomed, at, level, below, bound) {
                return false;
            }
        }
        let top = chain.last().expect("a chain begins with the leaf");
        let node = Node(mtr.page(above));
        if node.is_dead() || node.level() as usize != chain.len() || node.is_left_of(Target::Key(bound)) {
            return false;
        }
        let Ok(i) = node.search_separator(bound) else { return false };
        if node.child(i - 1) != no(&top.page) || node.child(i) != no(&top.right) {
            return false;
        }
        let (kept, gone) = (node.slot(i - 1), node.slot(i));
        mtr.apply(above, PageOp::Patch { slot: kept, offset: 0, bytes: &no(&top.right).to_le_bytes() });
        mtr.apply(above, PageOp::RemoveAt { slot: gone });
        for (doomed, (left, page, right)) in chain.iter().zip(&latched) {
            let links = Node(mtr.page(*page));
            let (l, r) = (links.left(), links.right());
            if let Some(left) = left {
                mtr.apply(*left, node::write_right(&r.to_le_bytes()));
            }
            mtr.apply(*right, node::write_left(&l.to_le_bytes()));
            mtr.apply(*page, node::write_flags(&[DEAD]));
            debug_assert_eq!(no(&doomed.right), r);
        }
        self.free(st, mtr, chain);
        true
    }

    fn still_doomed(
        &self,
        mtr: &Mtr,
        doomed: &Doomed,
        at: &(Option<Latched>, Latched, Latched),
        level: usize,
        below: Option<u32>,
        bound: &[u8],
    ) -> bool {
        let (node, right) = (Node(mtr.page(at.1)), Node(mtr.page(at.2)));
        let left_no = doomed.left.as_ref().map_or(0, no);
        let is_bare = match below {
            None => node.count() == 0,
            Some(below) => node.count() == 1 && node.child(0) == below,
        };
        let is_linked = node.left() == left_no && node.right() == no(&doomed.right) && right.left() == no(&doomed.page);
        let left_links = at.0.is_none_or(|left| Node(mtr.page(left)).right() == no(&doomed.page));
        let is_live = !node.is_dead() && !node.is_incomplete() && node.level() as usize == level;
        is_live && is_bare && is_linked && left_links && node.high() == Some(bound)
    }

    /// Frees the pages in the map, ends the mini-transaction, and lets them be reused when nobody can know them.
    fn free(&self, st: &Store, mut mtr: Mtr, chain: &[Doomed]) {
        let space = st.space(self.space);
        let mut doomed: Vec<_> = chain.iter().collect();
        doomed.sort_by_key(|d| no(&d.page)); // latch order of map pages
        let holds: Vec<_> = doomed.iter().map(|d| space.free_page(&mut mtr, &d.map, no(&d.page))).collect();
        mtr.commit();
        holds.into_iter().for_each(|hold| space.retire(hold));
    }
}

enum SeparatorPlace {
    /// It separates the two children.
    Second {
        left: u32,
        right: u32,
    },
    /// It is not above the first child's first key: what lies before it belongs to the page's left neighbour.
    First {
        left: u32,
    },
    Nowhere,
}
