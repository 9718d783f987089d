//! Queries give the same rows, titles and types whichever way they are planned ([`Binding`]).
//!
//! The queries are those of `crates/server/tests/slt`; `TERRACE_BINDING_QUERIES` names a file with more statements
//! (one a line, each world of tables behind a line `-- world`), `TERRACE_BINDING_SHOW` shows which are not bound.
use crate::common::{Client, database};
use datafusion::arrow::datatypes::Field;
use datafusion::arrow::util::display::array_value_to_string;
use futures::StreamExt;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use terrace_engine::EngineError;
use terrace_sql::{Binding, Outcome};

/// The statements of an slt file.
fn statements_of(text: &str) -> Vec<String> {
    let mut statements = vec![];
    for record in text.split("\n\n") {
        let mut lines = record.lines().skip_while(|line| line.starts_with('#') || line.is_empty());
        let Some(head) = lines.next() else { continue };
        if !(head.starts_with("statement") || head.starts_with("query")) {
            continue;
        }
        let text: Vec<&str> = lines.take_while(|line| *line != "----").collect();
        statements.push(text.join("\n"));
    }
    statements
}

#[derive(Default, Debug)]
struct Tally {
    queries: usize,
    bound: usize,
    refused_by_both: usize,
    unbound: BTreeMap<String, usize>,
    wrong: Vec<String>,
}

async fn answer(client: &mut Client, sql: &str, binding: Binding) -> Result<(String, Vec<String>), EngineError> {
    client.session.bind_queries(binding);
    let statement = client.session.prepare(sql, &[]).await?;
    let shown = |field: &Arc<Field>| {
        let metadata: BTreeMap<_, _> = field.metadata().iter().collect();
        format!("{} {} {metadata:?}", field.name(), field.data_type())
    };
    let fields = statement.columns.as_ref().map(|schema| schema.fields().iter().map(shown).collect::<Vec<_>>());
    let fields = fields.unwrap_or_default().join(", ");
    let Outcome::Rows { mut stream, .. } = client.session.execute(&statement, vec![]).await? else {
        panic!("{sql} is a query");
    };
    let mut rows = vec![];
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        let cell = |at: usize, row: usize| match batch.column(at).is_null(row) {
            true => "NULL".to_string(),
            false => array_value_to_string(batch.column(at), row).expect("a value prints"),
        };
        let row = |row| (0..batch.num_columns()).map(|at| cell(at, row)).collect::<Vec<_>>().join("|");
        rows.extend((0..batch.num_rows()).map(row));
    }
    Ok((fields, rows))
}

impl Tally {
    async fn compare(&mut self, client: &mut Client, sql: &str, show: bool) {
        let first = sql.trim_start().get(..6).unwrap_or_default().to_lowercase();
        let query = ["select", "values", "with"].iter().any(|word| first.starts_with(word)) || first.starts_with('(');
        let volatile =
            ["$1", "random()", "clock_timestamp", "nextval", "setval", "pg_sleep"].iter().any(|f| sql.contains(f));
        if !query || volatile || sql.contains("FOR UPDATE") || sql.contains("FOR SHARE") {
            let _ = client.run_loosely(sql).await;
            return;
        }
        self.queries += 1;
        let old = answer(client, sql, Binding::Never).await;
        let new = answer(client, sql, Binding::Only).await;
        client.session.bind_queries(Binding::Never);
        if let Err(error) = &new
            && error.state.0 == "0A000"
            && old.is_ok()
        {
            *self.unbound.entry(error.message.clone()).or_default() += 1;
            if show {
                println!("{}: {sql}", error.message);
            }
            return;
        }
        self.bound += 1;
        let ordered = sql.to_lowercase().contains("order by");
        let sorted = |mut rows: Vec<String>| {
            if !ordered {
                rows.sort();
            }
            rows
        };
        match (old, new) {
            (Ok((a, old)), Ok((b, new))) => {
                if a != b {
                    self.wrong.push(format!("{sql}\n  columns {a}\n  and     {b}"));
                } else {
                    let (old, new) = (sorted(old), sorted(new));
                    if old != new {
                        self.wrong.push(format!("{sql}\n  rows {old:?}\n  and  {new:?}"));
                    }
                }
            }
            (Err(a), Err(b)) if a.state.0 == b.state.0 => self.refused_by_both += 1,
            (Err(a), Err(b)) => self.wrong.push(format!("{sql}\n  {a}\n  and {b}")),
            (Ok(_), Err(b)) => self.wrong.push(format!("{sql}\n  rows, and {b}")),
            // What was not supported may be now.
            (Err(a), Ok(_)) if a.state.0 == "0A000" => {}
            (Err(a), Ok((_, rows))) => self.wrong.push(format!("{sql}\n  {a}\n  and rows {rows:?}")),
        }
    }
}

#[tokio::test]
async fn queries_of_slt_are_bound_as_they_were_planned() {
    let show = std::env::var("TERRACE_BINDING_SHOW").is_ok();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/tests/slt");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let mut texts: Vec<Vec<String>> =
        files.iter().map(|file| statements_of(&std::fs::read_to_string(file).unwrap())).collect();
    if let Ok(more) = std::env::var("TERRACE_BINDING_QUERIES") {
        let more = std::fs::read_to_string(more).unwrap();
        texts = more.split("-- world\n").map(|world| world.lines().map(str::to_owned).collect()).collect();
    }
    let mut tally = Tally::default();
    for statements in texts {
        let database = database().await;
        let mut client = Client::new(&database);
        client.session.run_by_key(false);
        client.session.bind_queries(Binding::Never);
        // The old way knows no functions of sequences.
        for sql in statements.into_iter().filter(|sql| !sql.contains("currval(") && !sql.contains("lastval(")) {
            tally.compare(&mut client, &sql, show).await;
        }
    }
    println!("{} queries, {} bound, {} refused alike", tally.queries, tally.bound, tally.refused_by_both);
    for (what, count) in &tally.unbound {
        println!("{count:5} {what}");
    }
    for wrong in &tally.wrong {
        println!("{wrong}\n");
    }
    println!("{} differ", tally.wrong.len());
    assert!(tally.wrong.is_empty());
}
