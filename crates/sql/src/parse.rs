//! From text to statements: the grammar parses what a client sends ([`parsed`]).
//!
//! 1. Nesting is capped (54001): what walks a statement's tree, or a plan made of it, has stack enough ([`depth`]).
pub(crate) mod constants;
pub(crate) mod depth;
pub(crate) mod identity;
pub(crate) mod literals;
pub(crate) mod locking;
pub(crate) mod qualified;
pub(crate) mod sequence_calls;
pub(crate) mod shown;
pub(crate) mod stored;
pub(crate) mod titles;
pub(crate) mod types;

use terrace_engine::{Among, EngineError, RelationName, Result, Space};
use terrace_grammar::statement::Name;
use terrace_grammar::{Cut, Options, Parsed};

/// The statements of a text, which is refused as PostgreSQL refuses it, at the same place. Empty ones are left out.
pub(crate) fn parsed(sql: &str) -> Result<Vec<Parsed>> {
    terrace_grammar::parse(sql, Options::default()).map_err(|error| {
        let mut refused = EngineError::new(error.sqlstate, error.message);
        refused.detail = error.detail.map(str::to_owned);
        refused.hint = error.hint.map(str::to_owned);
        match error.at {
            Some(at) => refused.at(sql, at as usize),
            None => refused,
        }
    })
}

/// The one statement of a text; `None`: there is none.
pub(crate) fn statement(sql: &str) -> Result<Option<Parsed>> {
    let mut all = parsed(sql)?;
    match all.len() {
        0 | 1 => Ok(all.pop()),
        _ => Err(EngineError::new("42601", "cannot insert multiple commands into a prepared statement")),
    }
}

/// A notice for each name of a text that is cut.
pub(crate) fn cut_names(sql: &str) -> Vec<EngineError> {
    let notice = |Cut { written, kept }: Cut| {
        EngineError::new("42622", format!("identifier \"{written}\" will be truncated to \"{kept}\""))
    };
    terrace_grammar::cut_names(sql).into_iter().map(notice).collect()
}

/// Whether a schema is one of the system's.
pub(crate) fn is_system_schema(name: &str) -> bool {
    matches!(name, "pg_catalog" | "information_schema" | "terrace")
}

/// What the schemas of a definition's text begin with: the number follows.
const NUMBERED: &str = "pg_schema_";

/// A schema as the text of a definition names it: by its number, so that it may get another name.
pub(crate) fn numbered(space: Space) -> String {
    format!("{NUMBERED}{}", space.0.0)
}

/// What stands in a schema of the user's.
pub(crate) fn among(schema: &str) -> Option<Among> {
    let number = |text: &str| text.parse().ok().map(|number| Space(terrace_storage::ObjectId(number)));
    match schema {
        "pg_temp" => Some(Among::Own),
        system if is_system_schema(system) => None,
        other => Some(match (other.strip_prefix("pg_temp_"), other.strip_prefix(NUMBERED)) {
            (Some(space), _) => Among::OwnIf(number(space)?),
            (_, Some(space)) => Among::In(number(space)?),
            _ => Among::Schema(other.into()),
        }),
    }
}

/// The name of a relation that must be in a schema of the user's, or in that of the session's temporary tables; the
/// schema may be written or not.
pub(crate) fn relation(name: &Name) -> Result<RelationName> {
    let parts: Vec<&str> = name.parts().iter().map(|part| part.name.as_str()).collect();
    match parts.as_slice() {
        [table] => Ok(RelationName::new(Among::All, *table)),
        [schema, table] | [_, schema, table] if let Some(among) = among(schema) => Ok(RelationName::new(among, *table)),
        [schema, _] | [_, schema, _] if is_system_schema(schema) => {
            let message = format!("permission denied: \"{}\" is a system catalog", name.shown());
            Err(EngineError::new("42501", message))
        }
        [schema, _] | [_, schema, _] => Err(EngineError::new("3F000", format!("schema \"{schema}\" does not exist"))),
        _ => {
            let message = format!("improper qualified name (too many dotted names): {}", name.shown());
            Err(EngineError::new("42601", message))
        }
    }
}
