//! Backslash commands.

#![allow(clippy::disallowed_methods, reason = "files that the user names")]

use super::print::{self, Style};
use super::{Next, Outcome, Shell, unreadable};
use crate::Failure;
use std::fs::File;
use std::io::{BufRead, BufReader};

const HELP: &str = "\\d [NAME]     all relations, or one table's columns and indexes
\\dt           tables
\\di           indexes
\\x            one column to a line, on or off
\\timing       how long statements take, on or off
\\o [FILE]     results into a file; without FILE back to the screen
\\i FILE       statements from a file
\\?            this help
\\q            leave
Statements end with a semicolon and may have several lines. Ctrl-C cancels the one that runs, Ctrl-D leaves.";

const RELATIONS: &str = "SELECT n.nspname AS \"Schema\", c.relname AS \"Name\", CASE c.relkind WHEN 'r' THEN 'table' WHEN 'i' THEN 'index' \
                         WHEN 'S' THEN 'sequence' WHEN 'v' THEN 'view' END AS \"Type\" FROM pg_catalog.pg_class c \
                         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public'";

impl Shell {
    pub(super) async fn meta(&mut self, line: &str) -> Result<Next, Failure> {
        let (command, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let argument = argument.trim().trim_end_matches(';').trim_end();
        let done = match command.trim_end_matches(';') {
            "\\q" | "\\quit" => return Ok(Next::Quit),
            "\\?" | "\\h" | "\\help" => self.say(HELP),
            "\\timing" => {
                self.timing = !self.timing;
                self.say(&format!("Timing is {}.", on(self.timing)))
            }
            "\\x" => {
                self.style = if self.style == Style::Expanded { Style::Table } else { Style::Expanded };
                let expanded = self.style == Style::Expanded;
                self.say(&format!("Expanded display is {}.", on(expanded)))
            }
            "\\dt" => self.list("r").await,
            "\\di" => self.list("i").await,
            "\\d" if argument.is_empty() => self.list("r', 'S', 'v").await,
            "\\d" => self.describe(argument).await,
            "\\o" => self.output(argument),
            "\\i" | "\\include" => return self.include(argument).await,
            other => self.complain(&format!("unknown command {other}; \\? lists them")),
        };
        done.map(|()| Next::Go)
    }

    /// Wrong use of the shell: told at a prompt, the end of a script.
    fn complain(&self, problem: &str) -> Result<(), Failure> {
        if !self.typed {
            return Err(Failure::Message(problem.into()));
        }
        eprintln!("{problem}");
        Ok(())
    }

    fn output(&mut self, file: &str) -> Result<(), Failure> {
        if file.is_empty() {
            self.output = Box::new(std::io::stdout());
            return Ok(());
        }
        match File::create(file) {
            Ok(opened) => self.output = Box::new(opened),
            Err(error) => return self.complain(&format!("{file}: {error}")),
        }
        Ok(())
    }

    async fn include(&mut self, file: &str) -> Result<Next, Failure> {
        if file.is_empty() {
            return self.complain("\\i needs a file").map(|()| Next::Go);
        }
        let opened = match File::open(file) {
            Ok(opened) => opened,
            Err(error) => return self.complain(&format!("{file}: {error}")).map(|()| Next::Go),
        };
        let mut lines = BufReader::new(opened).lines();
        let typed = std::mem::replace(&mut self.typed, false);
        let ended = self.feed(|_| lines.next().transpose().map_err(unreadable(file)), true).await;
        self.typed = typed;
        match ended {
            // Told already; the prompt comes back.
            Err(Failure::Said) if typed => Ok(Next::Go),
            Err(Failure::Message(problem)) if typed => self.complain(&problem).map(|()| Next::Go),
            ended => ended.map(|()| Next::Go),
        }
    }

    async fn list(&mut self, kinds: &str) -> Result<(), Failure> {
        self.statement(&format!("{RELATIONS} AND c.relkind IN ('{kinds}') ORDER BY 2")).await
    }

    /// Columns and indexes of a table.
    async fn describe(&mut self, name: &str) -> Result<(), Failure> {
        // As SQL reads a name: folded, unless quoted.
        let name = match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
            Some(quoted) => quoted.replace("\"\"", "\""),
            None => name.to_lowercase(),
        };
        let literal = name.strip_prefix("public.").unwrap_or(&name).replace('\'', "''");
        let class = format!(
            "(SELECT oid FROM pg_catalog.pg_class WHERE relname = '{literal}' AND relkind IN ('r', 'i', 'S', 'v'))"
        );
        let columns = format!(
            "SELECT a.attname AS \"Column\", pg_catalog.format_type(a.atttypid, a.atttypmod) AS \"Type\", \
             CASE WHEN a.attnotnull THEN 'not null' END AS \"Nullable\" \
             FROM pg_catalog.pg_attribute a WHERE a.attrelid = {class} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
        );
        let indexes = format!(
            "SELECT pg_catalog.pg_get_indexdef(i.indexrelid) AS \"Indexes\" FROM pg_catalog.pg_index i WHERE i.indrelid = {class}"
        );
        let (found, problem) = self.client.run(&columns).await;
        if let Some(problem) = problem {
            return self.complain(&problem.told(&columns));
        }
        match found.first() {
            Some(Outcome::Rows { rows, .. }) if rows.is_empty() => {
                return self.complain(&format!("there is no table named \"{name}\""));
            }
            Some(Outcome::Rows { columns, rows }) => {
                let text = print::rows(self.style, columns, rows);
                self.write(&text)?;
            }
            _ => {}
        }
        let (found, _) = self.client.run(&indexes).await;
        if let Some(Outcome::Rows { rows, .. }) = found.first() {
            for definition in rows.iter().filter_map(|row| row.first()?.as_deref()) {
                self.say(&format!("    {definition}"))?;
            }
        }
        Ok(())
    }
}

fn on(value: bool) -> &'static str {
    if value { "on" } else { "off" }
}

/// The first words of a statement, behind comments.
pub(super) fn plain_words(sql: &str) -> Vec<&str> {
    let mut rest = sql.trim_start();
    loop {
        rest = match (rest.strip_prefix("--"), rest.strip_prefix("/*")) {
            (Some(comment), _) => comment.split_once('\n').map_or("", |(_, rest)| rest).trim_start(),
            (_, Some(comment)) => comment.split_once("*/").map_or("", |(_, rest)| rest).trim_start(),
            _ => break,
        };
    }
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).take(3).collect()
}
