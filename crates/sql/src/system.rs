//! ALTER SYSTEM SET and RESET: settings of the server. Whoever runs the server carries them out and keeps them ([`SystemSettings`]).
//!
//! The parser does not know the statement: it is parsed here, and its tree is a PRAGMA whose name begins with `ALTER SYSTEM`, which nobody
//! else can write.
use crate::database::SqlDatabase;
use crate::error::{from_parser, unsupported};
use crate::grammar::Grammar;
use crate::router::command;
use crate::session::{Block, Outcome, Session};
use datafusion::sql::sqlparser::ast::{Ident, ObjectName, ObjectNamePart, Statement, Value};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use futures::future::BoxFuture;
use std::sync::Arc;
use terrace_engine::{EngineError, Result};
use tokio::sync::oneshot;

const MARK: &str = "ALTER SYSTEM";

/// Settings that ALTER SYSTEM changes, at once and for later starts.
pub trait SystemSettings: Send + Sync {
    /// `value` `None`: the default again. Names are as in the configuration file: `flash_tier.size`. 42704: there is no such setting; 55P02:
    /// it cannot be changed while the server runs; 22023: the value cannot be.
    fn alter(&self, name: String, value: Option<String>) -> BoxFuture<'_, Result<()>>;

    /// Reads the configuration file again, soon: as SIGHUP does, and without waiting for it.
    fn reload(&self);
}

impl SqlDatabase {
    /// From now on ALTER SYSTEM goes there. Once.
    pub fn set_system(&self, settings: Arc<dyn SystemSettings>) {
        assert!(self.system.set(settings).is_ok(), "who keeps the server's settings is said once");
    }
}

fn word(token: Option<&Token>) -> Option<String> {
    match token {
        Some(Token::Word(w)) if w.quote_style.is_none() => Some(w.value.to_ascii_lowercase()),
        _ => None,
    }
}

/// `None` where the tokens begin otherwise.
pub(crate) fn parse(tokens: &[TokenWithSpan]) -> Result<Option<Statement>> {
    let tokens = tokens.iter().map(|t| &t.token).filter(|t| !matches!(t, Token::Whitespace(_) | Token::EOF));
    let tokens: Vec<Token> = tokens.cloned().collect();
    let tokens = tokens.strip_suffix(&[Token::SemiColon]).unwrap_or(&tokens);
    if word(tokens.first()).as_deref() != Some("alter") || word(tokens.get(1)).as_deref() != Some("system") {
        return Ok(None);
    }
    let syntax = |at: usize| {
        let near = tokens.get(at).map_or("end of input".to_string(), |t| format!("or near \"{t}\""));
        EngineError::new("42601", format!("syntax error at {near}"))
    };
    let set = match word(tokens.get(2)).as_deref() {
        Some("set") => true,
        Some("reset") => false,
        _ => return Err(syntax(2)),
    };
    if !set && word(tokens.get(3)).as_deref() == Some("all") {
        return Err(unsupported("ALTER SYSTEM RESET ALL (reset each setting by name)"));
    }
    let mut parser = Parser::new(&Grammar).with_tokens(tokens[3.min(tokens.len())..].to_vec());
    let name = parser.parse_object_name(false).map_err(from_parser)?;
    let rest: Vec<Token> = std::iter::from_fn(|| match parser.next_token().token {
        Token::EOF => None,
        token => Some(token),
    })
    .collect();
    let value = match (set, rest.as_slice()) {
        (false, []) => None,
        (true, [equals, value @ ..]) if *equals == Token::Eq || word(Some(equals)).as_deref() == Some("to") => {
            Some(match value {
                [Token::SingleQuotedString(text)] => text.clone(),
                [Token::Number(number, _)] => number.clone(),
                [Token::Minus, Token::Number(number, _)] => format!("-{number}"),
                [Token::Word(word)] => word.value.clone(),
                _ => return Err(syntax(tokens.len() - value.len())),
            })
        }
        _ => return Err(syntax(tokens.len() - rest.len())),
    };
    let parts = std::iter::once(ObjectNamePart::Identifier(Ident::new(MARK))).chain(name.0);
    let value = value.map(|text| Value::SingleQuotedString(text).into());
    Ok(Some(Statement::Pragma { name: ObjectName(parts.collect()), value, is_eq: true }))
}

impl Session {
    /// `None`: another PRAGMA.
    pub(crate) async fn alter_system(&self, statement: &Statement) -> Result<Option<Outcome>> {
        let Statement::Pragma { name, value, .. } = statement else { return Ok(None) };
        let parts: Vec<String> =
            name.0.iter().filter_map(|part| part.as_ident()).map(|ident| ident.value.to_ascii_lowercase()).collect();
        let [mark, name @ ..] = parts.as_slice() else { return Ok(None) };
        if !mark.eq_ignore_ascii_case(MARK) {
            return Ok(None);
        }
        let role = self.database.engine.catalog().role(&self.info.user);
        if !role.is_some_and(|role| role.superuser) {
            return Err(EngineError::new("42501", "permission denied to change settings of the server")
                .with_hint("Only superusers may use ALTER SYSTEM."));
        }
        if self.shared.block() == Block::Explicit {
            return Err(EngineError::new("25001", "ALTER SYSTEM cannot run inside a transaction block"));
        }
        let settings = self.database.system.get().ok_or_else(|| unsupported("ALTER SYSTEM without a server"))?;
        let value = match value.as_ref().map(|v| &v.value) {
            Some(Value::SingleQuotedString(text)) => Some(text.clone()),
            _ => None,
        };
        // To its end, even if the client leaves or no longer waits for it: a change half made would leave the tier, its file and the
        // settings' file in disagreement.
        let (told, outcome) = oneshot::channel();
        let (settings, name) = (settings.clone(), name.join("."));
        self.database.engine.spawn("alter-system", async move {
            drop(told.send(settings.alter(name, value).await)); // Nobody may listen any more.
        });
        outcome.await.map_err(|_| EngineError::new("57P01", "the server stops"))??;
        Ok(Some(command("ALTER SYSTEM")))
    }
}

#[cfg(test)]
mod tests {
    fn shown(sql: &str) -> String {
        match crate::parse::parse_one(sql) {
            Ok(Some(statement)) => statement.to_string(),
            Ok(None) => "nothing".into(),
            Err(e) => format!("{}: {}", e.state.0, e.message),
        }
    }

    #[test]
    fn settings_are_set_and_reset() {
        assert_eq!(shown("alter system set flash_tier.size = '2GB';"), "PRAGMA ALTER SYSTEM.flash_tier.size = '2GB'");
        assert_eq!(shown("ALTER SYSTEM SET flash_tier.size TO 8192"), "PRAGMA ALTER SYSTEM.flash_tier.size = '8192'");
        assert_eq!(shown("ALTER SYSTEM RESET flash_tier.size"), "PRAGMA ALTER SYSTEM.flash_tier.size");
        assert_eq!(shown("ALTER SYSTEM SET x"), "42601: syntax error at end of input");
        assert_eq!(shown("ALTER SYSTEM SET x = 1 2"), "42601: syntax error at or near \"1\"");
        assert_eq!(shown("ALTER SYSTEM DROP x"), "42601: syntax error at or near \"DROP\"");
        assert!(shown("ALTER SYSTEM").starts_with("42601"));
        assert!(shown("ALTER SYSTEM SET").starts_with("42601"), "{}", shown("ALTER SYSTEM SET"));
    }
}
