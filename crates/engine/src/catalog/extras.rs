//! What an index is besides its columns (*format*: the text of its columns in the table of indexes).
//!
//! ```text
//! 0,2                       columns 0 and 2, nothing else: what all versions of Terrace read
//! 0d,2:text_pattern_ops|3|w  column 0 DESC (f: NULLS FIRST, which DESC has without it: n takes it away), column 2 with
//!                           an operator class, INCLUDE of column 3, a condition (w)
//! 0||ncdi                   column 0, NULLS NOT DISTINCT (n), a constraint (c), DEFERRABLE (d), INITIALLY DEFERRED (i)
//! 0||                       column 0: where it is unique, a plain unique index
//! ```
//!
//! 1. An expression of an index is a *computed column* of its table ([`Table::computed`]): one that is dropped, so that
//!    nobody sees it, with the expression as its default and the text that errors show as its name. Its value is stored
//!    in each row. So nothing below the SQL front end evaluates expressions: purge, rollback and checks find keys in
//!    rows as they always do, and an index agrees with its table whatever becomes of a function.
//! 2. The condition of a partial index is a computed column, too, the last of its key: TRUE for rows that the index is
//!    about, and NULL for all others. A key with a NULL is a duplicate of nothing, so a unique partial index needs no
//!    rule of its own. Rows with NULL have entries all the same: so the index serves any look-up by its first columns.
//! 3. DESC and NULLS FIRST are kept and shown. The entries are in ascending order, NULLs last, in every index.
//! 4. A DEFERRABLE one may hold duplicates until the end of the statement, or of the transaction
//!    (`crate::txn::unique`, invariant 5): whoever takes its keys for those of one row asks [`Index::is_immediate`].
//! 5. An index of any of this has a text that earlier versions cannot read: they refuse the database, because they
//!    would store rows without these values.
//! 6. A unique index whose text is nothing but its columns stands for a constraint: earlier versions wrote that for
//!    all, and called each a constraint. CREATE UNIQUE INDEX makes one with extras that say nothing
//!    ([`Extras::plain`]).
use super::{ColumnDef, Index, Table};

/// Besides the columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// One for each column of the key, but for the condition.
    pub keys: Vec<KeyOption>,
    /// INCLUDE: positions of columns.
    pub included: Vec<usize>,
    /// The key's last column is a condition (invariant 2).
    pub filtered: bool,
    /// Of a unique one: two rows with NULL in the same columns are duplicates.
    pub nulls_not_distinct: bool,
    /// A UNIQUE or PRIMARY KEY constraint has it (invariant 6).
    pub constraint: bool,
    /// Invariant 4.
    pub deferrable: bool,
    /// Checked at the end of the transaction, unless SET CONSTRAINTS says otherwise.
    pub deferred: bool,
}

/// How a column of a key was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyOption {
    pub descending: bool,
    pub nulls_first: bool,
    /// The operator class, where it is not the type's own.
    pub class: Option<String>,
}

impl Extras {
    /// Those of a unique index that stands for no constraint: of so many columns, and nothing else (invariant 6).
    pub fn plain(columns: usize) -> Extras {
        Extras { keys: vec![KeyOption::default(); columns], ..Extras::default() }
    }
}

impl KeyOption {
    fn is_plain(&self) -> bool {
        *self == KeyOption::default()
    }
}

impl Index {
    /// The columns that it orders rows by: without a partial index's condition.
    pub fn keys(&self) -> &[usize] {
        let conditions = usize::from(self.is_partial());
        &self.columns[..self.columns.len() - conditions]
    }

    pub fn is_partial(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| extras.filtered)
    }

    /// How the column of that place in the key was asked for.
    pub fn key_option(&self, at: usize) -> KeyOption {
        self.extras.as_ref().and_then(|extras| extras.keys.get(at).cloned()).unwrap_or_default()
    }

    /// Whether no two rows that a transaction sees have the same key without NULLs (invariant 4).
    pub fn is_immediate(&self) -> bool {
        self.unique && self.extras.as_ref().is_none_or(|extras| !extras.deferrable)
    }

    /// Whether it stands for a UNIQUE or PRIMARY KEY constraint, which has its name (invariant 6).
    pub fn is_constraint(&self) -> bool {
        self.unique && self.extras.as_ref().is_none_or(|extras| extras.constraint)
    }

    /// The same index, which stands for a constraint from now on.
    pub(crate) fn into_constraint(self, deferrable: bool, deferred: bool) -> Index {
        let before = self.extras.map_or_else(|| Extras::plain(self.columns.len()), |extras| *extras);
        let extras = Extras { constraint: true, deferrable, deferred, ..before };
        let no_more = Extras { constraint: true, ..Extras::plain(self.columns.len()) };
        Index { extras: (extras != no_more).then(|| extras.into()), ..self }
    }

    /// Whether it is checked at the end of the transaction, unless SET CONSTRAINTS says otherwise.
    pub fn is_deferred(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| extras.deferred)
    }

    pub fn is_nulls_not_distinct(&self) -> bool {
        self.extras.as_ref().is_some_and(|extras| extras.nulls_not_distinct)
    }

    pub fn included(&self) -> &[usize] {
        self.extras.as_ref().map_or(&[], |extras| &extras.included)
    }
}

impl ColumnDef {
    /// The expression of a computed column (invariant 1).
    pub fn computed(&self) -> Option<&str> {
        // The mark of a sequence is such a column without a name.
        self.default_sql.as_deref().filter(|_| self.dropped && !self.name.is_empty())
    }
}

impl Table {
    /// The unique indexes of whole columns, without a condition: those that foreign keys may refer to. Locks of rows
    /// tell changes of their columns from others.
    pub fn keys(&self) -> impl Iterator<Item = &Index> {
        let computes = |index: &Index| index.columns.iter().any(|at| self.columns[*at].computed().is_some());
        self.indexes.iter().map(|index| &**index).filter(move |index| index.unique && !computes(index))
    }

    /// Its generated columns, with their places and expressions.
    pub fn generated(&self) -> impl Iterator<Item = (usize, &str)> {
        self.columns.iter().enumerate().filter_map(|(at, column)| Some((at, column.generated.as_deref()?)))
    }

    /// Its computed columns, with their places and expressions.
    pub fn computed(&self) -> impl Iterator<Item = (usize, &str)> {
        self.columns.iter().enumerate().filter_map(|(at, column)| Some((at, column.computed()?)))
    }
}

/// A letter, and what it says.
type Flag = (char, fn(&mut Extras) -> &mut bool);

/// What an index may be, by the letter of it.
const FLAGS: [Flag; 5] = [
    ('w', |extras| &mut extras.filtered),
    ('n', |extras| &mut extras.nulls_not_distinct),
    ('c', |extras| &mut extras.constraint),
    ('d', |extras| &mut extras.deferrable),
    ('i', |extras| &mut extras.deferred),
];

/// The text of an index's columns.
pub(super) fn text(index: &Index) -> String {
    let Some(extras) = &index.extras else { return super::system::positions_text(&index.columns) };
    let key = |(at, column): (usize, &usize)| {
        let KeyOption { descending, nulls_first, class } = index.key_option(at);
        let order = match (descending, nulls_first) {
            (true, true) => "d",
            (true, false) => "dn",
            (false, true) => "f",
            (false, false) => "",
        };
        let class = class.map_or(String::new(), |class| format!(":{class}"));
        format!("{column}{order}{class}")
    };
    let keys: Vec<String> = index.columns.iter().enumerate().map(key).collect();
    let included = super::system::positions_text(&extras.included);
    let flags: String = FLAGS.iter().filter(|(_, flag)| *flag(&mut extras.clone())).map(|(letter, _)| letter).collect();
    format!("{}|{included}|{flags}", keys.join(","))
}

/// Columns and extras of a text.
pub(super) fn read(text: &str) -> Option<(Vec<usize>, Option<Box<Extras>>)> {
    let Some((keys, rest)) = text.split_once('|') else { return Some((super::system::positions(text)?, None)) };
    let (included, flags) = rest.split_once('|')?;
    let included = if included.is_empty() { vec![] } else { super::system::positions(included)? };
    let mut extras = Extras { included, ..Extras::default() };
    for letter in flags.chars() {
        let (_, flag) = FLAGS.iter().find(|(known, _)| *known == letter)?;
        *flag(&mut extras) = true;
    }
    let (mut columns, mut options) = (vec![], vec![]);
    for key in keys.split(',') {
        let (key, class) = key.split_once(':').map_or((key, None), |(key, class)| (key, Some(class.to_owned())));
        let digits = key.trim_end_matches(|c: char| !c.is_ascii_digit());
        let (descending, nulls_first) = match &key[digits.len()..] {
            "d" => (true, true),
            "dn" => (true, false),
            "f" => (false, true),
            "" => (false, false),
            _ => return None,
        };
        columns.push(digits.parse().ok()?);
        options.push(KeyOption { descending, nulls_first, class });
    }
    if extras.filtered && !options.pop().is_some_and(|condition| condition.is_plain()) {
        return None;
    }
    Some((columns, Some(Box::new(Extras { keys: options, ..extras }))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use terrace_storage::{ObjectId, TxnId};

    #[test]
    fn what_is_written_is_read_and_earlier_versions_do_not_read_it() {
        let option = |descending, nulls_first, class: &str| KeyOption {
            descending,
            nulls_first,
            class: (!class.is_empty()).then(|| class.to_owned()),
        };
        let index = |columns: &[usize], extras: Option<Extras>| Index {
            oid: ObjectId(20_000),
            name: "i".into(),
            table: ObjectId(20_001),
            columns: columns.to_vec(),
            unique: false,
            primary: false,
            root: 1,
            created_by: TxnId(1),
            extras: extras.map(Box::new),
        };
        let plain = option(false, false, "");
        for (columns, extras, written) in [
            (&[0, 2][..], None, "0,2"),
            (&[5], Some(Extras { keys: vec![plain.clone()], ..Extras::default() }), "5||"),
            (
                &[1, 0, 3, 12],
                Some(Extras {
                    keys: vec![
                        option(true, true, ""),
                        option(true, false, "text_pattern_ops"),
                        option(false, true, ""),
                    ],
                    included: vec![7, 8],
                    filtered: true,
                    ..Extras::default()
                }),
                "1d,0dn:text_pattern_ops,3f,12|7,8|w",
            ),
            (
                &[1],
                Some(Extras {
                    keys: vec![plain.clone()],
                    nulls_not_distinct: true,
                    constraint: true,
                    deferrable: true,
                    deferred: true,
                    ..Extras::default()
                }),
                "1||ncdi",
            ),
        ] {
            let index = index(columns, extras);
            assert_eq!(text(&index), written);
            assert_eq!(read(written), Some((index.columns.clone(), index.extras.clone())));
            assert_eq!(super::super::system::positions(written).is_none(), index.extras.is_some(), "invariant 5");
            assert_eq!(index.keys().len(), columns.len() - usize::from(index.is_partial()));
        }
        let made = |unique: Index| Index { unique: true, ..unique };
        let plain_unique = made(index(&[0, 2], Some(Extras::plain(2))));
        assert_eq!((text(&plain_unique).as_str(), plain_unique.is_constraint()), ("0,2||", false));
        assert!(made(index(&[0, 2], read("0,2").unwrap().1.map(|extras| *extras))).is_constraint(), "invariant 6");
        for (deferred, written) in [(false, "0,2"), (true, "0,2||cdi")] {
            let constraint = plain_unique.clone().into_constraint(deferred, deferred);
            assert_eq!((text(&constraint).as_str(), constraint.is_constraint()), (written, true));
        }
        for broken in ["0x||", "0|", "0||v", "0||nv", "d||", "0|a|", "||", "0:c||w"] {
            assert_eq!(read(broken), None, "{broken}");
        }
    }
}
