//! The columns that a name which none has is nearly that of: PostgreSQL's hint of 42703.
//!
//! 1. Names are apart by so many letters. More than three, or more than half of the name, is too many.
//! 2. Two columns may be as near. If a third is, none of them is meant.
//!
//! Source: PostgreSQL 15, what its errors say.
use super::scope::Scope;
use datafusion::common::utils::datafusion_strsim::levenshtein as letters_apart;

/// Names that are further apart are no match.
const FURTHEST: usize = 3;

struct Nearest {
    /// That of the matches; what is as far away, and no match, does not count.
    distance: usize,
    /// At most two: a relation and a column.
    found: Vec<(String, String)>,
}

impl Nearest {
    fn see(&mut self, relation: &str, column: &str, (wanted, penalty): (&str, usize)) {
        let apart = letters_apart(column, wanted);
        if penalty > self.distance || apart > wanted.len() / 2 {
            return;
        }
        let apart = apart + penalty;
        let own = || (relation.to_owned(), column.to_owned());
        if apart < self.distance {
            (self.distance, self.found) = (apart, vec![own()]);
        } else if apart == self.distance {
            match self.found.len() {
                2 => (self.distance, self.found) = (apart.saturating_sub(1), vec![]),
                1 => self.found.push(own()),
                _ if self.distance <= FURTHEST => self.found.push(own()),
                _ => {}
            }
        }
    }
}

impl Scope<'_> {
    /// `table`: where the name stands before the column's.
    pub(super) fn hint_at_columns(&self, table: Option<&str>, column: &str) -> Option<String> {
        let mut nearest = Nearest { distance: FURTHEST + 1, found: vec![] };
        let mut scope = Some(self);
        while let Some(here) = scope {
            for relation in &here.source.relations {
                let penalty = table.map_or(0, |table| letters_apart(table, &relation.name).min(FURTHEST + 2));
                for (own, _) in &relation.columns {
                    nearest.see(&relation.name, own, (column, penalty));
                }
            }
            scope = here.around;
        }
        let shown = |(relation, column): &(String, String)| format!("the column \"{relation}.{column}\"");
        let all: Vec<String> = nearest.found.iter().map(shown).collect();
        (!all.is_empty()).then(|| format!("Perhaps you meant to reference {}.", all.join(" or ")))
    }
}
