//! ALTER SYSTEM SET and RESET change settings of the server. The program that runs the server makes the change and
//! stores it ([`SystemSettings`]).
use crate::error::unsupported;
use crate::session::Session;
use crate::statement::outcome::{Outcome, command};
use terrace_engine::{EngineError, Result};
use terrace_grammar::statement::{AlterSystem, SettingValueKind};
use tokio::sync::oneshot;

impl Session {
    pub(crate) async fn alter_system(&self, alter: &AlterSystem) -> Result<Outcome> {
        if !self.info.actor(&self.database.engine.catalog()).is_superuser() {
            return Err(EngineError::new("42501", "permission denied to change settings of the server")
                .with_hint("Only superusers may use ALTER SYSTEM."));
        }
        if self.shared.block().is_transaction_block() {
            return Err(EngineError::new("25001", "ALTER SYSTEM cannot run inside a transaction block"));
        }
        let settings = self.database.system.get().ok_or_else(|| unsupported("ALTER SYSTEM without a server"))?;
        let Some(name) = &alter.name else {
            return Err(unsupported("ALTER SYSTEM RESET ALL (reset each setting by name)"));
        };
        let value = match alter.value.as_deref() {
            None => None,
            Some([value]) => match &value.kind {
                SettingValueKind::Text(text) | SettingValueKind::Number(text) => Some(text.clone()),
                SettingValueKind::Interval(..) => return Err(unsupported("an interval as a setting's value")),
            },
            Some(_) => return Err(unsupported("a list of values of a setting of the server")),
        };
        // The task runs to its end, even if the client leaves or no longer waits: after half a change, the tier, its
        // file and the settings file would disagree.
        let (told, outcome) = oneshot::channel();
        let (settings, name) = (settings.clone(), name.name.clone());
        self.database.engine.spawn("alter-system", async move {
            drop(told.send(settings.alter(name, value).await)); // Nobody may listen any more.
        });
        outcome.await.map_err(|_| EngineError::new("57P01", "the server stops"))??;
        Ok(command("ALTER SYSTEM"))
    }
}
