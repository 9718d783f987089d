//! The system relations themselves, as `pg_class` and `pg_attribute` tell of them (psql's `\dS`,
//! `\d pg_stat_activity`).
use super::shapes::all;
use super::*;

/// Of `pg_authid`, which is not everybody's to read.
pub(crate) const AUTHID_OID: u32 = 1260;

/// OIDs of those that PostgreSQL gives no fixed one; below those of the user's objects.
const FIRST: u32 = 12_000;

/// A system relation.
pub(crate) struct Own {
    pub(crate) oid: u32,
    pub(crate) schema: &'static str,
    pub(crate) name: &'static str,
    shape: &'static str,
}

/// Of the tables of `pg_catalog`: clients know some of them, as in `classoid = 1259`.
fn fixed_oid(schema: &str, name: &str) -> Option<u32> {
    if schema != "pg_catalog" {
        return None;
    }
    Some(match name {
        "pg_aggregate" => 2600,
        "pg_am" => 2601,
        "pg_amop" => 2602,
        "pg_amproc" => 2603,
        "pg_attrdef" => 2604,
        "pg_attribute" => 1249,
        "pg_auth_members" => 1261,
        "pg_authid" => AUTHID_OID,
        "pg_cast" => 2605,
        "pg_class" => 1259,
        "pg_collation" => 3456,
        "pg_constraint" => 2606,
        "pg_conversion" => 2607,
        "pg_database" => 1262,
        "pg_db_role_setting" => 2964,
        "pg_default_acl" => 826,
        "pg_depend" => 2608,
        "pg_description" => 2609,
        "pg_enum" => 3501,
        "pg_event_trigger" => 3466,
        "pg_extension" => 3079,
        "pg_foreign_data_wrapper" => 2328,
        "pg_foreign_server" => 1417,
        "pg_foreign_table" => 3118,
        "pg_index" => 2610,
        "pg_inherits" => 2611,
        "pg_init_privs" => 3394,
        "pg_language" => 2612,
        "pg_largeobject_metadata" => 2995,
        "pg_namespace" => 2615,
        "pg_opclass" => 2616,
        "pg_operator" => 2617,
        "pg_opfamily" => 2753,
        "pg_parameter_acl" => 6243,
        "pg_partitioned_table" => 3350,
        "pg_policy" => 3256,
        "pg_proc" => 1255,
        "pg_publication" => 6104,
        "pg_publication_namespace" => 6237,
        "pg_publication_rel" => 6106,
        "pg_range" => 3541,
        "pg_rewrite" => 2618,
        "pg_seclabel" => 3596,
        "pg_sequence" => 2224,
        "pg_shdepend" => 1214,
        "pg_shdescription" => 2396,
        "pg_shseclabel" => 3592,
        "pg_statistic_ext" => 3381,
        "pg_statistic_ext_data" => 3429,
        "pg_subscription" => 6100,
        "pg_tablespace" => 1213,
        "pg_transform" => 3576,
        "pg_trigger" => 2620,
        "pg_ts_config" => 3602,
        "pg_ts_dict" => 3600,
        "pg_ts_parser" => 3601,
        "pg_ts_template" => 3764,
        "pg_type" => 1247,
        "pg_user_mapping" => 1418,
        _ => return None,
    })
}

/// Its OID, if it is a table in PostgreSQL: its rows have a column `tableoid`.
pub(super) fn table_oid(schema: &str, name: &str) -> Option<u32> {
    fixed_oid(schema, name)
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
        const VIEWS: [&str; 19] = [
            "pg_available_extensions",
            "pg_cursors",
            "pg_group",
            "pg_indexes",
            "pg_locks",
            "pg_matviews",
            "pg_policies",
            "pg_prepared_statements",
            "pg_prepared_xacts",
            "pg_roles",
            "pg_rules",
            "pg_sequences",
            "pg_seclabels",
            "pg_settings",
            "pg_shadow",
            "pg_tables",
            "pg_user",
            "pg_user_mappings",
            "pg_views",
        ];
        self.schema != "pg_catalog"
            || self.name.starts_with("pg_stat") && !self.name.starts_with("pg_statistic")
            || VIEWS.contains(&self.name)
    }

    pub(crate) fn columns(&self) -> Vec<&'static str> {
        columns_of(self.shape).into_iter().map(|(name, _)| name).collect()
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
