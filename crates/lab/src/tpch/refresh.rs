//! Refresh functions (clause 2.6): new orders with their lines come in, as many old ones go.
use super::schema::orders;
use super::{REFRESHES, TpcH};
use crate::workload::{Client, int, named, number};
use rand_chacha::ChaCha8Rng;
use std::sync::atomic::Ordering;
use terrace_engine::{Database, Result};

impl TpcH {
    /// Both, one after the other; how many rows were written.
    pub(super) async fn refresh(&self, database: &Database, random: &mut ChaCha8Rng) -> Result<u64> {
        let number = self.begin_refresh();
        Ok(self.insert(database, random).await? + self.delete(database, number).await?)
    }

    /// The number of this pair; its deletes have an order of each thousand to themselves.
    pub(super) fn begin_refresh(&self) -> u32 {
        let number = self.refreshes.fetch_add(1, Ordering::Relaxed);
        assert!(number < REFRESHES, "a run has no more than {REFRESHES} refreshes");
        number
    }

    pub(super) async fn insert(&self, database: &Database, random: &mut ChaCha8Rng) -> Result<u64> {
        let first = self.next_order.fetch_add(self.sizes.refreshed(), Ordering::Relaxed);
        let (all, lineitem) = (named(database, "orders"), named(database, "lineitem"));
        let mut rows = 0;
        for o in first..first + self.sizes.refreshed() {
            let (order, lines) = self.order(o, random);
            let mut client = Client::begin(database);
            client.insert(&all, &order).await?;
            for line in &lines {
                client.insert(&lineitem, line).await?;
            }
            client.txn.commit().await?;
            rows += 1 + lines.len() as u64;
        }
        Ok(rows)
    }

    pub(super) async fn delete(&self, database: &Database, pair: u32) -> Result<u64> {
        let (all, lineitem) = (named(database, "orders"), named(database, "lineitem"));
        let mut rows = 0;
        for group in 0..self.sizes.refreshed() {
            let key = [int(group * REFRESHES + pair)];
            let mut client = Client::begin(database);
            let order = client.get(&all, &key).await?;
            for n in 0..number(&order, orders::LINES) {
                let n = u32::try_from(n).expect("at most seven lines");
                client.delete(&lineitem, &[key[0].clone(), int(n)]).await?;
                rows += 1;
            }
            client.delete(&all, &key).await?;
            client.txn.commit().await?;
            rows += 1;
        }
        Ok(rows)
    }
}
