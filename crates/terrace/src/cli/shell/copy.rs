//! COPY from and to the client, typed as SQL or as `\copy`, whose files are the client's.

#![allow(clippy::disallowed_methods, reason = "files that the user names")]

use super::client::Problem;
use super::meta::plain_words;
use super::{ABANDON, Going, Shell, unreadable};
use crate::Failure;
use futures::{SinkExt, StreamExt};
use std::fs::File;
use std::io::{Cursor, Read, Write};

/// Bytes of data that are sent at a time.
const PART: usize = 64 << 10;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    In,
    Out,
}

/// `\copy`, as SQL, and the client's file; `None`: what is typed, or the screen.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Command {
    pub(super) sql: String,
    pub(super) direction: Direction,
    pub(super) file: Option<String>,
}

/// The words of a text with where each begins, what is in quotes or parentheses being one.
fn words(text: &str) -> Vec<(usize, &str)> {
    let (mut words, mut begun, mut depth, mut quote) = (vec![], None, 0, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            _ => {}
        }
        if c.is_whitespace() && depth <= 0 && quote.is_none() {
            words.extend(begun.take().map(|from| (from, &text[from..at])));
        } else {
            begun.get_or_insert(at);
        }
    }
    words.extend(begun.map(|from| (from, &text[from..])));
    words
}

/// Where data goes in a statement that is COPY from or to the client.
pub(super) fn direction(sql: &str) -> Option<Direction> {
    if !plain_words(sql).first()?.eq_ignore_ascii_case("copy") {
        return None;
    }
    let text = sql.trim_end().trim_end_matches(';');
    let all = words(text);
    all.windows(2).find_map(|pair| {
        let (way, place) = (pair[0].1.to_ascii_lowercase(), pair[1].1.to_ascii_lowercase());
        match (way.as_str(), place.split('(').next().unwrap_or_default()) {
            ("from", "stdin") => Some(Direction::In),
            ("to", "stdout") => Some(Direction::Out),
            _ => None,
        }
    })
}

impl Command {
    /// What follows `\copy`.
    pub(super) fn parse(text: &str) -> Result<Command, String> {
        let usage = || "use \\copy TABLE|(QUERY) from|to 'FILE'|stdin|stdout [OPTIONS]".to_string();
        let all = words(text);
        let is_way = |word: &str| word.eq_ignore_ascii_case("from") || word.eq_ignore_ascii_case("to");
        // A table may be called so; what is copied comes first.
        let at = all.iter().skip(1).position(|(_, word)| is_way(word)).map(|at| at + 1).ok_or_else(usage)?;
        let direction = if all[at].1.eq_ignore_ascii_case("from") { Direction::In } else { Direction::Out };
        let (from, place) = *all.get(at + 1).ok_or_else(usage)?;
        let file = match place.to_ascii_lowercase().as_str() {
            "stdin" | "pstdin" if direction == Direction::In => None,
            "stdout" | "pstdout" if direction == Direction::Out => None,
            "program" => return Err("\\copy from or to a program is not supported".into()),
            _ => match place.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
                Some(quoted) => Some(quoted.replace("''", "'")),
                None => Some(place.to_string()),
            },
        };
        let way = if direction == Direction::In { "FROM STDIN" } else { "TO STDOUT" };
        let sql = format!("COPY {} {way} {}", text[..all[at].0].trim(), text[from + place.len()..].trim());
        Ok(Command { sql: sql.trim_end().to_string(), direction, file })
    }
}

impl Shell {
    pub(super) async fn copy_command(&mut self, text: &str) -> Result<(), Failure> {
        let command = match Command::parse(text) {
            Ok(command) => command,
            Err(problem) => return self.complain(&problem),
        };
        match (command.direction, &command.file) {
            (Direction::In, None) => self.complain("data comes behind COPY ... FROM STDIN; or name a file"),
            (Direction::In, Some(name)) => {
                let mut file = match File::open(name) {
                    Ok(file) => file,
                    Err(error) => return self.complain(&format!("{name}: {error}")),
                };
                let part = || {
                    let mut bytes = vec![0; PART];
                    let read = file.read(&mut bytes).map_err(unreadable(name))?;
                    bytes.truncate(read);
                    Ok((read > 0).then_some(Part::Data(bytes)))
                };
                self.copy_in(&command.sql, part).await
            }
            (Direction::Out, None) => self.copy_out(&command.sql, None).await,
            (Direction::Out, Some(name)) => match File::create(name) {
                Ok(mut file) => self.copy_out(&command.sql, Some((&mut file, name))).await,
                Err(error) => self.complain(&format!("{name}: {error}")),
            },
        }
    }

    /// COPY ... FROM STDIN: the lines that follow, up to `\.` or the end.
    pub(super) async fn copy_lines(
        &mut self,
        sql: &str,
        read: &mut impl FnMut(Going) -> Result<Option<String>, Failure>,
    ) -> Result<(), Failure> {
        if self.typed {
            self.say("Enter data to be copied, and \\. or Ctrl-D behind it.")?;
        }
        let mut over = false;
        let part = || {
            let mut bytes = vec![];
            while bytes.len() < PART && !over {
                match read(Going::Data)?.as_deref() {
                    Some(ABANDON) => return Ok(Some(Part::Abandon)),
                    None | Some("\\.") => over = true,
                    Some(line) => bytes.extend_from_slice(format!("{line}\n").as_bytes()),
                }
            }
            Ok((!bytes.is_empty()).then_some(Part::Data(bytes)))
        };
        self.copy_in(sql, part).await
    }

    async fn copy_in(
        &mut self,
        sql: &str,
        mut next: impl FnMut() -> Result<Option<Part>, Failure>,
    ) -> Result<(), Failure> {
        let mut sink = match self.client.raw().copy_in::<_, Cursor<Vec<u8>>>(sql).await {
            Ok(sink) => Box::pin(sink),
            Err(error) => return self.failed(self.client.problem(error), sql),
        };
        loop {
            match tokio::task::block_in_place(&mut next)? {
                None => break,
                // Dropped, it tells the server that the data failed.
                Some(Part::Abandon) => return self.complain("the COPY is given up"),
                Some(Part::Data(bytes)) => {
                    if sink.send(Cursor::new(bytes)).await.is_err() {
                        // `finish` has the server's reason.
                        break;
                    }
                }
            }
        }
        match sink.as_mut().finish().await {
            Ok(rows) => self.say(&format!("COPY {rows}")),
            Err(error) => self.failed(self.client.problem(error), sql),
        }
    }

    /// COPY ... TO STDOUT, into that file of that name, or where results go.
    pub(super) async fn copy_out(&mut self, sql: &str, file: Option<(&mut File, &str)>) -> Result<(), Failure> {
        let mut lines = match self.client.raw().copy_out(sql).await {
            Ok(lines) => Box::pin(lines),
            Err(error) => return self.failed(self.client.problem(error), sql),
        };
        let mut file = file;
        let cancel = self.client.raw().cancel_token();
        loop {
            let part = tokio::select! {
                part = lines.next() => part,
                Ok(()) = tokio::signal::ctrl_c() => {
                    drop(cancel.cancel_query(tokio_postgres::NoTls).await);
                    continue;
                }
            };
            let part = match part {
                None => break,
                Some(Ok(part)) => part,
                Some(Err(error)) => return self.failed(self.client.problem(error), sql),
            };
            match &mut file {
                Some((file, name)) => file.write_all(&part).map_err(unreadable(name))?,
                None => self.write(&String::from_utf8_lossy(&part))?,
            }
        }
        // How many rows there were the protocol's library does not tell.
        if file.is_some() { self.say("COPY") } else { Ok(()) }
    }

    /// Tells what went wrong; ends what is not typed.
    pub(super) fn failed(&self, problem: Problem, sql: &str) -> Result<(), Failure> {
        eprintln!("{}", problem.told(sql));
        match problem.fatal {
            true => Err(Failure::Message("the connection is lost".into())),
            false if self.typed => Ok(()),
            false => Err(Failure::Said),
        }
    }
}

enum Part {
    Data(Vec<u8>),
    /// The user gives up.
    Abandon,
}

#[cfg(test)]
mod tests;
