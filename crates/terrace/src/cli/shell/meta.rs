//! Backslash commands.

#![allow(clippy::disallowed_methods, reason = "files that the user names")]

use super::print::{self, Style};
use super::{Next, Shell, StatementOutcome, unreadable};
use crate::Failure;
use std::fs::File;
use std::io::{BufRead, BufReader};

const HELP: &str = "\\d [NAME]          all relations, or one's columns, indexes and constraints
\\dt \\di \\ds \\dv   tables, indexes, sequences, views
\\dn \\du \\l        schemas, roles, databases
\\copy T from|to F  rows between a table (or a query in parentheses) and a file of this machine
\\x [on|off]        one column to a line
\\timing [on|off]   how long statements take
\\o [FILE]          results into a file; without FILE back to the screen
\\i FILE            statements from a file
\\echo TEXT         prints it
\\conninfo          whom this talks to
\\?                 this help
\\q                 leave
Statements end with a semicolon and may have several lines. Tab completes words and names, the arrows
and Ctrl-R find earlier lines, Ctrl-C cancels the statement that runs or is typed, Ctrl-D leaves.";

const RELATIONS: &str = "SELECT n.nspname AS \"Schema\", c.relname AS \"Name\", \
                         CASE c.relkind WHEN 'r' THEN 'table' WHEN 'i' THEN 'index' \
                         WHEN 'S' THEN 'sequence' WHEN 'v' THEN 'view' END AS \"Type\" FROM pg_catalog.pg_class c \
                         JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
                         WHERE n.nspname NOT IN ('pg_catalog', 'information_schema')";

const SCHEMAS: &str = "SELECT nspname AS \"Name\" FROM pg_catalog.pg_namespace ORDER BY 1";

const ROLES: &str = "SELECT rolname AS \"Role\", rolsuper AS \"Superuser\", rolcanlogin AS \"Login\" \
                     FROM pg_catalog.pg_roles ORDER BY 1";

const DATABASES: &str = "SELECT datname AS \"Name\", pg_catalog.pg_get_userbyid(datdba) AS \"Owner\", \
                         pg_catalog.pg_encoding_to_char(encoding) AS \"Encoding\" FROM pg_catalog.pg_database \
                         ORDER BY 1";

/// What Tab completes: relations as SQL finds them, and their columns.
pub(super) const NAMES: &str = "SELECT CASE n.nspname WHEN 'terrace' THEN 'terrace.' || c.relname ELSE c.relname END \
                                FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
                                WHERE n.nspname IN ('public', 'terrace') OR c.relname LIKE 'pg_stat%' \
                                OR c.relname = 'pg_locks' UNION SELECT a.attname FROM pg_catalog.pg_attribute a \
                                JOIN pg_catalog.pg_class c ON c.oid = a.attrelid \
                                WHERE c.relnamespace = 2200 AND a.attnum > 0 AND NOT a.attisdropped";

impl Shell {
    pub(super) async fn meta(&mut self, line: &str) -> Result<Next, Failure> {
        let (command, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let argument = argument.trim().trim_end_matches(';').trim_end();
        let done = match command.trim_end_matches(';') {
            "\\q" | "\\quit" => return Ok(Next::Quit),
            "\\?" | "\\h" | "\\help" => self.say(HELP),
            "\\timing" => match switched(self.timing, argument) {
                None => self.complain("\\timing takes on or off"),
                Some(timing) => {
                    self.timing = timing;
                    self.say(&format!("Timing is {}.", on(timing)))
                }
            },
            "\\x" => match switched(self.style == Style::Expanded, argument) {
                None => self.complain("\\x takes on or off"),
                Some(expanded) => {
                    self.style = if expanded { Style::Expanded } else { Style::Table };
                    self.say(&format!("Expanded display is {}.", on(expanded)))
                }
            },
            "\\dt" => self.list("r").await,
            "\\di" => self.list("i").await,
            "\\ds" => self.list("S").await,
            "\\dv" => self.list("v").await,
            "\\dn" => self.statement(SCHEMAS).await,
            "\\du" => self.statement(ROLES).await,
            "\\l" => self.statement(DATABASES).await,
            "\\copy" => self.copy_command(argument).await,
            "\\echo" => self.say(argument),
            "\\conninfo" => {
                let sql = "SELECT pg_catalog.current_database() AS \"Database\", current_user AS \"Role\", \
                           pg_catalog.pg_backend_pid() AS \"Process\", pg_catalog.version() AS \"Server\"";
                self.statement(sql).await
            }
            "\\d" if argument.is_empty() => self.list("r', 'S', 'v").await,
            "\\d" => self.describe(argument).await,
            "\\o" => self.output(argument),
            "\\i" | "\\include" => return self.include(argument).await,
            other => self.complain(&format!("unknown command {other}; \\? lists them")),
        };
        done.map(|()| Next::Go)
    }

    /// Wrong use of the shell: told at a prompt, the end of a script.
    pub(super) fn complain(&self, problem: &str) -> Result<(), Failure> {
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
        let class = format!("'{}'::regclass", name.replace('\'', "''"));
        let columns = format!(
            "SELECT a.attname AS \"Column\", pg_catalog.format_type(a.atttypid, a.atttypmod) AS \"Type\", \
             CASE WHEN a.attnotnull THEN 'not null' END AS \"Nullable\", d.adbin AS \"Default\" \
             FROM pg_catalog.pg_attribute a \
             LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
             WHERE a.attrelid = {class} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
        );
        let indexes = format!(
            "SELECT pg_catalog.pg_get_indexdef(i.indexrelid) AS \"Indexes\" FROM pg_catalog.pg_index i \
             WHERE i.indrelid = {class}"
        );
        let checks = format!(
            "SELECT conname || ' ' || pg_catalog.pg_get_constraintdef(oid, true) FROM pg_catalog.pg_constraint \
             WHERE contype = 'c' AND conrelid = {class} ORDER BY 1"
        );
        let (found, problem) = self.client.run(&columns).await;
        if let Some(problem) = problem {
            return self.failed(problem, &columns);
        }
        if let Some(StatementOutcome::Rows { columns, rows }) = found.first() {
            let text = print::rows(self.style, columns, rows);
            self.write(&text)?;
        }
        for more in [&indexes, &checks] {
            let (found, _) = self.client.run(more).await;
            if let Some(StatementOutcome::Rows { rows, .. }) = found.first() {
                for definition in rows.iter().filter_map(|row| row.first()?.as_deref()) {
                    self.say(&format!("    {definition}"))?;
                }
            }
        }
        Ok(())
    }
}

/// What a switch becomes; `None`: that is no word for it.
fn switched(now: bool, argument: &str) -> Option<bool> {
    match argument {
        "" => Some(!now),
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
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
