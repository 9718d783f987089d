//! Wrong answers found without a second database: a query must answer the same rows as its three parts together, the
//! rows for which a condition is true, false and unknown (Rigger & Su, "Finding bugs in database systems via query
//! partitioning", OOPSLA 2020), and a condition must count as many rows in WHERE, where it is planned, as it is true
//! of in the select list, where it is only computed (the same authors, "Detecting optimization bugs in database
//! engines via non-optimizing reference engine construction", ESEC/FSE 2020).
//!
//! `TERRACE_SEED=17` runs one seed, `TERRACE_SEEDS=100` so many.
mod generate;

use crate::common::{Client, Reply, database};
use generate::{Generator, Source};

/// Statements refused or failing at run time say nothing; too many of them, and the test says nothing either.
#[derive(Default)]
struct Tally {
    compared: usize,
    refused: usize,
}

/// The rows of a query, sorted, or `None` where it is refused.
async fn rows(client: &mut Client, sql: &str) -> Option<Vec<String>> {
    match client.run(sql).await {
        Ok(Reply::Rows(mut rows)) => {
            rows.sort();
            Some(rows)
        }
        Ok(other) => panic!("{sql}: {other:?} instead of rows"),
        Err(error) => {
            assert!(error.state.0 != "XX000", "{sql}: {} {error}", error.state.0);
            None
        }
    }
}

/// The parts of a query by `condition`, put behind `clause` (WHERE, HAVING, ON): true, false, unknown.
fn parts(head: &str, clause: &str, condition: &str, tail: &str) -> [String; 3] {
    [format!("({condition})"), format!("NOT ({condition})"), format!("({condition}) IS NULL")]
        .map(|part| format!("{head} {clause} {part} {tail}"))
}

/// The whole's rows are those of the parts; with `distinct`, a row may be in several parts.
async fn partitioned(client: &mut Client, tally: &mut Tally, whole: &str, parts: [String; 3], distinct: bool) {
    let Some(expected) = rows(client, whole).await else {
        tally.refused += 1;
        return;
    };
    let mut found = vec![];
    for part in &parts {
        let Some(more) = rows(client, part).await else {
            tally.refused += 1;
            return;
        };
        found.extend(more);
    }
    found.sort();
    if distinct {
        found.dedup();
    }
    assert_eq!(found, expected, "the parts beside the whole:\n{whole};\n{};", parts.join(";\n"));
    tally.compared += 1;
}

/// Rows, duplicates gone, groups, joins, aggregates: each by the same condition.
async fn conditions(client: &mut Client, generator: &mut Generator, tally: &mut Tally) {
    let Source { sql: from, columns } = generator.source();
    let condition = generator.condition(&columns, 2);
    let (one, two) = (generator.column(&columns), generator.column(&columns));

    let head = format!("SELECT {one}, {two} FROM {from}");
    partitioned(client, tally, &head, parts(&head, "WHERE", &condition, ""), false).await;
    let head = format!("SELECT DISTINCT {one} FROM {from}");
    partitioned(client, tally, &head, parts(&head, "WHERE", &condition, ""), true).await;
    let (head, tail) = (format!("SELECT {one} FROM {from}"), format!("GROUP BY {one}"));
    partitioned(client, tally, &format!("{head} {tail}"), parts(&head, "WHERE", &condition, &tail), true).await;

    let having = generator.condition_of_groups(&columns, &one);
    let head = format!("SELECT {one}, count(*) FROM {from} GROUP BY {one}");
    partitioned(client, tally, &head, parts(&head, "HAVING", &having, ""), false).await;

    aggregates(client, tally, generator, &from, &columns, &condition).await;
    counted(client, tally, &from, &condition).await;
}

/// An aggregate of the whole is the same aggregate of the parts' aggregates.
async fn aggregates(
    client: &mut Client,
    tally: &mut Tally,
    generator: &mut Generator,
    from: &str,
    columns: &[generate::Column],
    condition: &str,
) {
    let (of, over) = generator.aggregate(columns);
    let whole = format!("SELECT {of} FROM {from}");
    let parts = parts(&format!("SELECT {of} AS part FROM {from}"), "WHERE", condition, "");
    let together = format!("SELECT {} FROM ({}) AS parts", over, parts.join(" UNION ALL "));
    match (rows(client, &whole).await, rows(client, &together).await) {
        (Some(expected), Some(found)) => {
            assert_eq!(found, expected, "the parts beside the whole:\n{whole};\n{together};");
            tally.compared += 1;
        }
        _ => tally.refused += 1,
    }
}

/// As many rows pass a condition as it is true of.
async fn counted(client: &mut Client, tally: &mut Tally, from: &str, condition: &str) {
    let planned = format!("SELECT count(*) FROM {from} WHERE {condition}");
    let computed = format!("SELECT ({condition}) IS TRUE FROM {from}");
    match (rows(client, &planned).await, rows(client, &computed).await) {
        (Some(expected), Some(found)) => {
            let count = found.iter().filter(|row| *row == "true").count();
            assert_eq!(expected, [count.to_string()], "{planned};\n{computed};");
            tally.compared += 1;
        }
        _ => tally.refused += 1,
    }
}

/// A join's ON: with true, false and unknown it is the product.
async fn joins(client: &mut Client, generator: &mut Generator, tally: &mut Tally) {
    let (left, right) = (generator.table(), generator.table());
    let columns = [left.columns.clone(), right.columns.clone()].concat();
    let condition = generator.condition(&columns, 2);
    let one = generator.column(&columns);
    let whole = format!("SELECT {one} FROM {} CROSS JOIN {}", left.sql, right.sql);
    let head = format!("SELECT {one} FROM {} JOIN {}", left.sql, right.sql);
    partitioned(client, tally, &whole, parts(&head, "ON", &condition, ""), false).await;
}

async fn seed(seed: u64) -> Tally {
    let (mut generator, mut tally) = (Generator::new(seed), Tally::default());
    let mut client = Client::new(&database().await);
    for statement in generator.tables() {
        client.run(&statement).await.unwrap_or_else(|e| panic!("{statement}: {e}"));
    }
    for _ in 0..8 {
        conditions(&mut client, &mut generator, &mut tally).await;
        joins(&mut client, &mut generator, &mut tally).await;
    }
    tally
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_is_the_sum_of_its_parts() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seeds = match number("TERRACE_SEED") {
        Some(one) => one..one + 1,
        None => 0..number("TERRACE_SEEDS").unwrap_or(8),
    };
    let (mut compared, mut refused) = (0, 0);
    for at in seeds {
        println!("seed {at}");
        let tally = seed(at).await;
        compared += tally.compared;
        refused += tally.refused;
    }
    println!("{compared} compared, {refused} refused");
    assert!(compared > 2 * refused, "{compared} compared, but {refused} refused");
}
