//! Statements with a long text: the memory that parsing and planning them takes is counted as long as their tree
//! exists.
mod text;

use crate::cancel::CancelToken;
use crate::error::from_datafusion;
use crate::memory::Work;
use crate::session::Session;
use crate::session::prepared::Prepared;
use crate::stack::on_stack;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use std::mem;
use std::sync::Arc;
use terrace_engine::Result;
use terrace_env::{Env, memory};
use text::weight;

/// Texts of at most so many bytes are not counted.
const LIGHT: usize = 8 << 10;

/// A statement with a large tree. The tree's memory is counted as long as this exists.
pub(crate) struct Heavy {
    memory: MemoryReservation,
    /// Bytes of its text and its tree, as the allocator counted them.
    allocated: i64,
    env: Env,
}

impl Heavy {
    pub(crate) fn has_allocated(&mut self, bytes: i64) {
        self.allocated = bytes;
    }
}

impl Drop for Prepared {
    /// Freeing a million nodes takes long, so another thread does it and nobody waits. The session has allocated them,
    /// so they are handed over: otherwise they would count as the session's for ever.
    fn drop(&mut self) {
        let tree = self.statement.take();
        let depth = self.depth;
        match self.heavy.take() {
            None => on_stack(depth, || drop(tree)),
            Some(Heavy { memory: reserved, allocated, env }) => {
                memory::handed_over(allocated);
                let freed = (mem::take(&mut self.sql), tree, reserved);
                let own = env.clone();
                env.spawn("drop a statement", async move {
                    own.run_long(Box::pin(async move { on_stack(depth, || drop(freed)) })).await;
                });
            }
        }
    }
}

impl Session {
    /// Reserves what parsing and planning a text will take from the budget of all queries (53200); nothing for a short
    /// one.
    pub(crate) fn heavy(&self, sql: &str) -> Result<Option<Heavy>> {
        if sql.len() < LIGHT {
            return Ok(None);
        }
        let memory = MemoryConsumer::new("a statement's text").register(self.pool());
        memory.try_grow(weight(sql)).map_err(from_datafusion)?;
        Ok(Some(Heavy { memory, allocated: 0, env: self.database.engine.env().clone() }))
    }

    pub(crate) fn pool(&self) -> &Arc<dyn MemoryPool> {
        &self.database.state.runtime_env().memory_pool
    }

    /// What functions run for.
    pub(crate) fn work(&self, token: Arc<CancelToken>) -> Arc<Work> {
        Work::new(token, self.pool().clone())
    }
}
