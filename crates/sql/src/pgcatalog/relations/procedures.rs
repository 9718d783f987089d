//! `pg_proc`: the functions there are, as PostgreSQL 15 has them. `scripts/procedures` writes the file that is read
//! here: for each of PostgreSQL's functions it asks Terrace whether it takes such a call.
use super::*;
use crate::pgcatalog::system::{OWNER_OID, PG_CATALOG_OID};
use std::sync::OnceLock;

/// The language `internal`.
const INTERNAL_OID: u32 = 12;

/// Of `pg_proc` and `pg_language`.
pub(super) fn rows(relation: &str) -> Vec<Row> {
    match relation {
        "pg_proc" => all().iter().map(|procedure| procedure.row()).collect(),
        _ => vec![row! {
            oid: INTERNAL_OID, lanname: "internal", lanowner: OWNER_OID, lanispl: false, lanpltrusted: false,
            lanvalidator: 2246u32, lanacl: V::Null,
        }],
    }
}

/// A line's fields, in this order. `\N` is NULL.
#[derive(Clone, Copy)]
pub(crate) struct Procedure {
    pub(crate) oid: u32,
    fields: [&'static str; FIELDS],
}

const FIELDS: usize = 20;

fn all() -> &'static [Procedure] {
    static ALL: OnceLock<Vec<Procedure>> = OnceLock::new();
    let one = |line: &'static str| {
        let mut fields = [""; FIELDS];
        let mut said = line.split('\t');
        fields.iter_mut().for_each(|field| *field = said.next().expect("a line has all fields"));
        Procedure { oid: number(fields[0]), fields }
    };
    ALL.get_or_init(|| {
        let mut all: Vec<Procedure> = include_str!("procedures.txt").lines().map(one).collect();
        all.sort_by_key(|procedure| procedure.oid);
        all
    })
}

/// Names of which PostgreSQL has more functions, of types that are not here.
const MORE: [&str; 14] = [
    "array_to_json",
    "bit_count",
    "char_length",
    "character_length",
    "get_bit",
    "json_build_object",
    "jsonb_build_object",
    "jsonb_delete",
    "lower",
    "percentile_cont",
    "regexp_match",
    "set_bit",
    "unnest",
    "upper",
];

/// What a function's name in `regproc` means.
pub(crate) enum Meant {
    Nothing,
    One(u32),
    Many,
}

fn called(name: &str) -> impl Iterator<Item = &'static Procedure> {
    all().iter().filter(move |procedure| procedure.fields[1] == name)
}

pub(crate) fn meant(name: &str) -> Meant {
    let mut found = called(name).map(|procedure| procedure.oid).chain(inputs::called(name));
    match (found.next(), found.next()) {
        (None, _) => Meant::Nothing,
        (Some(oid), None) if !MORE.contains(&name) => Meant::One(oid),
        _ => Meant::Many,
    }
}

/// The function of a name that takes these types.
pub(crate) fn taking(name: &str, types: &[u32]) -> Option<u32> {
    called(name).find(|procedure| procedure.takes() == types).map(|procedure| procedure.oid)
}

/// A function as `regproc` shows it: with its schema where the name alone means several; of an OID that no function
/// has, the number, and `-` of none.
pub(crate) fn shown(oid: u32) -> String {
    match by_oid(oid).map(|procedure| procedure.fields[1]) {
        Some(name) if matches!(meant(name), Meant::Many) => format!("pg_catalog.{name}"),
        Some(name) => name.to_owned(),
        None => inputs::shown(oid),
    }
}

pub(crate) fn by_oid(oid: u32) -> Option<Procedure> {
    let all = all();
    all.binary_search_by_key(&oid, |procedure| procedure.oid).ok().map(|at| all[at])
}

fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().expect("the file has numbers in their places")
}

/// `{1,2}` or `1 2`.
fn oids(text: &str) -> V {
    if text == "\\N" {
        return V::Null;
    }
    let items = text.trim_matches(['{', '}']).split([',', ' ']).filter(|item| !item.is_empty());
    V::Oids(items.map(number).collect())
}

fn texts(text: &str) -> V {
    if text == "\\N" {
        return V::Null;
    }
    V::Texts(text.split(',').map(str::to_owned).collect())
}

impl Procedure {
    /// As they are declared.
    pub(crate) fn arguments(self) -> &'static str {
        self.fields[18]
    }

    pub(crate) fn result(self) -> &'static str {
        self.fields[19]
    }

    pub(crate) fn name(self) -> &'static str {
        self.fields[1]
    }

    /// The types of its arguments.
    pub(crate) fn takes(self) -> Vec<u32> {
        let types = Some(self.fields[13]).filter(|types| *types != "\\N").unwrap_or_default();
        types.split(' ').filter(|one| !one.is_empty()).map(number).collect()
    }

    fn is(self, field: usize) -> bool {
        self.fields[field] == "t"
    }

    fn row(self) -> Row {
        let f = self.fields;
        row! {
            oid: self.oid, proname: f[1], pronamespace: PG_CATALOG_OID, proowner: OWNER_OID, prolang: INTERNAL_OID,
            procost: V::F4(number(f[2])), prorows: V::F4(number(f[3])), provariadic: V::O(number(f[4])), prokind: f[5],
            proleakproof: self.is(6), proisstrict: self.is(7), proretset: self.is(8), provolatile: f[9],
            proparallel: f[10], pronargs: V::I2(i16::try_from(self.takes().len()).unwrap_or(0)),
            pronargdefaults: V::I2(number(f[11])), prorettype: V::O(number(f[12])), proargtypes: oids(f[13]),
            proallargtypes: oids(f[14]), proargmodes: texts(f[15]), proargnames: texts(f[16]), prosrc: f[17],
            proargdefaults: V::Null, probin: V::Null, prosqlbody: V::Null, proconfig: V::Null, proacl: V::Null,
        }
    }
}
