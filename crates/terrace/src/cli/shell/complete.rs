//! Completion with Tab: SQL's words, the names of tables and columns, the shell's commands.

use parking_lot::Mutex;
use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use std::sync::Arc;

/// Names of the database, as they are written.
pub(super) type Names = Arc<Mutex<Vec<String>>>;

const WORDS: &str = "ADD ALTER ANALYZE AND AS ASC BEGIN BETWEEN BY CASE CAST CHECK COLUMN COMMIT CONFLICT CONSTRAINT \
                     COPY CREATE CROSS DEALLOCATE DEFAULT DELETE DESC DISCARD DISTINCT DO DROP ELSE END EXCEPT \
                     EXECUTE EXISTS EXPLAIN FALSE FOR FROM FULL GROUP HAVING IN INDEX INNER INSERT INTERSECT INTO IS \
                     JOIN KEY LEFT LIKE LIMIT NOT NOTHING NULL OFFSET ON OR ORDER OUTER PREPARE PRIMARY RELEASE \
                     RENAME RESET RETURNING RIGHT ROLLBACK SAVEPOINT SELECT SEQUENCE SET SHOW TABLE THEN TO TRUE \
                     TRUNCATE UNION UNIQUE UPDATE USING VACUUM VALUES WHEN WHERE WITH";

pub(super) const COMMANDS: [&str; 17] = [
    "\\?",
    "\\conninfo",
    "\\copy",
    "\\d",
    "\\di",
    "\\dn",
    "\\ds",
    "\\dt",
    "\\du",
    "\\dv",
    "\\echo",
    "\\i",
    "\\l",
    "\\o",
    "\\q",
    "\\timing",
    "\\x",
];

pub(super) struct Completion {
    pub(super) names: Names,
    /// What is typed are lines of a COPY: Tab is a tab.
    pub(super) data: bool,
}

/// Where the word begins that ends at `at`.
fn word_start(line: &str, at: usize) -> usize {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '"' | '\\');
    line[..at].char_indices().rev().take_while(|(_, c)| part(*c)).last().map_or(at, |(from, _)| from)
}

fn candidates(prefix: &str, names: &[String]) -> Vec<String> {
    if prefix.starts_with('\\') {
        return COMMANDS.iter().filter(|c| c.starts_with(prefix)).map(|c| c.to_string()).collect();
    }
    let lower = prefix.to_lowercase();
    let upper = prefix.chars().any(char::is_uppercase);
    let word = |w: &str| if upper { w.to_string() } else { w.to_lowercase() };
    let words =
        WORDS.split_whitespace().map(word).filter(|w| !prefix.is_empty() && w.to_lowercase().starts_with(&lower));
    let known = names.iter().filter(|name| name.to_lowercase().starts_with(&lower)).cloned();
    let mut all: Vec<String> = known.chain(words).collect();
    all.sort();
    all.dedup();
    all
}

impl Completer for Completion {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _context: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        if self.data {
            return Ok((at, vec!["\t".to_string()]));
        }
        let from = word_start(line, at);
        Ok((from, candidates(&line[from..at], &self.names.lock())))
    }
}

impl Hinter for Completion {
    type Hint = String;
}
impl Highlighter for Completion {}
impl Validator for Completion {}
impl Helper for Completion {}

#[cfg(test)]
mod tests;
