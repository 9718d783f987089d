//! What transactions have read and written, and whether there is an order that explains it.
//!
//! 1. Steps are counted in the simulator, where nothing comes between a snapshot or a commit and its counting. So a
//!    snapshot shows exactly the commits of earlier steps, and what each read must have found is known.
//! 2. The direct serialisation graph (Adya 1999) has an edge from one committed transaction to another where the second
//!    wrote the next version of a row (ww), where it read what the first wrote (wr), and where it wrote over what the
//!    first had read (rw). A read of a range reads each row that could be in it. A later version counts if it changes
//!    what the read found. The history is serialisable exactly if the graph has no cycle.
use std::collections::{BTreeMap, BTreeSet};

pub(crate) type Key = i32;

/// A row without its key: a group, and a mark that no other write has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Content {
    pub(crate) group: i32,
    pub(crate) mark: i32,
}

/// What a read asks for; both ends belong to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Read {
    Keys(Key, Key),
    Groups(i32, i32),
    All,
}

impl Read {
    /// What it finds of a row.
    fn of(self, key: Key, content: Option<Content>) -> Option<Content> {
        content.filter(|content| match self {
            Read::Keys(from, to) => (from..=to).contains(&key),
            Read::Groups(from, to) => (from..=to).contains(&content.group),
            Read::All => true,
        })
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Read(Read, BTreeMap<Key, Content>),
    /// `None`: deleted.
    Write(Key, Option<Content>),
}

#[derive(Clone, Debug)]
pub(crate) struct Transaction {
    /// The step of its snapshot.
    pub(crate) snapshot: u64,
    pub(crate) ops: Vec<Op>,
    pub(crate) end: End,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// Its commit was called, and has not answered.
    Unknown,
    /// At this step.
    Committed(u64),
    RolledBack,
}

#[derive(Default)]
pub(crate) struct History {
    pub(crate) step: u64,
    pub(crate) all: Vec<Transaction>,
}

/// A version of a row: when it was committed, by which transaction, and what it is.
type Version = (u64, usize, Option<Content>);

impl History {
    pub(crate) fn next_step(&mut self) -> u64 {
        self.step += 1;
        self.step
    }

    pub(crate) fn committed(&self) -> usize {
        self.all.iter().filter(|t| matches!(t.end, End::Committed(_))).count()
    }

    /// The versions of each row, oldest first.
    fn versions(&self) -> BTreeMap<Key, Vec<Version>> {
        let mut versions: BTreeMap<Key, Vec<Version>> = BTreeMap::new();
        for (at, transaction) in self.all.iter().enumerate() {
            let End::Committed(step) = transaction.end else { continue };
            let mut last = BTreeMap::new();
            for op in &transaction.ops {
                if let Op::Write(key, content) = op {
                    last.insert(*key, *content);
                }
            }
            last.into_iter().for_each(|(key, content)| versions.entry(key).or_default().push((step, at, content)));
        }
        versions.values_mut().for_each(|versions| versions.sort_by_key(|(step, ..)| *step));
        versions
    }

    /// After a crash: what the rows are now tells which of those commits counted that had not answered.
    pub(crate) fn settle(&mut self, now: &BTreeMap<Key, Content>) {
        let before = self.versions();
        let step = self.next_step();
        for transaction in self.all.iter_mut().filter(|t| t.end == End::Unknown) {
            let mut last = BTreeMap::new();
            for op in &transaction.ops {
                if let Op::Write(key, content) = op {
                    last.insert(*key, *content);
                }
            }
            let was = |key: &Key| before.get(key).and_then(|versions| versions.last()?.2);
            let changed: Vec<bool> = last
                .iter()
                .filter(|(key, content)| was(key) != **content)
                .map(|(key, content)| now.get(key).copied() == *content)
                .collect();
            assert!(changed.iter().all(|c| *c == changed[0]), "half of a transaction is there: {transaction:?}");
            let committed = changed.first().copied().unwrap_or(false);
            transaction.end = if committed { End::Committed(step) } else { End::RolledBack };
        }
        let after = self.versions();
        let rows = after.into_iter().filter_map(|(key, versions)| Some((key, versions.last()?.2?))).collect();
        assert_eq!(*now, rows, "what was committed is there, and nothing else");
    }

    /// The transactions of a cycle, if there is one. Panics where a read found what its snapshot cannot show.
    pub(crate) fn cycle(&self) -> Option<Vec<usize>> {
        let versions = self.versions();
        let mut edges: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        let mut edge = |from: usize, to: usize| {
            if from != to {
                edges.entry(from).or_default().insert(to);
            }
        };
        for versions in versions.values() {
            versions.windows(2).for_each(|pair| edge(pair[0].1, pair[1].1));
        }
        for (at, transaction) in self.all.iter().enumerate() {
            if !matches!(transaction.end, End::Committed(_)) {
                continue;
            }
            let mut own: BTreeMap<Key, Option<Content>> = BTreeMap::new();
            for op in &transaction.ops {
                match op {
                    Op::Write(key, content) => drop(own.insert(*key, *content)),
                    Op::Read(read, found) => {
                        let expected = self.read(*read, transaction.snapshot, &versions, &own);
                        assert_eq!(*found, expected, "{read:?} of {transaction:?}");
                        for (key, versions) in versions.iter().filter(|(key, _)| !own.contains_key(key)) {
                            let seen = versions.partition_point(|(step, ..)| *step < transaction.snapshot);
                            dependencies(*read, *key, versions, seen, |writer, before| match before {
                                true => edge(writer, at),
                                false => edge(at, writer),
                            });
                        }
                    }
                }
            }
        }
        find_cycle(&edges)
    }

    /// What a read finds with the snapshot of a step.
    fn read(
        &self,
        read: Read,
        snapshot: u64,
        versions: &BTreeMap<Key, Vec<Version>>,
        own: &BTreeMap<Key, Option<Content>>,
    ) -> BTreeMap<Key, Content> {
        let mut rows: BTreeMap<Key, Option<Content>> = BTreeMap::new();
        for (key, versions) in versions {
            let seen = versions.partition_point(|(step, ..)| *step < snapshot);
            rows.insert(*key, seen.checked_sub(1).and_then(|seen| versions[seen].2));
        }
        rows.extend(own);
        rows.into_iter().filter_map(|(key, content)| Some((key, read.of(key, content)?))).collect()
    }
}

/// Tells of a read of one row, of which the first `seen` versions were committed: who wrote what it found (true), and
/// who changed that next (false).
fn dependencies(read: Read, key: Key, versions: &[Version], seen: usize, mut tell: impl FnMut(usize, bool)) {
    let found = |upto: usize| upto.checked_sub(1).and_then(|last| read.of(key, versions[last].2));
    let mut since = seen;
    while since > 0 && found(since - 1) == found(seen) {
        since -= 1;
    }
    if let Some(last) = since.checked_sub(1) {
        tell(versions[last].1, true);
    }
    if let Some(next) = (seen + 1..=versions.len()).find(|upto| found(*upto) != found(seen)) {
        tell(versions[next - 1].1, false);
    }
}

fn find_cycle(edges: &BTreeMap<usize, BTreeSet<usize>>) -> Option<Vec<usize>> {
    let mut done = BTreeSet::new();
    for start in edges.keys() {
        // The path, and for each of its transactions those that are still to be visited.
        let mut path: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut next = Some(*start).filter(|start| !done.contains(start));
        while let Some(now) = next.take() {
            let after = edges.get(&now).into_iter().flatten().copied().collect();
            path.push((now, after));
            while let Some((_, after)) = path.last_mut() {
                match after.pop() {
                    Some(to) if path.iter().any(|(at, _)| *at == to) => {
                        let from = path.iter().position(|(at, _)| *at == to).expect("it was found just now");
                        return Some(path[from..].iter().map(|(at, _)| *at).collect());
                    }
                    Some(to) if done.contains(&to) => {}
                    Some(to) => {
                        next = Some(to);
                        break;
                    }
                    None => {
                        let (at, _) = path.pop().expect("it is not empty");
                        done.insert(at);
                    }
                }
            }
        }
    }
    None
}

/// Write skew, by hand: the checker finds it, and finds nothing where one follows the other.
#[test]
fn the_checker_tells_cycles_from_orders() {
    let row = |mark| Some(Content { group: 0, mark });
    let write = |key, mark| Op::Write(key, row(mark));
    let both = |marks: [i32; 2]| {
        let rows = [1, 2].into_iter().zip(marks).map(|(key, mark)| (key, Content { group: 0, mark }));
        Op::Read(Read::All, rows.collect())
    };
    let transaction = |snapshot, ops, end| Transaction { snapshot, ops, end: End::Committed(end) };
    let first = transaction(1, vec![write(1, 1), write(2, 2)], 2);
    let skew = |snapshot, seen| History {
        step: 9,
        all: vec![
            first.clone(),
            transaction(3, vec![both([1, 2]), write(1, 3)], 5),
            transaction(snapshot, vec![both(seen), write(2, 4)], 7),
        ],
    };
    assert_eq!(
        skew(4, [1, 2]).cycle().map(|mut cycle| {
            cycle.sort_unstable();
            cycle
        }),
        Some(vec![1, 2])
    );
    assert_eq!(skew(6, [3, 2]).cycle(), None);
}
