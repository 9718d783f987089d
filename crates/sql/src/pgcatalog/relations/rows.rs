//! Rows of the relations.
use super::super::functions::{indexes as shown_indexes, privileges};
use super::depend::PG_TYPE_OID;
use super::*;
use crate::parse::identity::Identity;
use crate::parse::numbered;
use crate::parse::qualified::shown as shown_text;
use crate::parse::sequence_calls::sequence_of;
use crate::parse::shown;
use crate::parse::stored::{Stored, key_name};
use crate::pgcatalog::schema_of_table;
use crate::values::typmod;
use std::borrow::Cow;
use std::collections::BTreeSet;
use terrace_engine::catalog::access::{DefaultOf, FIRST_OWNER, Grant, Member, Securable, THE_DATABASE};
use terrace_engine::catalog::comments::OF_CONSTRAINT;
use terrace_engine::catalog::roles::members_of_system;
use terrace_engine::types::EnumType;
use terrace_engine::types::enums::Label;
use terrace_engine::{Among, ColumnDef, DataType, RelationName, Role, Space};
use terrace_grammar::quoted;
use terrace_storage::ObjectId;

/// Relations about objects that Terrace does not have: a query that reads one by an inner join has no rows.
pub(crate) fn is_always_empty(name: &str) -> bool {
    matches!(
        name,
        "pg_aggregate"
            | "pg_amop"
            | "pg_amproc"
            | "pg_cast"
            | "pg_conversion"
            | "pg_cursors"
            | "pg_db_role_setting"
            | "pg_event_trigger"
            | "pg_foreign_data_wrapper"
            | "pg_foreign_server"
            | "pg_foreign_table"
            | "pg_inherits"
            | "pg_init_privs"
            | "pg_largeobject_metadata"
            | "pg_matviews"
            | "pg_operator"
            | "pg_opfamily"
            | "pg_parameter_acl"
            | "pg_partitioned_table"
            | "pg_policies"
            | "pg_policy"
            | "pg_publication"
            | "pg_publication_namespace"
            | "pg_publication_rel"
            | "pg_range"
            | "pg_rules"
            | "pg_seclabel"
            | "pg_seclabels"
            | "pg_shdepend"
            | "pg_shdescription"
            | "pg_shseclabel"
            | "pg_statistic_ext"
            | "pg_statistic_ext_data"
            | "pg_subscription"
            | "pg_transform"
            | "pg_trigger"
            | "pg_ts_config"
            | "pg_ts_dict"
            | "pg_ts_parser"
            | "pg_ts_template"
            | "pg_user_mapping"
            | "pg_user_mappings"
    )
}

/// What a relation holds; nothing where there is nothing to hold.
pub(crate) fn rows(catalog: &Arc<Catalog>, schema: &str, name: &str) -> Vec<Row> {
    match schema {
        "pg_catalog" => catalog_rows(catalog, name),
        "information_schema" => standard_rows(catalog, name),
        "functions" => terrace_grammar::keywords().into_iter().map(keyword_row).collect(),
        _ => vec![],
    }
}

fn catalog_rows(catalog: &Arc<Catalog>, name: &str) -> Vec<Row> {
    match name {
        "pg_am" => vec![
            row! {oid: HEAP_AM_OID, amname: "heap", amtype: "t"},
            row! {oid: BTREE_AM_OID, amname: "btree", amtype: "i"},
        ],
        "pg_language" | "pg_proc" => procedures::rows(name),
        "pg_attrdef" => all_defaults(catalog),
        "pg_attribute" => all_attributes(catalog),
        "pg_authid" | "pg_roles" => all_roles(catalog, name),
        "pg_user" => catalog.roles().filter(|role| role.login).map(|role| user_row(&role)).collect(),
        "pg_class" => all_classes(catalog),
        "pg_views" => catalog.views().map(|view| views::listed(catalog, view)).collect(),
        "pg_auth_members" => {
            let of_system =
                members_of_system().map(|(role, member)| Member { role, member, grantor: FIRST_OWNER, admin: false });
            catalog.members().copied().chain(of_system).map(|member| member_row(&member)).collect()
        }
        "pg_collation" => {
            [collation(DEFAULT_COLLATION_OID, "default", "d"), collation(C_COLLATION_OID, "C", "c")].into()
        }
        "pg_constraint" => {
            let checks = catalog.tables().flat_map(checks);
            let keys = foreign::keys(catalog).map(|key| key.constraint());
            let of_domains = catalog.domains().flat_map(|domain| domains::constraint_rows(domain));
            constraints(catalog).map(|(t, i)| constraint(&t, &i)).chain(checks).chain(keys).chain(of_domains).collect()
        }
        "pg_database" => vec![row! {
            oid: DATABASE_OID, datname: DATABASE, datdba: OWNER_OID, encoding: 6, datlocprovider: "c",
            datacl: acl_row(catalog, THE_DATABASE), datallowconn: true, datconnlimit: -1,
            dattablespace: DEFAULT_TABLESPACE_OID, datcollate: "C", datctype: "C.UTF-8",
        }],
        "pg_default_acl" => (1u32..).zip(catalog.defaults()).map(|(oid, of)| default_acl(catalog, oid, of)).collect(),
        "pg_depend" => depend::rows(catalog),
        "pg_description" => descriptions(catalog),
        "pg_extension" => vec![depend::extension()],
        "pg_index" => indexes(catalog).map(|(t, i)| index(&t, &i)).collect(),
        "pg_indexes" => indexes(catalog)
            .map(|(t, i)| {
                row! {
                    schemaname: schema_of_table(catalog, &t), tablename: &*t.name, indexname: &*i.name,
                    indexdef: shown_indexes::statement(catalog, &t, &i, false),
                }
            })
            .collect(),
        "pg_namespace" => {
            let of_sessions =
                catalog.spaces().into_iter().map(|space| namespace(catalog, space.0.0, &space.to_string()));
            schemas(catalog).map(|(oid, name)| namespace(catalog, oid, name)).chain(of_sessions).collect()
        }
        "pg_opclass" => opclasses::rows(),
        "pg_rewrite" => catalog.views().map(|view| depend::rule(view)).collect(),
        "pg_tables" => catalog
            .tables()
            .filter(|t| !crate::values::is_sequence(t))
            .map(|t| {
                row! {
                    schemaname: schema_of_table(catalog, t), tablename: &*t.name, tableowner: catalog.owner_name(t.oid),
                    hasindexes: !t.indexes.is_empty(),
                }
            })
            .collect(),
        "pg_tablespace" => {
            vec![row! {oid: DEFAULT_TABLESPACE_OID, spcname: "pg_default", spcowner: OWNER_OID}]
        }
        "pg_enum" => catalog.enum_types().flat_map(enum_rows).collect(),
        "pg_type" => types(catalog),
        _ => vec![],
    }
}

/// Of `pg_attribute`.
fn all_attributes(catalog: &Catalog) -> Vec<Row> {
    let of_views = catalog.views().flat_map(|view| with_acls(catalog, view.oid, views::attributes(view)));
    let of_types = catalog.composite_types().flat_map(composites::attributes);
    let of_tables = catalog.tables().flat_map(|t| with_acls(catalog, t.oid, attribute_rows(t)));
    of_tables.chain(of_views).chain(of_types).chain(own::attributes()).collect()
}

/// Rows of a relation's columns, which come first and in order, with what has been said of their privileges.
fn with_acls(catalog: &Catalog, object: ObjectId, mut rows: Vec<Row>) -> Vec<Row> {
    for (at, acl) in catalog.column_acls(object) {
        if let Some(row) = rows.get_mut(at) {
            row.push(("attacl", V::Texts(privileges::shown(catalog, acl))));
        }
    }
    rows
}

/// Of `pg_class`.
fn all_classes(catalog: &Catalog) -> Vec<Row> {
    let of_views = catalog.views().map(|view| views::class(catalog, view));
    let of_types = catalog.composite_types().map(|of| composites::class(catalog, of));
    let of_tables = catalog.tables().flat_map(|t| class(catalog, t));
    of_tables.chain(of_views).chain(of_types).chain(own::classes()).collect()
}

fn types(catalog: &Catalog) -> Vec<Row> {
    let of_user = catalog.own_types().filter_map(PgType::of_own).flatten();
    let owner = |ty: &PgType| {
        let of = catalog.type_of_oid(ty.oid).map(|of| of.item().unwrap_or(of).pg_oid());
        of.map_or(OWNER_OID, |oid| catalog.owner(ObjectId(oid)))
    };
    let of_user = of_user.map(|ty| type_row(&ty, space_of_type(catalog, ty.oid), owner(&ty)));
    let of_user = of_user.chain(catalog.domains().map(|domain| domains::type_row(domain, catalog)));
    TYPES.iter().map(|ty| type_row(ty, PG_CATALOG_OID, OWNER_OID)).chain(of_user).collect()
}

/// Of `information_schema`.
fn standard_rows(catalog: &Arc<Catalog>, name: &str) -> Vec<Row> {
    // As in PostgreSQL, it says nothing of what is temporary and another session's.
    let catalog = &Arc::new(catalog.without_others().into_owned());
    match name {
        "schemata" => {
            let row = |(oid, name)| {
                row! {catalog_name: DATABASE, schema_name: name, schema_owner: owner_of_schema(catalog, oid).1}
            };
            schemas(catalog).map(row).collect()
        }
        "tables" => catalog
            .tables()
            .filter(|t| !crate::values::is_sequence(t))
            .map(|t| {
                row! {
                    table_catalog: DATABASE, table_schema: schema_of_table(catalog, t), table_name: &*t.name,
                    table_type: if t.temporary.is_some() { "LOCAL TEMPORARY" } else { "BASE TABLE" },
                    commit_action: t.temporary.map_or(V::Null, |_| "PRESERVE".into()),
                    is_insertable_into: "YES", is_typed: "NO",
                }
            })
            .chain(catalog.views().map(|view| views::standard_table(catalog, view)))
            .collect(),
        "views" => catalog.views().map(|view| views::standard(catalog, view)).collect(),
        "columns" => {
            let of_views = catalog.views().flat_map(|view| views::standard_columns_of(catalog, view));
            let tables = catalog.tables().filter(|table| !crate::values::is_sequence(table));
            tables.flat_map(|table| standard_columns(catalog, table)).chain(of_views).collect()
        }
        "table_constraints" => table_constraints(catalog),
        "key_column_usage" => {
            let keys = foreign::keys(catalog).flat_map(|key| key.columns());
            constraints(catalog).flat_map(|(t, i)| key_columns(catalog, &t, &i)).chain(keys).collect()
        }
        "constraint_column_usage" => columns_used(catalog),
        "domains" => catalog.domains().map(|domain| domains::standard(catalog, domain)).collect(),
        "domain_constraints" => catalog.domains().flat_map(|d| domains::standard_constraints(catalog, d)).collect(),
        "referential_constraints" => foreign::keys(catalog).map(|key| key.referential()).collect(),
        "information_schema_catalog_name" => vec![row! {catalog_name: DATABASE}],
        "character_sets" => vec![row! {
            character_set_name: "UTF8", character_repertoire: "UCS", form_of_use: "UTF8",
            default_collate_catalog: DATABASE, default_collate_schema: "pg_catalog", default_collate_name: "C",
        }],
        "collations" | "collation_character_set_applicability" => {
            let one = |collation: &str| {
                let mut row = row! {
                    collation_catalog: DATABASE, collation_schema: "pg_catalog", collation_name: collation,
                };
                row.push(match name {
                    "collations" => ("pad_attribute", "NO PAD".into()),
                    _ => ("character_set_name", "UTF8".into()),
                });
                row
            };
            ["default", "C"].map(one).into()
        }
        "attributes" => catalog.composite_types().flat_map(|of| composites::standard_attributes(catalog, of)).collect(),
        _ => vec![],
    }
}

/// Of `information_schema`: keys, conditions, foreign keys, and columns that are NOT NULL.
fn table_constraints(catalog: &Catalog) -> Vec<Row> {
    let row = |table: &Table, name: &str, kind: &'static str, (deferrable, deferred): (bool, bool)| {
        row! {
            constraint_catalog: DATABASE, constraint_schema: schema_of_table(catalog, table), constraint_name: name,
            table_catalog: DATABASE, table_schema: schema_of_table(catalog, table), table_name: &*table.name,
            constraint_type: kind, is_deferrable: foreign::yes(deferrable), initially_deferred: foreign::yes(deferred),
            enforced: "YES",
        }
    };
    let mut rows = vec![];
    for (table, index) in constraints(catalog) {
        let kind = if index.primary { "PRIMARY KEY" } else { "UNIQUE" };
        let mut made = row(&table, &index.name, kind, (!index.is_immediate(), index.is_deferred()));
        if !index.primary {
            made.push(("nulls_distinct", foreign::yes(!index.is_nulls_not_distinct()).into()));
        }
        rows.push(made);
    }
    for table in catalog.tables().filter(|table| !crate::values::is_sequence(table)) {
        rows.extend(table.checks.iter().map(|check| row(table, &check.name, "CHECK", (false, false))));
        rows.extend(usage::not_nulls(table).iter().map(|(name, _)| row(table, name, "CHECK", (false, false))));
    }
    rows.extend(foreign::keys(catalog).map(|key| key.standard()));
    rows
}

fn keyword_row(keyword: terrace_grammar::Listed) -> Row {
    let category = match keyword.category {
        'U' => "unreserved",
        'C' => "unreserved (cannot be function or type name)",
        'T' => "reserved (can be function or type name)",
        _ => "reserved",
    };
    row! {
        word: keyword.word, catcode: keyword.category.to_string(), barelabel: keyword.bare_label, catdesc: category,
        baredesc: if keyword.bare_label { "can be bare label" } else { "requires AS" },
    }
}

fn all_roles(catalog: &Catalog, relation: &str) -> Vec<Row> {
    catalog.roles().chain(Role::of_system()).map(|role| role_row(relation, &role)).collect()
}

fn role_row(relation: &str, role: &Role) -> Row {
    let first = role.oid == OWNER_OID;
    let mut row = row! {
        oid: role.oid, rolname: &*role.name, rolsuper: role.superuser, rolinherit: role.inherit,
        rolcreaterole: role.createrole || first, rolcreatedb: role.createdb || first, rolcanlogin: role.login,
        rolreplication: role.replication || first, rolbypassrls: role.bypassrls || first, rolconnlimit: -1,
    };
    // Nobody's to read. `pg_roles` does not say whether there is one.
    if role.verifier.is_some() || relation == "pg_roles" {
        row.extend(row! {rolpassword: "********"});
    }
    row
}

fn member_row(member: &Member) -> Row {
    row! {roleid: member.role, member: member.member, grantor: member.grantor, admin_option: member.admin}
}

/// The acl of an object, if something has been said of it.
pub(super) fn acl_row(catalog: &Catalog, object: ObjectId) -> V {
    privileges::shown_acl(catalog, object).map_or(V::Null, V::Texts)
}

/// Of `pg_default_acl`.
fn default_acl(catalog: &Catalog, oid: u32, (of, acl): (&DefaultOf, &[Grant])) -> Row {
    let kind = match of.kind {
        Securable::Sequence => "S",
        Securable::Schema => "n",
        Securable::Table | Securable::Database => "r",
    };
    row! {
        oid: oid, defaclrole: of.role, defaclnamespace: of.schema, defaclobjtype: kind,
        defaclacl: V::Texts(privileges::shown(catalog, acl)),
    }
}

/// A schema. The rights to the schema public are shown as PostgreSQL shows those of a new database.
fn namespace(catalog: &Catalog, oid: u32, name: &str) -> Row {
    let rights = match oid {
        PUBLIC_OID => V::Texts(privileges::acl_of_public(catalog)),
        _ => acl_row(catalog, ObjectId(oid)),
    };
    row! {oid: oid, nspname: name, nspowner: owner_of_schema(catalog, oid).0, nspacl: rights}
}

fn owner_of_schema(catalog: &Catalog, oid: u32) -> (u32, String) {
    (catalog.owner(ObjectId(oid)), catalog.owner_name(ObjectId(oid)))
}

/// The OID of a type's schema.
fn space_of_type(catalog: &Catalog, oid: u32) -> u32 {
    catalog.space_of_type(oid).map_or(PUBLIC_OID, |space| space.0.0)
}

/// The schema of a type, as it is called.
pub(super) fn schema_of_type(catalog: &Catalog, oid: u32) -> String {
    catalog.space_of_type(oid).map_or_else(|| "pg_catalog".to_owned(), |space| catalog.space_name(space))
}

fn user_row(role: &Role) -> Row {
    row! {
        usename: &*role.name, usesysid: role.oid, usecreatedb: role.createdb, usesuper: role.superuser,
        usebypassrls: role.bypassrls, passwd: "********",
    }
}

fn collation(oid: u32, name: &'static str, provider: &'static str) -> Row {
    row! {
        oid: oid, collname: name, collnamespace: PG_CATALOG_OID, collowner: OWNER_OID, collprovider: provider,
        collisdeterministic: true, collencoding: -1, collcollate: "C", collctype: "C",
    }
}

/// The schemas of the system, and the user's.
fn schemas(catalog: &Catalog) -> impl Iterator<Item = (u32, &str)> {
    let of_system =
        [(PG_CATALOG_OID, "pg_catalog"), (INFORMATION_SCHEMA_OID, "information_schema"), (TERRACE_OID, "terrace")];
    of_system.into_iter().chain(catalog.schemas().map(|(name, space)| (space.0.0, name)))
}

/// What is fixed when a database is made.
const FIXED: [(&str, &str); 1] = [("max_index_keys", "32")];

/// `pg_settings`.
pub(super) fn settings(settings: &crate::settings::Settings) -> Vec<Row> {
    let fixed = FIXED.iter().map(|(name, setting)| {
        row! {
            name: *name, setting: *setting, category: "Preset Options", context: "internal", vartype: "string",
            source: "default", boot_val: *setting, reset_val: *setting,
        }
    });
    let others = settings.rows().map(|(name, now, reset, boot)| {
        let source = if now == boot { "default" } else { "session" };
        let described = |value: &str| crate::settings::described(name, value);
        let (kind, unit, setting) = described(now).unwrap_or(("string", None, now.to_owned()));
        let number = |value: &str| described(value).map_or(value.to_owned(), |(_, _, number)| number);
        row! {
            name: name, setting: setting, unit: unit, category: "Client Connection Defaults", context: "user",
            vartype: kind, source: source, boot_val: number(boot), reset_val: number(reset),
        }
    });
    others.chain(fixed).collect()
}

fn indexes(catalog: &Catalog) -> impl Iterator<Item = (Arc<Table>, Arc<Index>)> {
    catalog.tables().flat_map(|t| t.indexes.iter().map(|i| (t.clone(), i.clone())))
}

pub(super) fn constraints(catalog: &Catalog) -> impl Iterator<Item = (Arc<Table>, Arc<Index>)> {
    indexes(catalog).filter(|(_, i)| i.is_constraint())
}

/// Of `pg_class`.
fn persistence(table: &Table) -> &'static str {
    if table.temporary.is_some() { "t" } else { "p" }
}

fn class(catalog: &Catalog, table: &Table) -> Vec<Row> {
    let owner = catalog.owner(table.oid);
    let rows = V::F4(table.statistics.map_or(-1.0, |s| s.rows as f32));
    let pages = table.statistics.map_or(0, |s| i32::try_from(s.pages).unwrap_or(i32::MAX));
    let mut rows = vec![row! {
        oid: table.oid.0, relname: &*table.name, relnamespace: table.space.0.0, relowner: owner,
        relacl: acl_row(catalog, table.oid), relam: HEAP_AM_OID,
        relfilenode: table.oid.0, reltuples: rows, relpages: pages, relhasindex: !table.indexes.is_empty(),
        relpersistence: persistence(table),
        relkind: if crate::values::is_sequence(table) { "S" } else { "r" }, relnatts: columns(table).len() as i16,
        relchecks: table.checks.len() as i16, relhastriggers: table.has_foreign_keys(), relispopulated: true,
        relreplident: "d",
    }];
    rows.extend(table.indexes.iter().map(|i| {
        row! {
            oid: i.oid.0, relname: &*i.name, relnamespace: table.space.0.0, relowner: owner,
            relam: BTREE_AM_OID,
            relfilenode: i.oid.0, reltuples: V::F4(-1.0), relpersistence: persistence(table), relkind: "i",
            relnatts: index_columns(i).count() as i16, relispopulated: true, relreplident: "n",
        }
    }));
    rows
}

fn typmod_of(column: &ColumnDef) -> i32 {
    match (&column.domain, domains::digits_typmod(column.data_type, column.digits)) {
        (Some(_), _) => -1,
        (None, Some(digits)) => digits,
        (None, None) => typmod(column.data_type),
    }
}

fn attribute_row(relation: u32, number: i16, column: &terrace_engine::ColumnDef, of_table: bool) -> Row {
    let ty = PgType::of(column.data_type);
    let variable = ty.len < 0;
    let identity = Identity::of(column).filter(|_| of_table);
    let align = match ty.len {
        1 => "c",
        2 => "s",
        8 => "d",
        _ => "i",
    };
    row! {
        attrelid: relation, attname: &*column.name,
        atttypid: column.domain.as_ref().map_or(ty.oid, |domain| domain.oid),
        attstattarget: -1, attlen: ty.len, attnum: number,
        attndims: i32::from(column.data_type.item().is_some()), attcacheoff: -1,
        atttypmod: typmod_of(column), attbyval: ty.by_value, attalign: align,
        attstorage: if variable { "x" } else { "p" }, attcompression: "", attnotnull: of_table && column.not_null,
        atthasdef: of_table && (column.generated.is_some() || shown_default(column).is_some()),
        attidentity: identity.map_or("", Identity::letter),
        attgenerated: if of_table && column.generated.is_some() { "s" } else { "" },
        attisdropped: column.dropped, attislocal: true, attcollation: ty.collation,
    }
}

/// Those that there are to users: a sequence keeps more in its row than it shows.
fn columns(table: &Table) -> Cow<'_, [ColumnDef]> {
    if !crate::values::is_sequence(table) {
        return Cow::Borrowed(&table.columns);
    }
    let shown = [("last_value", DataType::Int8), ("log_cnt", DataType::Int8), ("is_called", DataType::Bool)];
    shown.map(|(name, of)| ColumnDef::new(name, of).not_null()).to_vec().into()
}

pub(super) fn attribute_rows(table: &Table) -> Vec<Row> {
    let own = |(number, column): (i16, &ColumnDef)| match column.computed() {
        // Nobody sees it.
        Some(_) => {
            let name = format!("........pg.dropped.{number}........");
            attribute_row(table.oid.0, number, &ColumnDef { name, default_sql: None, ..column.clone() }, true)
        }
        None => attribute_row(table.oid.0, number, column, true),
    };
    let mut rows: Vec<Row> = (1i16..).zip(&*columns(table)).map(own).collect();
    for index in &table.indexes {
        let mut names: Vec<String> = vec![];
        for (number, at) in (1i16..).zip(index_columns(index)) {
            let column = &table.columns[at];
            let name =
                column.computed().and_then(Stored::read).map_or(column.name.clone(), |s| key_name(s.expr(), &names));
            names.push(name.clone());
            let shown = ColumnDef { name, dropped: false, default_sql: None, ..column.clone() };
            rows.push(attribute_row(index.oid.0, number, &shown, false));
        }
    }
    rows
}

/// The columns of an index as it is shown: its key's, and those of INCLUDE.
fn index_columns(index: &Index) -> impl Iterator<Item = usize> {
    index.keys().iter().chain(index.included()).copied()
}

/// What is said of a schema: of public, what PostgreSQL says of it, until COMMENT says something else, or (an empty
/// text) nothing.
pub(crate) fn schema_comment(catalog: &Catalog, oid: u32) -> Option<String> {
    let said = catalog.comment((ObjectId(oid), 0));
    let public = (oid == PUBLIC_OID).then_some("standard public schema");
    said.or(public).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// What COMMENT has said of what is there.
fn descriptions(catalog: &Catalog) -> Vec<Row> {
    let tables = catalog.tables().flat_map(|t| t.indexes.iter().map(|index| index.oid).chain([t.oid]));
    let classes = catalog.composite_types().map(|of| ObjectId(of.def().class));
    let there: BTreeSet<_> = tables.chain(catalog.views().map(|view| view.oid)).chain(classes).collect();
    let comments = catalog.comments().filter(|((oid, at), _)| there.contains(oid) && *at < OF_CONSTRAINT);
    let row = |((oid, position), text): ((ObjectId, u32), &str)| {
        row! {objoid: oid.0, classoid: PG_CLASS_OID, objsubid: position as i32, description: text}
    };
    let of_constraints = constraint_comments(catalog).into_iter().map(|(oid, text)| {
        row! {objoid: oid, classoid: PG_CONSTRAINT_OID, objsubid: 0, description: text}
    });
    let of_types = catalog.comments().filter(|((oid, _), _)| catalog.space_of_type(oid.0).is_some());
    let of_types = of_types.map(|((oid, _), text)| {
        row! {objoid: oid.0, classoid: PG_TYPE_OID, objsubid: 0, description: text}
    });
    let of_schemas = schemas(catalog).filter_map(|(oid, _)| {
        let text = schema_comment(catalog, oid)?;
        Some(row! {objoid: oid, classoid: PG_NAMESPACE_OID, objsubid: 0, description: text})
    });
    comments.map(row).chain(of_types).chain(of_schemas).chain(of_constraints).collect()
}

/// What COMMENT has said of constraints, by their OIDs.
pub(crate) fn constraint_comments(catalog: &Catalog) -> Vec<(u32, &str)> {
    let own = |oid: ObjectId| catalog.comment((oid, OF_CONSTRAINT)).map(|text| (oid.0, text));
    let mut all = vec![];
    for table in catalog.tables() {
        all.extend(table.indexes.iter().filter(|index| index.is_constraint()).filter_map(|index| own(index.oid)));
        all.extend(table.foreign_keys.iter().filter_map(|key| own(key.oid)));
        for (_, name, text) in catalog.check_comments(table.oid) {
            let at = table.checks.iter().position(|check| check.name == name);
            all.extend(at.map(|at| (check_oid(table, at), text)));
        }
    }
    let of_domains = catalog.domains().flat_map(|domain| &domain.checks);
    all.extend(of_domains.filter_map(|check| own(ObjectId(check.oid))));
    all
}

/// The OID of a column's default.
pub(super) fn default_oid(table: u32, number: i16) -> u32 {
    table.wrapping_mul(2048).wrapping_add(number as u32)
}

/// Of `pg_attrdef`.
fn all_defaults(catalog: &Catalog) -> Vec<Row> {
    let of_views = catalog.views().flat_map(|view| attrdef(&views::shape(view)));
    catalog.tables().flat_map(|table| attrdef(table)).chain(of_views).collect()
}

fn attrdef(table: &Table) -> Vec<Row> {
    let shown = |column: &ColumnDef| shown_generated(table, column).or_else(|| shown_default(column));
    let with_default = attributes(table).filter_map(|(n, c)| Some((n, shown(c)?)));
    with_default
        .map(|(n, sql)| {
            row! {oid: default_oid(table.oid.0, n), adrelid: table.oid.0, adnum: n, adbin: sql}
        })
        .collect()
}

fn numbers(columns: &[usize]) -> V {
    V::Shorts(columns.iter().map(|c| *c as i16 + 1).collect())
}

fn index(table: &Table, index: &Index) -> Row {
    let number = |at: usize| if table.columns[at].computed().is_some() { 0 } else { at as i16 + 1 };
    let all: Vec<i16> = index_columns(index).map(number).collect();
    let option = |at: usize| {
        let option = index.key_option(at);
        i16::from(option.descending) + 2 * i16::from(option.nulls_first)
    };
    let options = (0..index.keys().len()).map(option).collect();
    let keys = || index_columns(index).take(index.keys().len()).map(|at| table.columns[at].data_type);
    row! {
        indexrelid: index.oid.0, indrelid: table.oid.0, indnatts: all.len() as i16,
        indnkeyatts: index.keys().len() as i16, indisunique: index.unique,
        indisprimary: index.primary, indnullsnotdistinct: index.is_nulls_not_distinct(),
        indimmediate: index.is_immediate() || !index.unique, indisvalid: true, indisready: true, indislive: true,
        indkey: V::Shorts(all), indoption: V::Shorts(options), indexprs: shown_indexes::expressions(table, index),
        indpred: shown_indexes::condition(table, index, false),
        indclass: V::Oids(keys().map(opclasses::of_type).collect()),
        indcollation: V::Oids(keys().map(|key| PgType::of(key).collation).collect()),
    }
}

fn constraint(table: &Table, index: &Index) -> Row {
    row! {
        oid: index.oid.0, conname: &*index.name, connamespace: table.space.0.0,
        contype: if index.primary { "p" } else { "u" }, condeferrable: !index.is_immediate(),
        condeferred: index.is_deferred(),
        convalidated: true, conrelid: table.oid.0, conindid: index.oid.0, confupdtype: "", confdeltype: "",
        confmatchtype: "", conislocal: true, connoinherit: true, conkey: numbers(&index.columns),
        conbin: V::Null,
    }
}

fn checks(table: &Arc<Table>) -> Vec<Row> {
    let one = |(at, check): (usize, &terrace_engine::Check)| {
        let named = crate::parse::stored::columns_named(check);
        let columns: Vec<usize> =
            table.columns.iter().enumerate().filter(|(_, c)| named.contains(&c.name)).map(|(at, _)| at).collect();
        row! {
            oid: check_oid(table, at), conname: &*check.name, connamespace: table.space.0.0, contype: "c",
            convalidated: true, conrelid: table.oid.0, confupdtype: "", confdeltype: "", confmatchtype: "",
            conislocal: true, conkey: numbers(&columns),
            conbin: shown::condition(&check.sql, &table.columns, false).unwrap_or_else(|| check.sql.clone()),
        }
    };
    table.checks.iter().enumerate().map(one).collect()
}

fn key_columns(catalog: &Catalog, table: &Table, index: &Index) -> Vec<Row> {
    let one = |(n, column): (i32, &usize)| {
        row! {
            constraint_catalog: DATABASE, constraint_schema: schema_of_table(catalog, table),
            constraint_name: &*index.name,
            table_catalog: DATABASE, table_schema: schema_of_table(catalog, table), table_name: &*table.name,
            column_name: &*table.columns[*column].name, ordinal_position: n, position_in_unique_constraint: V::Null,
        }
    };
    (1i32..).zip(&index.columns).map(one).collect()
}

fn columns_used(catalog: &Catalog) -> Vec<Row> {
    let of_index = |(t, i): (Arc<Table>, Arc<Index>)| -> Vec<Row> {
        i.columns.iter().map(|at| foreign::used(catalog, &t, *at, (&t, &i.name))).collect()
    };
    let of_check = |t: &Arc<Table>, check: &terrace_engine::Check| -> Vec<Row> {
        let named = crate::parse::stored::columns_named(check);
        let columns = t.columns.iter().enumerate().filter(|(_, c)| named.contains(&c.name));
        columns.map(|(at, _)| foreign::used(catalog, t, at, (t, &check.name))).collect()
    };
    let checks = catalog.tables().flat_map(|t| t.checks.iter().flat_map(move |check| of_check(t, check)));
    let keys = foreign::keys(catalog).flat_map(|key| key.used());
    constraints(catalog).flat_map(of_index).chain(checks).chain(keys).collect()
}

/// Of `pg_enum`.
fn enum_rows(of: EnumType) -> Vec<Row> {
    let row = |label: &Label| {
        let order = label.position as f64 / 2f64.powi(32);
        row! {
            oid: label.oid, enumtypid: of.def().oid, enumsortorder: V::F4(order as f32), enumlabel: label.name.as_str(),
        }
    };
    of.def().labels().iter().map(row).collect()
}

fn type_row(t: &PgType, schema: u32, owner: u32) -> Row {
    row! {
        oid: t.oid, typname: t.name, typnamespace: schema, typowner: owner, typlen: t.len,
        typbyval: t.by_value,
        typtype: match t.category {
            "E" => "e",
            "C" => "c",
            "P" => "p",
            _ if t.name == "unknown" => "p",
            _ => "b",
        }, typcategory: t.category, typispreferred: false,
        typisdefined: true, typdelim: ",", typelem: t.element, typarray: t.array, typrelid: t.relation,
        typinput: inputs::of_type(t),
        typalign: if t.len == 8 { "d" } else { "i" },
        typstorage: if t.len < 0 && !matches!(t.oid, 22 | 30) { "x" } else { "p" },
        typtypmod: -1, typcollation: t.collation,
    }
}

/// The expression of a generated column, as PostgreSQL shows it, or else as it was written.
fn shown_generated(table: &Table, column: &ColumnDef) -> Option<String> {
    let sql = column.generated.as_ref()?;
    Some(shown::value(sql, &table.columns, false).map_or_else(|| sql.clone(), |(shown, _)| shown))
}

/// A column's default, as PostgreSQL shows it, or else as it was written.
fn shown_default(column: &ColumnDef) -> Option<String> {
    if Identity::of(column).is_some() {
        return None;
    }
    let written = column.default_sql.as_ref()?;
    Some(match sequence_of(column) {
        Some(RelationName { among, name }) => {
            let schema = match among {
                Among::In(space) if space != Space::PUBLIC => format!("{}.", numbered(space)),
                _ => String::new(),
            };
            format!("nextval('{schema}{}'::regclass)", quoted(&name).replace('\'', "''"))
        }
        None => return shown::default(written, column).unwrap_or_else(|| Some(written.clone())),
    })
}

pub(super) fn standard_columns(catalog: &Arc<Catalog>, table: &Table) -> Vec<Row> {
    let one = |(number, column): (i16, &ColumnDef)| {
        let default = shown_default(column).map_or(V::Null, |text| shown_text(&text, catalog).into());
        let generated = shown_generated(table, column).map_or(V::Null, |text| shown_text(&text, catalog).into());
        let identity = Identity::of(column);
        let mut row = row! {
            table_catalog: DATABASE, table_schema: schema_of_table(catalog, table), table_name: &*table.name,
            column_name: &*column.name,
            ordinal_position: i32::from(number), column_default: default,
            is_nullable: if column.not_null { "NO" } else { "YES" },
            domain_catalog: column.domain.as_ref().map_or(V::Null, |_| DATABASE.into()),
            domain_schema: column.domain.as_ref().map_or(V::Null, |domain| catalog.space_name(domain.space).into()),
            domain_name: column.domain.as_ref().map_or(V::Null, |domain| domain.name.as_str().into()),
            udt_catalog: DATABASE,
            dtd_identifier: number.to_string(), is_self_referencing: "NO",
            is_identity: if identity.is_some() { "YES" } else { "NO" },
            identity_generation: identity.map_or(V::Null, |identity| identity.generation().into()),
            identity_cycle: "NO",
            is_generated: if column.generated.is_some() { "ALWAYS" } else { "NEVER" },
            generation_expression: generated, is_updatable: "YES",
        };
        let parent = column.domain.as_ref().and_then(|domain| domain.parent.as_deref());
        row.extend(domains::type_of(catalog, parent, (column.data_type, column.digits)));
        row
    };
    attributes(table).map(one).collect()
}
