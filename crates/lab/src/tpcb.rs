//! TPC-B: one transaction that adds an amount to an account, its teller and its branch, and writes a line of history.
//! (TPC Benchmark B, clause 1.2; rows per branch are a parameter, the 85/15 choice of the account's branch is as in
//! clause 5.3.)
use crate::workload::{Client, Outcome, Workload, add, create, fill, int, is_lost, named, number, table};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use terrace_engine::{DataType, Database, Datum, Result};

#[derive(Clone, Copy, Debug)]
pub struct TpcB {
    pub branches: u32,
    /// 10 in the specification.
    pub tellers: u32,
    /// 100,000 in the specification.
    pub accounts: u32,
    /// So many transactions in a hundred only read an account's balance; 0 in the specification.
    pub reads: u32,
}

/// Rows are filled up to 100 bytes (clause 3.2), history's to 50.
fn filler(bytes: usize) -> Datum {
    Datum::text(" ".repeat(bytes))
}

async fn balance(database: &Database, account: u32) -> Result<Outcome> {
    let mut client = Client::begin(database);
    client.get(&named(database, "accounts"), &[int(account)]).await?;
    let statements = client.statements;
    client.txn.commit().await?;
    Ok(Outcome { counted: true, statements, ..Outcome::default() })
}

impl Workload for TpcB {
    async fn load(&self, database: &Database) -> Result<()> {
        let (int4, int8, text) = (DataType::Int4, DataType::Int8, DataType::Text);
        let holder = |name: &str, id: &str| {
            table(name, &[(id, int4), ("branch", int4), ("balance", int8), ("filler", text)], &[(&[id], true)])
        };
        let history =
            [("id", int8), ("teller", int4), ("branch", int4), ("account", int4), ("delta", int8), ("filler", text)];
        create(
            database,
            vec![
                holder("branches", "branch_id"),
                holder("tellers", "teller_id"),
                holder("accounts", "account_id"),
                table("history", &history, &[(&["id"], true)]),
            ],
        )
        .await?;
        let rows = |each: u32| {
            let all = 0..self.branches * each;
            all.map(move |id| vec![int(id), int(id / each), Datum::Int8(0), filler(80)])
        };
        fill(database, "branches", rows(1)).await?;
        fill(database, "tellers", rows(self.tellers)).await?;
        fill(database, "accounts", rows(self.accounts)).await
    }

    async fn transaction(&self, database: &Database, _terminal: usize, random: &mut ChaCha8Rng) -> Result<Outcome> {
        let branch = random.random_range(0..self.branches);
        let teller = branch * self.tellers + random.random_range(0..self.tellers);
        let home = self.branches == 1 || random.random_range(0..100) < 85;
        let of = if home { branch } else { (branch + random.random_range(1..self.branches)) % self.branches };
        let account = of * self.accounts + random.random_range(0..self.accounts);
        if random.random_range(0..100) < self.reads {
            return balance(database, account).await;
        }
        let delta = random.random_range(-999_999..=999_999);
        let id = random.random_range(0..i64::MAX);
        let mut outcome = Outcome { counted: true, ..Outcome::default() };
        loop {
            let mut client = Client::begin(database);
            let result = async {
                client.update(&named(database, "accounts"), &[int(account)], |row| add(row, 2, delta)).await?;
                client.update(&named(database, "tellers"), &[int(teller)], |row| add(row, 2, delta)).await?;
                client.update(&named(database, "branches"), &[int(branch)], |row| add(row, 2, delta)).await?;
                let line = [Datum::Int8(id), int(teller), int(branch), int(account), Datum::Int8(delta), filler(22)];
                client.insert(&named(database, "history"), &line).await
            }
            .await;
            outcome.statements += client.statements;
            match result {
                Ok(()) => return client.txn.commit().await.map(|()| outcome),
                Err(e) if is_lost(&e) => client.txn.rollback().await?,
                Err(e) => return Err(e),
            }
            outcome.retries += 1;
        }
    }

    /// Clause 2.3.2's conditions: accounts, tellers, branches and history agree.
    async fn check(&self, database: &Database) -> Result<Vec<String>> {
        let mut client = Client::begin(database);
        let mut sums = Vec::new();
        for (name, column) in [("accounts", 2), ("tellers", 2), ("branches", 2), ("history", 4)] {
            let rows = client.all(&named(database, name)).await?;
            sums.push((name, rows.iter().map(|row| number(row, column)).sum::<i64>()));
        }
        client.txn.commit().await?;
        let agree = sums.iter().all(|(_, sum)| *sum == sums[0].1);
        Ok(if agree { vec![] } else { vec![format!("TPC-B: sums differ: {sums:?}")] })
    }
}

#[cfg(test)]
mod tests;
