//! What PostgreSQL 15 says of mistakes, and where it says that they stand.
//!
//! `places/mistakes.tsv` has what it said: statement, SQLSTATE, the character pointed at (0: none), message.
use crate::common::{Client, database};
use terrace_engine::EngineError;

const MISTAKES: &str = include_str!("places/mistakes.tsv");

fn told(error: &EngineError) -> String {
    format!("{}\t{}\t{}", error.state.0, error.position.unwrap_or(0), error.message)
}

#[tokio::test]
async fn mistakes_are_told_and_placed_as_postgres_does() {
    let mut c = Client::new(&database().await);
    c.ok("create table t (a int, b text, c varchar(5), d real, e bigint)", "CREATE TABLE").await;
    let mut wrong = vec![];
    for line in MISTAKES.lines() {
        let (sql, expected) = line.split_once('\t').expect("a statement, and what is said of it");
        let answer = match c.session.prepare(sql, &[]).await {
            Ok(statement) => c.session.execute(&statement, vec![]).await.map(drop),
            Err(error) => Err(error),
        };
        let answer = answer.map_or_else(|error| told(&error), |()| "no error".to_owned());
        if answer != expected {
            wrong.push(format!("{sql}\n  {answer}\n  {expected} (PostgreSQL)"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
