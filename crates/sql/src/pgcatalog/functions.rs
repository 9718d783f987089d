//! Functions of `pg_catalog` that psql and drivers call, as scalar UDFs over the session's catalogue.
mod classes;
mod comments;
pub(crate) mod indexes;
pub(crate) mod privileges;
mod quoting;
mod random;
mod rules;
mod vectors;

use super::relations::procedures::{self, Procedure};
use super::relations::{attributes, check_oid, domains, find_index, foreign, live, own, views};
use super::system::*;
use super::{SessionInfo, System, schema_of_table};
use crate::error::tunnel;
use crate::functions::builtin;
use crate::parse::qualified;
use crate::settings::SERVER_VERSION;
use crate::values::{enum_of, void_field};
use classes::class_name;
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, Int32Array, Int64Array, ListArray, StringArray};
use datafusion::arrow::array::{Int32Builder, ListBuilder, StringBuilder};
use datafusion::arrow::array::{TimestampMicrosecondArray, UInt32Array, cast::AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use md5::{Digest, Md5};
use privileges::{About, has_privilege};
pub(crate) use quoting::FORMAT_OF_ITEMS;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use terrace_engine::{Catalog, EngineError, Index, Table};
use terrace_storage::{ObjectId, store::FIRST_OBJECT};

/// What a function is given: its arguments as arrays of one length.
struct Call<'a> {
    catalog: &'a Arc<Catalog>,
    info: &'a SessionInfo,
    arguments: Vec<ArrayRef>,
    rows: usize,
}

type Body = fn(&Call<'_>) -> Result<ArrayRef>;

/// A function that DataFusion does not know, by its name without schema, e.g. `format_type`.
pub fn function(name: &str, catalog: &Arc<Catalog>, info: &SessionInfo) -> Option<Arc<ScalarUDF>> {
    let (name, returns, body) = table().into_iter().find(|(n, _, _)| *n == name)?;
    // What changes something is called once for each row, and not while planning.
    let volatility = match name {
        "set_config" | "pg_reload_conf" | "clock_timestamp" | "gen_random_uuid" | "random" | "setseed" => {
            Volatility::Volatile
        }
        "pg_isolation_test_session_is_blocked" => Volatility::Volatile,
        "pg_cancel_backend" | "pg_terminate_backend" | "pg_notify" | "listening_channels" => Volatility::Volatile,
        "pg_export_snapshot" => Volatility::Volatile,
        "md5" | "quote_ident" | "to_oid" => Volatility::Immutable,
        _ => Volatility::Stable,
    };
    let arguments = match name {
        "clock_timestamp" | "gen_random_uuid" | "pg_export_snapshot" | "random" => vec![TypeSignature::Nullary],
        "md5"
        | "pg_cancel_backend"
        | "pg_terminate_backend"
        | "quote_ident"
        | "quote_literal"
        | "quote_nullable"
        | "to_regclass"
        | "to_regtype"
        | "to_regnamespace"
        | "to_regrole"
        | "oidvectortypes"
        | "row_security_active"
        | "setseed" => {
            vec![TypeSignature::Any(1)]
        }
        "pg_notify" | "pg_isolation_test_session_is_blocked" => vec![TypeSignature::Any(2)],
        "format" => vec![TypeSignature::VariadicAny],
        "current_database"
        | "current_schema"
        | "getdatabaseencoding"
        | "pg_backend_pid"
        | "pg_client_encoding"
        | "pg_is_in_recovery"
        | "pg_my_temp_schema"
        | "pg_postmaster_start_time"
        | "pg_reload_conf"
        | "txid_current_if_assigned"
        | "version" => vec![TypeSignature::Nullary],
        _ => vec![TypeSignature::Nullary, TypeSignature::VariadicAny],
    };
    let signature = Signature::one_of(arguments, volatility);
    let function = Function { name, returns, body, signature, catalog: catalog.clone(), info: info.clone() };
    Some(Arc::new(ScalarUDF::new_from_impl(function)))
}

/// Those that show an enum by its label.
const TAKE_ENUMS: [&str; 5] = ["format", "quote_literal", "quote_nullable", "pg_typeof", "pg_column_size"];

type Entry = (&'static str, DataType, Body);

fn table() -> Vec<Entry> {
    [about_sessions(), about_objects(), about_sizes(), about_values(), quoting::table(), vectors::entries()].concat()
}

/// What there is of the session whose number is the first argument.
fn pids(c: &Call<'_>, row: usize, of: fn(&System, i32) -> Vec<i32>) -> Result<Vec<i32>> {
    let pid = c.int(0, row)?.and_then(|pid| i32::try_from(pid).ok());
    Ok(pid.zip(c.info.system.as_ref()).map_or(vec![], |(pid, s)| of(s, pid)))
}

fn pid_lists(c: &Call<'_>, of: fn(&System, i32) -> Vec<i32>) -> Result<ArrayRef> {
    let mut lists = ListBuilder::new(Int32Builder::new());
    for row in 0..c.rows {
        pids(c, row, of)?.into_iter().for_each(|pid| lists.values().append_value(pid));
        lists.append(true);
    }
    Ok(Arc::new(lists.finish()))
}

/// What PostgreSQL's tester of isolation asks: whether a session waits for one of others. It writes them as an array,
/// `{1,2}`.
fn is_blocked(c: &Call<'_>) -> Result<ArrayRef> {
    let blocked = |row: usize| -> Result<Option<bool>> {
        let mut blocking = pids(c, row, live::blocking_pids)?;
        blocking.extend(pids(c, row, live::safe_snapshot_blocking_pids)?);
        let others = c.text(1, row)?.unwrap_or_default();
        let mut others = others.trim_matches(['{', '}']).split(',').filter_map(|pid| pid.trim().parse::<i32>().ok());
        Ok(Some(others.any(|pid| blocking.contains(&pid))))
    };
    Ok(Arc::new((0..c.rows).map(blocked).collect::<Result<BooleanArray>>()?))
}

/// Of the session and of the server.
fn about_sessions() -> Vec<Entry> {
    use DataType::{Boolean, Int32, Int64, Utf8};
    vec![
        ("current_database", Utf8, |c| c.texts(|c, _| Ok(Some(c.info.database.clone())))),
        ("current_schema", Utf8, |c| {
            let current = classes::current_schema(c.catalog);
            c.texts(|_, _| Ok(current.clone()))
        }),
        ("current_schemas", list_of(Utf8), |c| Ok(classes::current_schemas(c))),
        ("current_setting", Utf8, |c| c.texts(current_setting)),
        ("current_user", Utf8, |c| c.texts(|c, _| Ok(Some(c.info.acting())))),
        ("session_user", Utf8, |c| c.texts(|c, _| Ok(Some(c.info.session_user())))),
        ("getdatabaseencoding", Utf8, |c| c.texts(|_, _| Ok(Some("UTF8".to_owned())))),
        ("has_any_column_privilege", Boolean, |c| has_privilege(c, About::AnyColumn)),
        ("has_column_privilege", Boolean, |c| has_privilege(c, About::Column)),
        ("has_database_privilege", Boolean, |c| has_privilege(c, About::Database)),
        ("has_schema_privilege", Boolean, |c| has_privilege(c, About::Schema)),
        ("has_sequence_privilege", Boolean, |c| has_privilege(c, About::Sequence)),
        ("has_table_privilege", Boolean, |c| has_privilege(c, About::Table)),
        ("pg_has_role", Boolean, privileges::has_role),
        ("pg_backend_pid", Int32, |c| Ok(Arc::new(Int32Array::from(vec![c.info.backend_pid; c.rows])))),
        ("pg_blocking_pids", list_of(Int32), |c| pid_lists(c, live::blocking_pids)),
        ("pg_safe_snapshot_blocking_pids", list_of(Int32), |c| pid_lists(c, live::safe_snapshot_blocking_pids)),
        ("pg_isolation_test_session_is_blocked", Boolean, is_blocked),
        ("pg_cancel_backend", Boolean, |c| signal(c, true)),
        ("pg_terminate_backend", Boolean, |c| signal(c, false)),
        ("listening_channels", list_of(Utf8), |c| {
            let channels = c.info.system.as_ref().map_or(vec![], |system| system.voice.channels());
            let mut lists = ListBuilder::new(StringBuilder::new());
            for _ in 0..c.rows {
                channels.iter().for_each(|channel| lists.values().append_value(channel));
                lists.append(true);
            }
            Ok(Arc::new(lists.finish()))
        }),
        ("pg_notify", Utf8, |c| c.texts(notify)),
        ("pg_export_snapshot", Utf8, |c| c.texts(|c, _| export_snapshot(c))),
        ("pg_client_encoding", Utf8, |c| c.texts(|_, _| Ok(Some("UTF8".to_owned())))),
        ("pg_my_temp_schema", DataType::UInt32, |c| Ok(classes::own_schema(c))),
        ("pg_is_other_temp_schema", Boolean, classes::is_of_others),
        ("row_security_active", Boolean, |c| Ok(Arc::new(BooleanArray::from(vec![false; c.rows])))),
        ("pg_postmaster_start_time", crate::values::arrow_type(terrace_engine::DataType::Timestamptz), |c| {
            let started = c.info.system.as_ref().map(|s| s.observed.started);
            let times = TimestampMicrosecondArray::from(vec![started; c.rows]);
            Ok(Arc::new(times.with_timezone(crate::values::UTC)))
        }),
        ("pg_reload_conf", Boolean, |c| {
            if !c.info.actor(c.catalog).is_superuser() {
                let error = terrace_engine::EngineError::new("42501", "permission denied for function pg_reload_conf");
                return Err(crate::error::tunnel(error));
            }
            let server = c.info.system.as_ref().and_then(|system| system.server.get());
            server.inspect(|server| server.reload());
            Ok(Arc::new(BooleanArray::from(vec![server.is_some(); c.rows])))
        }),
        ("pg_stat_statements_reset", Boolean, |c| {
            if let Some(system) = &c.info.system {
                system.observed.reset_statements();
            }
            Ok(c.all_true())
        }),
        ("pg_is_in_recovery", Boolean, |c| Ok(Arc::new(BooleanArray::from(vec![false; c.rows])))),
        ("set_config", Utf8, |c| c.texts(set_config)),
        ("txid_current_if_assigned", Int64, |c| Ok(Arc::new(Int64Array::new_null(c.rows)))),
        ("version", Utf8, |c| c.texts(|_, _| Ok(Some(format!("PostgreSQL {SERVER_VERSION}"))))),
    ]
}

/// What can be done with the rows of a relation, or with those of one of its columns: PostgreSQL's bits of UPDATE (4),
/// INSERT (8) and DELETE (16).
fn events(catalog: &Catalog, oid: u32, column: Option<usize>) -> i32 {
    match views::by_oid(catalog, oid) {
        Some(view) => crate::through::events(catalog, view, column.map(|at| [at].into())),
        None => {
            let table = catalog.tables().find(|table| table.oid.0 == oid);
            if table.is_some_and(|table| !crate::values::is_sequence(table)) { 28 } else { 0 }
        }
    }
}

/// Of what the catalogue holds.
fn about_objects() -> Vec<Entry> {
    use DataType::{Boolean, Int32, UInt32, Utf8};
    vec![
        ("acldefault", Utf8, |c| c.texts(default_privileges)),
        ("col_description", Utf8, |c| c.texts(comments::of_column)),
        ("obj_description", Utf8, |c| c.texts(comments::of_object)),
        ("pg_get_constraintdef", Utf8, |c| {
            c.texts(|c, i| {
                let key = c.index(0, i)?.filter(|(_, i)| i.is_constraint());
                key.map_or_else(|| check_definition(c, i), |(t, i)| Ok(Some(constraint_definition(&t, &i))))
            })
        }),
        ("pg_relation_is_updatable", Int32, |c| {
            let events = |row| Ok(c.oid(0, row)?.map(|oid| events(c.catalog, oid, None)));
            Ok(Arc::new((0..c.rows).map(events).collect::<Result<Int32Array>>()?))
        }),
        ("pg_column_is_updatable", Boolean, |c| {
            let takes = |row| {
                let (Some(oid), Some(column)) = (c.oid(0, row)?, c.int(1, row)?) else { return Ok(None) };
                let at = usize::try_from(column - 1).ok();
                Ok(Some(at.is_some_and(|at| events(c.catalog, oid, Some(at)) & 20 == 20)))
            };
            Ok(Arc::new((0..c.rows).map(takes).collect::<Result<BooleanArray>>()?))
        }),
        // A stored expression is kept as its SQL text.
        ("pg_get_expr", Utf8, |c| c.texts(get_expr)),
        ("pg_get_function_arguments", Utf8, |c| c.of_procedures(Procedure::arguments)),
        ("pg_get_function_sqlbody", Utf8, |c| c.texts(|_, _| Ok(None))),
        ("pg_get_function_result", Utf8, |c| c.of_procedures(Procedure::result)),
        ("pg_get_indexdef", Utf8, |c| c.texts(indexes::definition)),
        ("pg_get_serial_sequence", Utf8, |c| c.texts(serial_sequence)),
        ("pg_get_statisticsobjdef_columns", Utf8, |c| c.texts(|_, _| Ok(None))),
        ("pg_get_userbyid", Utf8, |c| {
            c.texts(|c, i| {
                let unknown = |oid| format!("unknown (OID={oid})");
                Ok(c.oid(0, i)?.map(|oid| role_name(c.catalog, oid).unwrap_or_else(|| unknown(oid))))
            })
        }),
        ("pg_get_ruledef", Utf8, |c| c.texts(rules::definition)),
        ("pg_get_viewdef", Utf8, |c| c.texts(rules::of_view)),
        ("pg_collation_is_visible", Boolean, |c| Ok(c.all_true())),
        ("pg_conversion_is_visible", Boolean, |c| Ok(c.all_true())),
        ("pg_opclass_is_visible", Boolean, |c| Ok(c.all_true())),
        ("pg_operator_is_visible", Boolean, |c| Ok(c.all_true())),
        ("pg_opfamily_is_visible", Boolean, |c| Ok(c.all_true())),
        ("pg_function_is_visible", Boolean, |c| Ok(c.all_true())),
        ("pg_relation_is_publishable", Boolean, |c| Ok(c.all_true())),
        ("pg_tablespace_location", Utf8, |c| c.texts(|_, _| Ok(Some(String::new())))),
        ("pg_table_is_visible", Boolean, classes::is_visible),
        ("pg_type_is_visible", Boolean, classes::is_type_visible),
        ("regclass_name", Utf8, |c| c.texts(|c, i| Ok(c.oid(0, i)?.map(|o| class_name(c.catalog, o))))),
        ("regclass_oid", UInt32, |c| regclass_oid(c)),
        ("regnamespace_name", Utf8, |c| {
            c.texts(|c, i| Ok(c.oid(0, i)?.map(|oid| classes::schema_name(c.catalog, oid))))
        }),
        ("regnamespace_oid", UInt32, |c| regnamespace_oid(c)),
        ("regrole_name", Utf8, |c| c.texts(|c, i| Ok(c.oid(0, i)?.map(|oid| privileges::shown_role(c.catalog, oid))))),
        ("regrole_oid", UInt32, privileges::regrole_oid),
        ("regtype_oid", UInt32, |c| classes::regtype_oid(c)),
        ("to_oid", UInt32, |c| to_oid(c)),
        // NULL where there is no such thing.
        ("to_regclass", UInt32, |c| c.oids(classes::found_class)),
        ("to_regnamespace", UInt32, |c| c.oids(|c, name| Ok(classes::schema_oid(c.catalog, name)))),
        ("to_regrole", UInt32, |c| c.oids(|c, name| Ok(privileges::role_oid(c.catalog, name)))),
        ("to_regtype", UInt32, |c| c.oids(classes::found_type)),
        ("shobj_description", Utf8, |c| c.texts(|_, _| Ok(None))),
    ]
}

/// Of sizes.
fn about_sizes() -> Vec<Entry> {
    use DataType::{Int64, Utf8};
    vec![
        ("pg_size_pretty", Utf8, |c| c.texts(|c, i| Ok(c.int(0, i)?.map(size_pretty)))),
        ("pg_database_size", Int64, |c| c.sizes(|c, _, s| Some(c.catalog.tables().map(|t| total_size(s, t)).sum()))),
        ("pg_tablespace_size", Int64, |c| c.sizes(|c, _, s| Some(c.catalog.tables().map(|t| total_size(s, t)).sum()))),
        ("pg_indexes_size", Int64, |c| c.sizes(|c, oid, s| c.table(oid).map(|t| live::indexes_size(s, t)))),
        ("pg_relation_size", Int64, |c| c.sizes(relation_size)),
        ("pg_table_size", Int64, |c| c.sizes(relation_size)),
        ("pg_total_relation_size", Int64, |c| {
            c.sizes(|c, oid, s| c.table(oid).map(|t| total_size(s, t)).or_else(|| relation_size(c, oid, s)))
        }),
    ]
}

/// Of values alone.
fn about_values() -> Vec<Entry> {
    use DataType::{Boolean, Int32, Utf8};
    vec![
        ("array_to_string", Utf8, |c| c.texts(array_to_string)),
        ("no_items", list_of(Utf8), |c| {
            let mut lists = ListBuilder::new(StringBuilder::new());
            (0..c.rows).for_each(|_| lists.append(true));
            Ok(Arc::new(lists.finish()))
        }),
        ("format_type", Utf8, |c| {
            c.texts(|c, i| {
                let modifier = c.int(1, i).ok().flatten().map(|m| m as i32);
                Ok(c.oid(0, i)?.map(|t| classes::format_type(c.catalog, t, modifier)))
            })
        }),
        ("regproc_name", Utf8, |c| c.texts(|c, i| Ok(c.oid(0, i)?.map(procedures::shown)))),
        ("regprocedure_name", Utf8, |c| c.texts(procedure_name)),
        ("regtype_names", list_of(Utf8), classes::type_names),
        ("regtype_name", Utf8, |c| c.texts(|c, i| Ok(c.oid(0, i)?.map(|t| classes::format_type(c.catalog, t, None))))),
        ("pg_array_contains", Boolean, |c| array_contains(c)),
        ("pg_encoding_to_char", Utf8, |c| {
            c.texts(|c, i| Ok(c.int(0, i)?.map(|e| if e == 6 { "UTF8" } else { "" }.to_owned())))
        }),
        ("pg_char_to_encoding", Int32, |c| {
            let code = |i| {
                let name = c.text(0, i)?.map(|n| n.to_lowercase().replace('-', ""));
                Ok(name.map(|n| if n == "utf8" { 6 } else { -1 }))
            };
            Ok(Arc::new(Int32Array::from((0..c.rows).map(code).collect::<Result<Vec<_>>>()?)))
        }),
        ("clock_timestamp", crate::values::arrow_type(terrace_engine::DataType::Timestamptz), |c| {
            // Of each row its own.
            let now = |_| c.info.system.as_ref().map(|s| s.observed.now_micros());
            let times: TimestampMicrosecondArray = (0..c.rows).map(now).collect();
            Ok(Arc::new(times.with_timezone(crate::values::UTC)))
        }),
        ("gen_random_uuid", DataType::FixedSizeBinary(16), random::uuids),
        ("md5", Utf8, |c| md5(c)),
        ("random", DataType::Float64, |c| Ok(random::numbers(c))),
        ("setseed", Utf8, |c| c.texts(random::seed)),
    ]
}

fn list_of(item: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("item", item, true)))
}

struct Function {
    name: &'static str,
    returns: DataType,
    body: Body,
    signature: Signature,
    catalog: Arc<Catalog>,
    info: SessionInfo,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
// Within a statement a function is its name.
impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.catalog, &other.catalog)
    }
}
impl Eq for Function {}
impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.name
    }
    fn signature(&self) -> &Signature {
        &self.signature
    }
    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        if arguments.iter().any(|of| enum_of(of).is_some()) && !TAKE_ENUMS.contains(&self.name) {
            let names: Vec<String> = arguments.iter().map(builtin::type_name).collect();
            let message = format!("function {}({}) does not exist", self.name, names.join(", "));
            return Err(tunnel(builtin::with_hint(EngineError::new("42883", message))));
        }
        Ok(self.returns.clone())
    }
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let of = self.return_type(&types)?;
        Ok(match self.name {
            "pg_notify" | "setseed" => void_field(self.name),
            _ => Arc::new(Field::new(self.name, of, true)),
        })
    }
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arguments = args.args.iter().map(|a| a.to_array(args.number_rows)).collect::<Result<Vec<_>>>()?;
        let call = Call { catalog: &self.catalog, info: &self.info, arguments, rows: args.number_rows };
        Ok(ColumnarValue::Array((self.body)(&call)?))
    }
}

impl Call<'_> {
    fn texts(&self, f: impl Fn(&Call<'_>, usize) -> Result<Option<String>>) -> Result<ArrayRef> {
        let values = (0..self.rows).map(|i| f(self, i)).collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(StringArray::from(values)))
    }
    fn all_true(&self) -> ArrayRef {
        Arc::new(BooleanArray::from(vec![true; self.rows]))
    }
    /// An integer argument; text that spells one counts (PostgreSQL's unknown literals). NULL and absent are `None`.
    fn int(&self, argument: usize, row: usize) -> Result<Option<i64>> {
        let Some(array) = self.arguments.get(argument) else { return Ok(None) };
        let array = cast(array, &DataType::Int64)?;
        let array = array.as_primitive::<Int64Type>();
        Ok((!array.is_null(row)).then(|| array.value(row)))
    }
    fn oid(&self, argument: usize, row: usize) -> Result<Option<u32>> {
        // An integer below zero is an OID of the same bits.
        let oid = |i: i64| u32::try_from(i).ok().or_else(|| i32::try_from(i).ok().map(|i| i as u32));
        Ok(self.int(argument, row)?.and_then(oid))
    }
    fn text(&self, argument: usize, row: usize) -> Result<Option<String>> {
        let Some(array) = self.arguments.get(argument) else { return Ok(None) };
        let array = cast(array, &DataType::Utf8)?;
        let array = array.as_string::<i32>();
        Ok((!array.is_null(row)).then(|| array.value(row).to_owned()))
    }
    /// OIDs by the name that is the first argument.
    fn oids(&self, f: impl Fn(&Call<'_>, &str) -> Result<Option<u32>>) -> Result<ArrayRef> {
        let one = |row| match self.text(0, row)? {
            Some(name) => f(self, &name),
            None => Ok(None),
        };
        Ok(Arc::new(UInt32Array::from((0..self.rows).map(one).collect::<Result<Vec<_>>>()?)))
    }
    fn list(&self, argument: usize, row: usize) -> Option<ArrayRef> {
        let list = self.arguments.get(argument)?.as_any().downcast_ref::<ListArray>()?.clone();
        (!list.is_null(row)).then(|| list.value(row))
    }
    fn table(&self, oid: u32) -> Option<&Arc<Table>> {
        self.catalog.table_by_oid(ObjectId(oid)).filter(|t| t.oid.0 >= FIRST_OBJECT)
    }
    /// Bytes by the OID that is the first argument; NULL where there is no such thing.
    fn sizes(&self, f: impl Fn(&Call<'_>, u32, &System) -> Option<u64>) -> Result<ArrayRef> {
        let one = |row| {
            let oid = self.oid(0, row)?.unwrap_or(0);
            Ok(self.info.system.as_ref().and_then(|s| f(self, oid, s)).map(|bytes| bytes as i64))
        };
        Ok(Arc::new(Int64Array::from((0..self.rows).map(one).collect::<Result<Vec<_>>>()?)))
    }
    fn of_procedures(&self, what: impl Fn(Procedure) -> &'static str) -> Result<ArrayRef> {
        self.texts(|c, i| Ok(c.oid(0, i)?.and_then(procedures::by_oid).map(|of| what(of).to_owned())))
    }

    fn index(&self, argument: usize, row: usize) -> Result<Option<(Arc<Table>, Arc<Index>)>> {
        Ok(self.oid(argument, row)?.and_then(|oid| find_index(self.catalog, oid)))
    }
}

fn total_size(s: &System, table: &Table) -> u64 {
    live::size(s, table.oid).1 + live::indexes_size(s, table)
}

fn relation_size(c: &Call<'_>, oid: u32, s: &System) -> Option<u64> {
    let there = c.table(oid).is_some() || find_index(c.catalog, oid).is_some();
    there.then(|| live::size(s, ObjectId(oid)).1)
}

/// A quoted identifier where it needs quotes.
pub(crate) fn quote(name: &str) -> String {
    terrace_grammar::quoted(name)
}

fn key_list(table: &Table, index: &Index) -> String {
    index.columns.iter().map(|c| quote(&table.columns[*c].name)).collect::<Vec<_>>().join(", ")
}

pub(crate) fn constraint_definition(table: &Table, index: &Index) -> String {
    let kind = if index.primary { "PRIMARY KEY" } else { "UNIQUE" };
    let nulls = if index.is_nulls_not_distinct() { " NULLS NOT DISTINCT" } else { "" };
    let included = match index.included() {
        [] => String::new(),
        columns => {
            let names: Vec<String> = columns.iter().map(|at| quote(&table.columns[*at].name)).collect();
            format!(" INCLUDE ({})", names.join(", "))
        }
    };
    let deferrable = if index.is_immediate() { "" } else { " DEFERRABLE" };
    let deferred = if index.is_deferred() { " INITIALLY DEFERRED" } else { "" };
    format!("{kind}{nulls} ({}){included}{deferrable}{deferred}", key_list(table, index))
}

/// `CHECK ((a > 0))`, or without the outer parentheses where the second argument asks for few.
fn check_definition(c: &Call<'_>, row: usize) -> Result<Option<String>> {
    let Some(oid) = c.oid(0, row)? else { return Ok(None) };
    let pretty = c.text(1, row)?.is_some_and(|p| p.starts_with('t'));
    if let Some(definition) = foreign::definition(c.catalog, oid) {
        return Ok(Some(definition));
    }
    if let Some((condition, behind)) = domains::condition_of(c.catalog, oid, pretty) {
        return Ok(Some(format!("CHECK ({}){behind}", qualified::shown(&condition, c.catalog))));
    }
    let of = |t: &Arc<Table>| {
        let sql = &t.checks[(0..t.checks.len()).find(|at| check_oid(t, *at) == oid)?].sql;
        let as_written = || if pretty { sql.clone() } else { format!("({sql})") };
        let shown = crate::parse::shown::condition(sql, &t.columns, pretty).unwrap_or_else(as_written);
        Some(qualified::shown(&shown, c.catalog))
    };
    Ok(c.catalog.tables().find_map(of).map(|sql| format!("CHECK ({sql})")))
}

/// `pg_get_expr(text, relation [, pretty])`: pretty, it has no parentheses around it.
fn get_expr(c: &Call<'_>, row: usize) -> Result<Option<String>> {
    let pretty = c.arguments.len() > 2 && c.text(2, row)?.is_some_and(|pretty| pretty.starts_with('t'));
    Ok(c.text(0, row)?.map(|text| {
        let text = if pretty { terrace_grammar::without_parens(&text) } else { &text };
        qualified::shown(text, c.catalog)
    }))
}

/// `pg_get_serial_sequence(table, column)`: NULL where no sequence numbers the column.
fn serial_sequence(c: &Call<'_>, row: usize) -> Result<Option<String>> {
    let (Some(table), Some(column)) = (c.text(0, row)?, c.text(1, row)?) else { return Ok(None) };
    let oid = classes::found_class(c, &table)?.ok_or_else(|| undefined_relation(&table))?;
    let Some(table) = c.table(oid) else { return Ok(None) };
    let Some((_, found)) = attributes(table).find(|(_, a)| a.name == column) else {
        let message = format!("column \"{column}\" of relation \"{}\" does not exist", table.name);
        return Err(external(terrace_engine::EngineError::new("42703", message)));
    };
    Ok(crate::parse::sequence_calls::sequence_of(found)
        .and_then(|name| c.catalog.table(&name).cloned())
        .map(|sequence| format!("{}.{}", quote(&schema_of_table(c.catalog, &sequence)), quote(&sequence.name))))
}

fn role_name(catalog: &Catalog, oid: u32) -> Option<String> {
    catalog.role_by_oid(oid).map(|role| role.name)
}

/// `acldefault(kind, owner)`: what an object of a kind allows where nobody has said anything.
fn default_privileges(c: &Call<'_>, row: usize) -> Result<Option<String>> {
    let (Some(kind), Some(owner)) = (c.text(0, row)?, c.oid(1, row)?) else { return Ok(None) };
    let (everybody, of_owner) = match kind.as_str() {
        "c" => ("", ""),
        "r" => ("", "arwdDxt"),
        "s" => ("", "rwU"),
        "d" => ("Tc", "CTc"),
        "f" => ("X", "X"),
        "l" | "T" => ("U", "U"),
        "L" => ("", "rw"),
        "n" => ("", "UC"),
        "t" => ("", "C"),
        "F" | "S" => ("", "U"),
        "p" => ("", "sA"),
        other => {
            let message = format!("unrecognized objtype abbreviation: {other}");
            return Err(external(terrace_engine::EngineError::new("XX000", message)));
        }
    };
    let name = role_name(c.catalog, owner).map_or(owner.to_string(), |name| quote(&name));
    let granted = |to: &str, what: &str| format!("{to}={what}/{name}");
    let items = [("", everybody), (name.as_str(), of_owner)].into_iter().filter(|(_, what)| !what.is_empty());
    Ok(Some(format!("{{{}}}", items.map(|(to, what)| granted(to, what)).collect::<Vec<_>>().join(","))))
}

/// `pg_notify(channel, payload)`. NULL is a text without characters.
fn notify(c: &Call<'_>, row: usize) -> Result<Option<String>> {
    let (channel, payload) = (c.text(0, row)?.unwrap_or_default(), c.text(1, row)?.unwrap_or_default());
    if let Some(system) = &c.info.system {
        system.voice.say(&channel, &payload).map_err(external)?;
    }
    Ok(Some(String::new()))
}

/// `pg_export_snapshot()`. 25001 within a savepoint.
fn export_snapshot(c: &Call<'_>) -> Result<Option<String>> {
    let Some(system) = &c.info.system else { return Ok(None) };
    let mut slot = system.cell.try_lock().map_err(|_| {
        external(terrace_engine::EngineError::internal("a snapshot was exported while the transaction was in use"))
    })?;
    if !slot.savepoints.is_empty() {
        let message = "cannot export a snapshot from a subtransaction";
        return Err(external(terrace_engine::EngineError::new("25001", message)));
    }
    Ok(slot.txn.as_mut().map(|txn| txn.export_snapshot()))
}

/// `current_setting(name [, missing_ok])`.
fn current_setting(c: &Call<'_>, row: usize) -> Result<Option<String>> {
    let (Some(name), Some(system)) = (c.text(0, row)?, &c.info.system) else { return Ok(None) };
    match system.settings.lock().show(&name) {
        Ok((_, value)) => Ok(Some(value)),
        Err(_) if c.text(1, row)?.is_some_and(|m| m.starts_with('t')) => Ok(None),
        Err(error) => Err(external(error)),
    }
}

/// `set_config(name, value, is_local)`.
fn set_config(c: &Call<'_>, row: usize) -> Result<Option<String>> {
    let (Some(name), Some(system)) = (c.text(0, row)?, &c.info.system) else { return Ok(None) };
    let local = c.text(2, row)?.is_some_and(|l| l.starts_with('t'));
    let mut settings = system.settings.lock();
    let set = match c.text(1, row)? {
        Some(value) => settings.set(&name, &value, local),
        None => settings.reset(&name, local),
    };
    set.and_then(|()| settings.show(&name)).map(|(_, value)| Some(value)).map_err(external)
}

fn external(error: terrace_engine::EngineError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

fn regclass_oid(c: &Call<'_>) -> Result<ArrayRef> {
    let one = |row| -> Result<Option<u32>> {
        let Some(name) = c.text(0, row)? else { return Ok(None) };
        if name == "-" {
            return Ok(Some(0));
        }
        let oid = classes::found_class(c, &name)?;
        oid.map(Some).ok_or_else(|| classes::no_class(c.catalog, &name))
    };
    let oids = (0..c.rows).map(one).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(UInt32Array::from(oids)))
}

fn regnamespace_oid(c: &Call<'_>) -> Result<ArrayRef> {
    let one = |row| -> Result<Option<u32>> {
        let Some(name) = c.text(0, row)? else { return Ok(None) };
        let missing = || terrace_engine::EngineError::new("3F000", format!("schema \"{name}\" does not exist"));
        if let Ok(oid) = name.parse() {
            return Ok(Some(oid));
        }
        classes::schema_oid(c.catalog, &name).map(Some).ok_or_else(|| external(missing()))
    };
    let oids = (0..c.rows).map(one).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(UInt32Array::from(oids)))
}

fn undefined_relation(name: &str) -> DataFusionError {
    let error = terrace_engine::EngineError::new("42P01", format!("relation \"{name}\" does not exist"));
    DataFusionError::External(Box::new(error))
}

/// A function as `regprocedure` shows it.
fn procedure_name(c: &Call<'_>, row: usize) -> Result<Option<String>> {
    let Some(oid) = c.oid(0, row)? else { return Ok(None) };
    let Some(procedure) = procedures::by_oid(oid) else {
        let shown = procedures::shown(oid);
        return match shown == "-" || shown == oid.to_string() {
            true => Ok(Some(shown)),
            false => Err(tunnel(EngineError::unsupported(
                "argument types of functions that read a type's values are not supported",
            ))),
        };
    };
    let types = procedure.takes().into_iter().map(|of| classes::format_type(c.catalog, of, None));
    Ok(Some(format!("{}({})", procedure.name(), types.collect::<Vec<_>>().join(","))))
}

/// `x::oid`: of texts and integers; those below zero stand for the upper half, but for those of a bigint.
fn to_oid(c: &Call<'_>) -> Result<ArrayRef> {
    let Some(array) = c.arguments.first() else { return Ok(Arc::new(UInt32Array::new_null(c.rows))) };
    let one = |row| -> Result<Option<u32>> {
        let oid = match array.data_type() {
            DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => match c.text(0, row)? {
                Some(text) => oid_of_text(&text).map_err(external)?,
                None => return Ok(None),
            },
            DataType::Int16 | DataType::Int32 => match c.int(0, row)? {
                Some(number) => number as u32,
                None => return Ok(None),
            },
            DataType::Int64 | DataType::UInt32 => match c.int(0, row)?.map(u32::try_from) {
                Some(Ok(oid)) => oid,
                Some(Err(_)) => return Err(external(terrace_engine::EngineError::new("22003", "OID out of range"))),
                None => return Ok(None),
            },
            DataType::Null => return Ok(None),
            other => {
                let message = format!("cannot cast type {} to oid", crate::functions::builtin::type_name(other));
                return Err(external(terrace_engine::EngineError::new("42846", message)));
            }
        };
        Ok(Some(oid))
    };
    let oids = (0..c.rows).map(one).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(UInt32Array::from(oids)))
}

/// An oid's text; numbers below zero stand for the upper half. 22P02, 22003
pub fn oid_of_text(text: &str) -> terrace_engine::Result<u32> {
    let trimmed = text.trim_ascii();
    let digits = trimmed.strip_prefix(['-', '+']).unwrap_or(trimmed);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(terrace_engine::EngineError::invalid_text("oid", text));
    }
    let number = trimmed.parse().unwrap_or(i64::MAX);
    if !(i64::from(i32::MIN)..=u32::MAX.into()).contains(&number) {
        let message = format!("value \"{text}\" is out of range for type oid");
        return Err(terrace_engine::EngineError::new("22003", message));
    }
    Ok(number as u32)
}

/// Cancels or ends sessions by their process ids; false, and a warning, where there is none.
fn signal(c: &Call<'_>, cancels: bool) -> Result<ArrayRef> {
    let one = |pid: i64| -> Result<bool> {
        let Some(system) = &c.info.system else { return Ok(false) };
        let sessions = system.observed.sessions();
        let Some(session) = sessions.iter().find(|session| i64::from(session.pid) == pid) else {
            let warning = format!("PID {pid} is not a PostgreSQL backend process");
            system.notices.push(terrace_engine::EngineError::new("01000", warning));
            return Ok(false);
        };
        privileges::permit_signal(c, &session.now().user, cancels)?;
        if cancels {
            session.cancel()
        } else {
            session.terminate()
        }
        Ok(true)
    };
    let sent = (0..c.rows).map(|row| c.int(0, row)?.map(one).transpose()).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(BooleanArray::from(sent)))
}

/// Bytes in the largest unit that leaves at least 10240 of the next smaller one, rounded half away from zero.
fn size_pretty(bytes: i64) -> String {
    let mut size = i128::from(bytes);
    let units = ["bytes", "kB", "MB", "GB", "TB", "PB"];
    let mut unit = 0;
    while size.abs() >= 10_240 && unit + 1 < units.len() {
        size = (size + size.signum() * 512) / 1024;
        unit += 1;
    }
    format!("{size} {}", units[unit])
}

fn schema_name(oid: u32) -> String {
    match oid {
        PG_CATALOG_OID => "pg_catalog".to_owned(),
        INFORMATION_SCHEMA_OID => "information_schema".to_owned(),
        other => other.to_string(),
    }
}

fn schema_oid(name: &str) -> Option<u32> {
    [PG_CATALOG_OID, INFORMATION_SCHEMA_OID].into_iter().find(|oid| schema_name(*oid) == name)
}

/// Items as they are shown; NULLs among them are the third argument, or left out.
fn array_to_string(c: &Call<'_>, row: usize) -> Result<Option<String>> {
    let (Some(list), Some(separator)) = (c.list(0, row), c.text(1, row)?) else { return Ok(None) };
    let null = c.text(2, row)?;
    let items = crate::functions::builtin::shown(&list, None)?;
    let items = items.as_string::<i32>();
    Ok(Some(items.iter().filter_map(|item| item.or(null.as_deref())).collect::<Vec<_>>().join(&separator)))
}

/// Of text or bytea, in hexadecimal digits.
fn md5(c: &Call<'_>) -> Result<ArrayRef> {
    let array = &c.arguments[0];
    let hex = |bytes: &[u8]| Md5::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let digests: StringArray = match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().iter().map(|v| v.map(hex)).collect(),
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 | DataType::Null => {
            cast(array, &DataType::Utf8)?.as_string::<i32>().iter().map(|v| v.map(|v| hex(v.as_bytes()))).collect()
        }
        other => {
            let given = crate::values::engine_type(other).map_or_else(|| other.to_string(), |t| t.base_name().into());
            let message = format!("function md5({given}) does not exist");
            return Err(external(terrace_engine::EngineError::new("42883", message)));
        }
    };
    Ok(Arc::new(digests))
}

/// `x = ANY(array)`, which the binder makes `pg_array_contains(array, x)`.
fn array_contains(c: &Call<'_>) -> Result<ArrayRef> {
    let one = |row| -> Result<Option<bool>> {
        let (Some(items), Some(x)) = (c.list(0, row), c.text(1, row)?) else { return Ok(None) };
        let items = cast(&items, &DataType::Utf8)?;
        Ok(Some(items.as_string::<i32>().iter().flatten().any(|item| item == x)))
    };
    let found = (0..c.rows).map(one).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(BooleanArray::from(found)))
}
