//! ALTER SYSTEM SET and RESET: settings of the server. Whoever runs the server carries them out and keeps them
//! ([`SystemSettings`]).
//!
//! The parser does not know the statement: it is parsed here, and its tree is a PRAGMA whose name begins with
//! `ALTER SYSTEM`, which nobody else can write.
use crate::error::unsupported;
use crate::parse::alter_system::MARK;
use crate::session::Session;
use crate::statement::outcome::{Outcome, command};
use crate::transaction::Block;
use datafusion::sql::sqlparser::ast::{Statement, Value};
use terrace_engine::{EngineError, Result};
use tokio::sync::oneshot;

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
        // To its end, even if the client leaves or no longer waits for it: a change half made would leave the tier, its
        // file and the settings' file in disagreement.
        let (told, outcome) = oneshot::channel();
        let (settings, name) = (settings.clone(), name.join("."));
        self.database.engine.spawn("alter-system", async move {
            drop(told.send(settings.alter(name, value).await)); // Nobody may listen any more.
        });
        outcome.await.map_err(|_| EngineError::new("57P01", "the server stops"))??;
        Ok(Some(command("ALTER SYSTEM")))
    }
}
