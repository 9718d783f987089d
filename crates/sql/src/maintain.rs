//! TRUNCATE, VACUUM, ANALYZE.
//!
//! 1. VACUUM purges every finished transaction that no snapshot needs, of all tables: histories are kept by transaction, not by table.
//!    Who cancels it does not wait for the rest, which purge does in its time. There is no FULL (pages of a heap are not moved), and
//!    nothing to freeze (transaction ids do not wrap).
//! 2. The parser's VACUUM is not PostgreSQL's, so it is parsed here; its tree carries ANALYZE as `boost`.
use crate::ddl::find_index;
use crate::error::{from_parser, unsupported};
use crate::grammar::Grammar;
use crate::parse::{object_name, undefined_table};
use crate::run::Run;
use crate::session::{Block, Session};
use datafusion::sql::sqlparser::ast::{
    Analyze, CascadeOption, ObjectName, Statement, Truncate, TruncateIdentityOption, VacuumStatement,
};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use std::sync::Arc;
use terrace_engine::{EngineError, Result, Table};
use tokio::sync::oneshot;

/// `VACUUM` and `ANALYZE` as PostgreSQL writes them; `None` where the tokens begin otherwise.
pub(crate) fn parse(tokens: &[TokenWithSpan]) -> Result<Option<Statement>> {
    let words: Vec<&Token> =
        tokens.iter().map(|t| &t.token).filter(|t| !matches!(t, Token::Whitespace(_) | Token::EOF)).collect();
    let words = words.strip_suffix(&[&Token::SemiColon]).unwrap_or(&words);
    let is = |token: Option<&&Token>, word: &str| match token {
        Some(Token::Word(w)) => w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word),
        _ => false,
    };
    let vacuum = is(words.first(), "vacuum");
    if !vacuum && !is(words.first(), "analyze") && !is(words.first(), "analyse") {
        return Ok(None);
    }
    let (mut full, mut analyze, mut at) = (false, false, 1);
    let listed = words.get(1) == Some(&&Token::LParen);
    if listed {
        at += 1;
    }
    loop {
        match words.get(at) {
            full_word if vacuum && is(full_word, "full") => full = true,
            word if vacuum && (is(word, "analyze") || is(word, "analyse")) => analyze = true,
            word if is(word, "verbose") || vacuum && is(word, "freeze") => {}
            Some(Token::Comma) if listed => {}
            Some(Token::RParen) if listed => {
                at += 1;
                break;
            }
            other if listed => {
                let word = other.map_or("end of input".to_string(), |t| t.to_string());
                return Err(unsupported(format!("the option {word} of {}", words[0])));
            }
            _ => break,
        }
        at += 1;
    }
    let rest = &words[at..];
    let table_name = (!rest.is_empty()).then(|| one_name(rest)).transpose()?;
    Ok(Some(match vacuum {
        true => Statement::Vacuum(VacuumStatement {
            full,
            sort_only: false,
            delete_only: false,
            reindex: false,
            recluster: false,
            table_name,
            threshold: None,
            boost: analyze,
        }),
        false => Statement::Analyze(Analyze {
            table_name,
            partitions: None,
            for_columns: false,
            columns: vec![],
            cache_metadata: false,
            noscan: false,
            compute_statistics: false,
            has_table_keyword: false,
        }),
    }))
}

fn one_name(tokens: &[&Token]) -> Result<ObjectName> {
    let tokens = tokens.iter().copied().cloned().collect();
    let mut parser = Parser::new(&Grammar).with_tokens(tokens);
    let name = parser.parse_object_name(false).map_err(from_parser)?;
    match &parser.peek_token().token {
        Token::EOF => Ok(name),
        Token::Comma => Err(unsupported("a list of tables here")),
        Token::LParen => Err(unsupported("a list of columns here")),
        other => Err(EngineError::new("42601", format!("syntax error at or near \"{other}\""))),
    }
}

impl Session {
    /// The part of VACUUM that needs no transaction. False where ANALYZE is to follow.
    pub(crate) async fn vacuum(&mut self, vacuum: &VacuumStatement) -> Result<bool> {
        if vacuum.full {
            return Err(unsupported("VACUUM FULL").with_hint(
                "VACUUM makes room within a table for new rows of it; TRUNCATE and DROP TABLE give a table's pages back.",
            ));
        }
        if self.shared.block() == Block::Explicit {
            return Err(EngineError::new("25001", "VACUUM cannot run inside a transaction block"));
        }
        if let Some(name) = &vacuum.table_name {
            let name = object_name(name)?;
            self.catalog().await.table(&name).ok_or_else(|| undefined_table(&name))?;
        }
        // In a task of its own: what is not purged now is purged in the background anyway, and nobody has to wait for where it can stop.
        let (told, outcome) = oneshot::channel();
        let engine = self.database.engine.clone();
        self.database.engine.spawn("vacuum", async move {
            drop(told.send(engine.purge().await)); // Nobody may listen any more.
        });
        outcome.await.map_err(|_| EngineError::new("57P01", "the server stops"))??;
        Ok(!vacuum.boost)
    }
}

impl Run<'_> {
    /// Waits until the table of that name is this transaction's alone, and answers it as it is then.
    pub(crate) async fn alone(&self, name: &str) -> Result<Arc<Table>> {
        self.alone_if(name, crate::sequence::refuse_sequence).await
    }

    /// The same, of a table that passes `check`.
    pub(crate) async fn alone_if(&self, name: &str, check: impl Fn(&Table) -> Result<()>) -> Result<Arc<Table>> {
        loop {
            let version = self.engine.catalog().version();
            let catalog = self.begin_statement().await;
            let Some(table) = catalog.table(name) else {
                return Err(match find_index(&catalog, name) {
                    Some(_) => EngineError::new("42809", format!("\"{name}\" is not a table")),
                    None => undefined_table(name),
                });
            };
            check(table)?;
            let lock = async { self.cell.lock().await.open().lock_definition(table).await };
            match self.cancel.run(lock).await {
                Ok(table) if table.name == name => return Ok(table),
                // Renamed, or replaced by TRUNCATE, meanwhile: whatever has the name now.
                Ok(_) => {}
                Err(error) if error.state.0 == "42P01" && self.engine.catalog().version() != version => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) async fn truncate(&self, truncate: &Truncate) -> Result<()> {
        let Truncate { table_names, partitions, table: _, if_exists, identity, cascade, on_cluster } = truncate;
        let refused = [
            (partitions.is_some() || *if_exists || on_cluster.is_some(), "this form of TRUNCATE"),
            (matches!(cascade, Some(CascadeOption::Cascade)), "CASCADE"),
        ];
        if let Some((_, what)) = refused.iter().find(|(is, _)| *is) {
            return Err(unsupported(what));
        }
        let mut done: Vec<String> = vec![];
        for target in table_names {
            let name = object_name(&target.name)?;
            if done.contains(&name) {
                continue;
            }
            let table = self.alone(&name).await?;
            let empty = async { self.cell.lock().await.open().truncate_table(&table).await };
            self.cancel.run(empty).await?;
            if matches!(identity, Some(TruncateIdentityOption::Restart)) {
                self.restart_owned(&table.columns).await?;
            }
            done.push(name);
        }
        Ok(())
    }

    /// One table, or all.
    pub(crate) async fn analyze(&self, name: Option<&ObjectName>) -> Result<()> {
        let catalog = self.begin_statement().await;
        let names: Vec<String> = match name {
            Some(name) => vec![object_name(name)?],
            None => catalog.tables().map(|t| t.name.clone()).collect(),
        };
        for one in names {
            loop {
                let version = self.engine.catalog().version();
                let catalog = self.begin_statement().await;
                let Some(table) = catalog.table(&one) else {
                    if name.is_some() {
                        return Err(undefined_table(&one));
                    }
                    break;
                };
                let analyze = async { self.cell.lock().await.open().analyze(table).await };
                match self.cancel.run(analyze).await {
                    Ok(_) => break,
                    Err(error) if error.state.0 == "42P01" && self.engine.catalog().version() != version => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}
