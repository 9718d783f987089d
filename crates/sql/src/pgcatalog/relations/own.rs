//! The system relations themselves, as `pg_class` and `pg_attribute` tell of them (psql's `\dS`,
//! `\d pg_stat_activity`).
use super::shapes::all;
use super::*;

/// OIDs of those that PostgreSQL gives no fixed one; below those of the user's objects.
const FIRST: u32 = 12_000;

/// A system relation.
pub(crate) struct Own {
    pub(crate) oid: u32,
    pub(crate) schema: &'static str,
    pub(crate) name: &'static str,
    shape: &'static str,
}

/// Those whose OIDs clients know, as in `classoid = 1259`.
fn fixed_oid(schema: &str, name: &str) -> Option<u32> {
    Some(match (schema, name) {
        ("pg_catalog", "pg_type") => 1247,
        ("pg_catalog", "pg_attribute") => 1249,
        ("pg_catalog", "pg_proc") => 1255,
        ("pg_catalog", "pg_class") => 1259,
        ("pg_catalog", "pg_authid") => 1260,
        ("pg_catalog", "pg_database") => 1262,
        ("pg_catalog", "pg_constraint") => 2606,
        ("pg_catalog", "pg_index") => 2610,
        ("pg_catalog", "pg_namespace") => 2615,
        _ => return None,
    })
}

pub(crate) fn own() -> impl Iterator<Item = Own> {
    (FIRST..).zip(all()).map(|(next, &(schema, name, shape))| {
        let oid = fixed_oid(schema, name).unwrap_or(next);
        Own { oid, schema, name, shape }
    })
}

impl Own {
    /// As PostgreSQL has it; those that only Terrace has are views.
    fn is_view(&self) -> bool {
        const VIEWS: [&str; 16] = [
            "pg_available_extensions",
            "pg_cursors",
            "pg_group",
            "pg_indexes",
            "pg_locks",
            "pg_matviews",
            "pg_policies",
            "pg_prepared_xacts",
            "pg_roles",
            "pg_rules",
            "pg_sequences",
            "pg_settings",
            "pg_shadow",
            "pg_tables",
            "pg_user",
            "pg_views",
        ];
        self.schema != "pg_catalog"
            || self.name.starts_with("pg_stat") && !self.name.starts_with("pg_statistic")
            || VIEWS.contains(&self.name)
    }

    /// Whether its name alone finds it.
    pub(crate) fn is_visible(&self) -> bool {
        self.schema == "pg_catalog"
    }

    /// As `oid::regclass` prints it.
    pub(crate) fn shown(&self) -> String {
        match self.is_visible() {
            true => self.name.to_owned(),
            false => format!("{}.{}", self.schema, self.name),
        }
    }

    fn class(&self) -> Row {
        let namespace = match self.schema {
            "pg_catalog" => PG_CATALOG_OID,
            "information_schema" => INFORMATION_SCHEMA_OID,
            _ => TERRACE_OID,
        };
        let view = self.is_view();
        row! {
            oid: self.oid, relname: self.name, relnamespace: namespace, relowner: OWNER_OID,
            relam: if view { 0 } else { HEAP_AM_OID }, reltuples: V::F4(-1.0), relpersistence: "p",
            relkind: if view { "v" } else { "r" }, relnatts: columns_of(self.shape).len() as i16,
            relispopulated: true, relreplident: "n",
        }
    }

    fn attributes(&self) -> Vec<Row> {
        let one = |(number, (name, ty)): (i16, (&'static str, &'static str))| {
            // Of types that are not among ours there are only NULLs, sent as text.
            let ty = type_by_name(ty).or(type_by_name("text")).expect("text is in TYPES");
            row! {
                attrelid: self.oid, attname: name, atttypid: ty.oid, attstattarget: -1, attlen: ty.len, attnum: number,
                attcacheoff: -1, atttypmod: -1, attbyval: ty.by_value, attalign: "i",
                attstorage: if ty.len < 0 { "x" } else { "p" }, attcompression: "", attidentity: "", attgenerated: "",
                attislocal: true, attcollation: if self.is_view() { 0 } else { ty.collation },
            }
        };
        (1i16..).zip(columns_of(self.shape)).map(one).collect()
    }
}

pub(super) fn classes() -> impl Iterator<Item = Row> {
    own().map(|relation| relation.class())
}

pub(super) fn attributes() -> impl Iterator<Item = Row> {
    own().flat_map(|relation| relation.attributes())
}
