//! Refuses keys that nobody reads, and says which one was probably meant.

use super::{ConfigError, DEFAULT};
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// Likeness (0 to 1) below which a suggestion would only confuse.
const LIKENESS: f64 = 0.5;

/// The candidate most like `word`, if any is like it.
pub(super) fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| (strsim::normalized_damerau_levenshtein(word, candidate), candidate))
        .filter(|(likeness, _)| *likeness >= LIKENESS)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Fails at the first key that the documented defaults do not have.
pub(super) fn refuse(text: &str, file: &Path) -> Result<(), ConfigError> {
    // A syntax error is reported by the deserialiser, with its place.
    let Ok(table) = DeTable::parse(text) else { return Ok(()) };
    // The program's own file: a test parses it.
    let known = DeTable::parse(DEFAULT).expect("the default configuration is valid TOML");
    check(table.get_ref(), known.get_ref(), "", text, file)
}

fn check(table: &DeTable, known: &DeTable, path: &str, text: &str, file: &Path) -> Result<(), ConfigError> {
    for (key, value) in table {
        let name: &str = key.get_ref();
        // Devices have names of the user's choice: all have the keys of the documented one.
        let documented = if path == "devices" { known.values().next() } else { known.get(name) };
        let place = format!(" line {}", text[..key.span().start].matches('\n').count() + 1);
        let error = |problem| ConfigError { file: file.display().to_string(), place: place.clone(), problem };
        let full = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        let Some(documented) = documented else {
            return Err(error(unknown_key(&full, name, path, known)));
        };
        match (value.get_ref(), documented.get_ref()) {
            (DeValue::Table(table), DeValue::Table(known)) => check(table, known, &full, text, file)?,
            (DeValue::Table(_), _) => return Err(error(format!("{full} is a key with a value, not a table"))),
            (_, DeValue::Table(_)) => return Err(error(format!("{full} is a table: write [{full}], then its keys"))),
            _ => {}
        }
    }
    Ok(())
}

fn unknown_key(full: &str, name: &str, path: &str, siblings: &DeTable) -> String {
    let prefix = if path.is_empty() { String::new() } else { format!("{path}.") };
    let beside: Vec<&str> = siblings.keys().map(|key| key.get_ref().as_ref()).collect();
    let meant = nearest(name, beside.iter().copied()).map(|key| format!("{prefix}{key}")).or_else(|| elsewhere(name));
    match meant {
        Some(meant) => format!("unknown key {full:?}; did you mean {meant:?}?"),
        None => format!("unknown key {full:?}; known here: {}", beside.join(", ")),
    }
}

/// The full name of a key in another table that is called like this one.
fn elsewhere(name: &str) -> Option<String> {
    fn collect(table: &DeTable, path: &str, all: &mut Vec<(String, String)>) {
        for (key, value) in table {
            let full = if path.is_empty() { key.get_ref().to_string() } else { format!("{path}.{}", key.get_ref()) };
            match value.get_ref() {
                DeValue::Table(inner) => collect(inner, &full, all),
                _ => all.push((key.get_ref().to_string(), full)),
            }
        }
    }
    let known = DeTable::parse(DEFAULT).ok()?;
    let mut all = Vec::new();
    collect(known.get_ref(), "", &mut all);
    let best = nearest(name, all.iter().map(|(key, _)| key.as_str()))?.to_string();
    all.into_iter().find(|(key, _)| *key == best).map(|(_, full)| full)
}
