//! The arguments of functions that act on sessions: a process id; a channel and a text; the key of an advisory lock,
//! which is one bigint or two integers; a seed. What the functions do is [`crate::pgcatalog`]'s and
//! [`crate::functions::advisory`]'s.
use super::{Builtin, Overload, Run, Takes};
use terrace_engine::DataType;

const PID: &[Overload] =
    &[Overload { takes: &[Takes::Is(DataType::Int4)], more: false, gives: DataType::Bool, run: Run::Theirs }];

pub(super) const ALONE: &[Builtin] = &[
    Builtin {
        name: "pg_advisory_unlock_all",
        overloads: &[Overload { takes: &[], more: false, gives: DataType::Text, run: Run::Theirs }],
    },
    Builtin { name: "pg_cancel_backend", overloads: PID },
    Builtin {
        name: "pg_notify",
        overloads: &[Overload {
            takes: &[Takes::Is(DataType::Text); 2],
            more: false,
            gives: DataType::Text,
            run: Run::Theirs,
        }],
    },
    Builtin { name: "pg_terminate_backend", overloads: PID },
    Builtin {
        name: "random",
        overloads: &[Overload { takes: &[], more: false, gives: DataType::Float8, run: Run::Theirs }],
    },
    Builtin {
        name: "setseed",
        overloads: &[Overload {
            takes: &[Takes::Is(DataType::Float8)],
            more: false,
            gives: DataType::Text,
            run: Run::Theirs,
        }],
    },
];

const ONE: &[Takes] = &[Takes::Is(DataType::Int8)];
const TWO: &[Takes] = &[Takes::Is(DataType::Int4); 2];

macro_rules! takes_a_key {
    ($gives:ident: $($name:literal),*) => {
        &[$(Builtin { name: $name, overloads: &[
            Overload { takes: ONE, more: false, gives: DataType::$gives, run: Run::Theirs },
            Overload { takes: TWO, more: false, gives: DataType::$gives, run: Run::Theirs },
        ] }),*]
    };
}

pub(super) const WAITING: &[Builtin] = takes_a_key!(
    Text: "pg_advisory_lock", "pg_advisory_lock_shared", "pg_advisory_xact_lock", "pg_advisory_xact_lock_shared"
);

pub(super) const OTHERS: &[Builtin] = takes_a_key!(
    Bool: "pg_try_advisory_lock", "pg_try_advisory_lock_shared", "pg_try_advisory_xact_lock",
    "pg_try_advisory_xact_lock_shared", "pg_advisory_unlock", "pg_advisory_unlock_shared"
);
