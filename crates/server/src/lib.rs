//! The PostgreSQL wire protocol, version 3.0, over [`terrace_sql::Session`]. Knows connections, messages and formats;
//! no pages.
//!
//! In: TCP connections, with TLS or without. Out: what PostgreSQL 15 would answer. Never: SQL semantics (the sql room).
//! Clients on this machine are trusted unless configured otherwise; from elsewhere a password is always needed
//! ([`Auth`]).
//!
//! Message formats of the answers and type OIDs are pgwire's. The connection loop and the reading of messages are ours,
//! because pgwire's loop cannot tell an idle client that the server stops, cannot limit a message to less than a
//! gigabyte, flushes after every message of a pipeline, and cancels only the start of a statement, not its rows; and
//! because its decoder panics on truncated messages and silently replaces invalid UTF-8.
//!
//! 1. Answers are buffered and flushed at ReadyForQuery, at Flush, and when [`FLUSH_AT`] bytes wait: one system call
//!    per pipeline.
//! 2. After an error in the extended protocol everything is skipped up to Sync.
//! 3. A statement whose client is gone is dropped and rolled back, also while it waits for a lock.
//! 4. A connection's panic or protocol error ends that connection only.
//!
//! Not there: SCRAM channel binding, client certificates, LISTEN, protocol 3.2's long cancel keys.
//!
//! Source: PostgreSQL 15 documentation, chapter 55 (Frontend/Backend Protocol).
mod auth;
mod connection;
mod copy;
mod copy_file;
mod copy_parquet;
mod decode;
mod encode;
mod error;
mod extended;
mod frontend;
mod large;
mod lobby;
mod metrics;
mod registry;
mod rows;
mod serve;
mod starting;
mod startup;
mod tls;
mod types;

pub use auth::Auth;
pub use connection::FLUSH_AT;
#[doc(hidden)]
pub use frontend::decode_all;
pub use metrics::serve_metrics;
pub use serve::{Limits, ServeError, serve};
pub use starting::while_starting;
pub use tls::{Tls, TlsError};
