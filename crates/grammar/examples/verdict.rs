//! Reads texts with a zero byte between them, and says of each whether it parses: `OK`, the number of statements and
//! what is refused, or `ERR`, the place, the SQLSTATE and the message.
//!
//! `verdict time SQL...` measures how long a text takes to parse, and to be told apart from its literals. `verdict show
//! SQL` shows what it is.

use std::hint::black_box;
use std::io::Read;
use terrace_grammar::statement::Statement;
use terrace_grammar::{Options, Parsed, SyntaxError, parse, shape};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        [] => verdicts(),
        ["show", sql] => println!("{:#?}", parse(sql, Options::default())),
        ["time", texts @ ..] => time(texts),
        _ => eprintln!("verdict [show SQL | time SQL...]"),
    }
}

fn verdicts() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).expect("the input is text");
    for sql in text.split('\0') {
        println!("{}", verdict(parse(sql, Options::default())));
    }
}

fn verdict(parsed: Result<Vec<Parsed>, SyntaxError>) -> String {
    match parsed {
        Ok(statements) => {
            let refused: Vec<&str> = statements.iter().filter_map(refusal).collect();
            format!("OK\t{}\t{}", statements.len(), refused.join("; "))
        }
        Err(error) => {
            let at = error.at.map_or(String::from("-"), |at| at.to_string());
            format!("ERR\t{at}\t{}\t{}", error.sqlstate, error.message.replace(['\n', '\t', '\r'], " "))
        }
    }
}

fn refusal(parsed: &Parsed) -> Option<&str> {
    match parsed.statement() {
        Statement::Refused(refused) => Some(&refused.message),
        _ => None,
    }
}

/// The least time of many, in microseconds.
#[allow(clippy::disallowed_methods)]
fn time(texts: &[&str]) {
    for sql in texts {
        let mut best = f64::MAX;
        for _ in 0..40 {
            let start = std::time::Instant::now();
            for _ in 0..500 {
                black_box(parse(black_box(sql), Options::default()).expect("it parses"));
            }
            best = best.min(start.elapsed().as_secs_f64() / 500.0);
        }
        println!(
            "parse {:8.2} µs, shape {:8.2} µs  {}",
            best * 1e6,
            shape_time(sql) * 1e6,
            sql.lines().next().unwrap_or("")
        );
    }
}

/// The least time that a shape takes, in seconds.
#[allow(clippy::disallowed_methods)]
fn shape_time(sql: &str) -> f64 {
    let (mut best, mut text) = (f64::MAX, String::new());
    for _ in 0..40 {
        let start = std::time::Instant::now();
        for _ in 0..500 {
            black_box(shape(black_box(sql), Options::default(), 4_096, &mut text));
        }
        best = best.min(start.elapsed().as_secs_f64() / 500.0);
    }
    best
}
