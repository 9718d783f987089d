//! What each statement does, once it is parsed: one file for each kind.
//!
//! [`kind`] is the table of what each statement is: who carries it out, and what it is described as. [`dispatch`]
//! carries out what runs in a transaction, on a [`run::Run`], which is all that a running statement may use;
//! [`describe`] finds the columns and parameters. What a statement answers is an [`outcome::Outcome`].
//!
//! 1. A statement runs in the transaction that its session has opened for it, and never ends it.
//! 2. What nobody carries out says so (0A000): [`kind`] names every statement.
//! 3. All rows of a change are computed and checked before the first is written.
pub(crate) mod alter;
mod alter_sequence;
mod alter_type;
mod alter_view;
mod beside;
pub(crate) mod changes;
pub(crate) mod checks;
mod comment;
mod composites;
pub(crate) mod computed;
pub(crate) mod conflict;
pub(crate) mod copy;
pub(crate) mod create_as;
pub(crate) mod ddl;
pub(crate) mod default_privileges;
pub(crate) mod describe;
pub(crate) mod dispatch;
pub(crate) mod domains;
mod enums;
pub(crate) mod explain;
pub(crate) mod foreign_keys;
pub(crate) mod generic;
pub(crate) mod grant;
mod immutable;
pub(crate) mod indexes;
pub(crate) mod insert;
pub(crate) mod kind;
pub(crate) mod like;
pub(crate) mod lock_rows;
pub(crate) mod maintain;
mod named;
pub(crate) mod options;
pub(crate) mod outcome;
pub(crate) mod reads;
mod rename;
pub(crate) mod returning;
pub(crate) mod roles;
pub(crate) mod run;
pub(crate) mod schemas;
pub(crate) mod sequence;
pub(crate) mod shared;
pub(crate) mod target;
pub(crate) mod through;
pub(crate) mod update_delete;
pub(crate) mod using_index;
pub(crate) mod views;
pub(crate) mod within;
pub(crate) mod zoned;
