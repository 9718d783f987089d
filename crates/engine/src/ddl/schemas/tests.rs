//! Schemas made, renamed and dropped; what is in them through a rollback, TRUNCATE, a move and a restart.
use crate::catalog::names::{Among, Placing, RelationName, Space};
use crate::catalog::path::{SearchPath, Viewer};
use crate::catalog::views::{View, ViewUse};
use crate::catalog::{ColumnDef, IndexSpec, TableSpec};
use crate::database::{Database, EngineConfig};
use crate::testing::{clean, devices, simulate, storage};
use crate::txn::Isolation::ReadCommitted;
use crate::types::{DataType, Datum};
use std::sync::Arc;
use terrace_storage::ObjectId;

fn spec(name: &str) -> TableSpec {
    let key = IndexSpec { name: format!("{name}_pkey"), columns: vec![0], unique: true, primary: true, extras: None };
    TableSpec { name: name.into(), columns: vec![ColumnDef::new("a", DataType::Int4)], indexes: vec![key] }
}

fn named(schema: &str, name: &str) -> RelationName {
    RelationName::new(Among::Schema(schema.into()), name)
}

fn viewer(schemas: &[&str]) -> Arc<Viewer> {
    let viewer = Viewer::default();
    let schemas = schemas.iter().map(|name| (*name).to_owned()).collect();
    viewer.set_path(SearchPath { schemas, role: crate::FIRST_ROLE.into() });
    Arc::new(viewer)
}

/// A view `v` of the table `t`, in its schema.
fn view_of_t(space: Space) -> View {
    View {
        temporary: false,
        oid: ObjectId(0),
        space,
        name: "v".into(),
        columns: vec![ColumnDef::new("a", DataType::Int4)],
        sql: String::new(),
        zone: "UTC".into(),
        depth: 3,
        uses: vec![ViewUse { space, relation: "t".into(), columns: 1, used: vec![0] }],
        check: None,
    }
}

#[test]
fn what_is_in_a_schema_stays_there_through_truncate_a_rename_and_a_restart() {
    simulate(41, |env| async move {
        let (devices, config) = (devices(), EngineConfig::default());
        let db = Database::create(env.clone(), devices.clone(), storage(), config.clone()).await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        let s = txn.create_schema("s").await.unwrap();
        assert_eq!(txn.create_schema("s").await.unwrap_err().state.0, "42P06");
        let inner = txn.create_table_in(spec("t"), Placing::In(s)).await.unwrap();
        let outer = txn.create_table(spec("t")).await.unwrap();
        txn.insert(&inner, &[Datum::Int4(1)]).await.unwrap();
        let of = txn.create_enum(s, "mood", &["sad".into()]).await.unwrap();
        txn.put_view(view_of_t(s)).await.unwrap();
        txn.commit().await.unwrap();
        assert_eq!(db.catalog().table("t").unwrap().oid, outer.oid);
        assert_eq!(db.catalog().table(&named("s", "t")).unwrap().oid, inner.oid);
        let views_on = |space| db.catalog().views_on((space, "t"), None).len();
        assert_eq!((views_on(Space::PUBLIC), views_on(s)), (0, 1));

        // Who looks in it first finds it first, and has another version of the catalogue.
        let inside = db.catalog().seen_by(&viewer(&["nowhere", "s", "public"]));
        assert_eq!(inside.table("t").unwrap().oid, inner.oid);
        assert!(inside.enum_type("mood").is_some() && db.catalog().enum_type("mood").is_none());
        assert_ne!(inside.version(), db.catalog().version());
        assert_eq!(db.catalog().seen_by(&viewer(&["$user", "public"])).version(), db.catalog().version());

        let mut txn = db.begin(ReadCommitted).seen_by(&viewer(&["s"]));
        let table = txn.catalog().table("t").unwrap().clone();
        let table = txn.truncate_table(&table).await.unwrap();
        assert_eq!(table.space, s);
        txn.rename_schema(s, "r").await.unwrap();
        assert_eq!(txn.drop_schema(s).await.unwrap_err().state.0, "2BP01");
        txn.commit().await.unwrap();
        clean(&db).await;
        db.close().await.unwrap();

        let (db, _) = Database::open(env, devices, storage(), config).await.unwrap();
        assert_eq!(db.check().await.unwrap(), Vec::<String>::new());
        let catalog = db.catalog();
        assert_eq!((catalog.schema("s"), catalog.schema("r")), (None, Some(s)));
        assert_eq!(catalog.table(&named("r", "t")).unwrap().oid, table.oid);
        assert_eq!(catalog.space_of_type(of.def().oid), Some(s));
        assert_eq!(catalog.view(&named("r", "v")).unwrap().uses[0].space, s);
        let mut txn = db.begin(ReadCommitted);
        txn.drop_view(&named("r", "v")).await.unwrap();
        let gone = txn.catalog().table("t").unwrap().clone();
        assert_eq!(txn.move_table(&table, Space::PUBLIC).await.unwrap_err().state.0, "42P07");
        txn.rollback().await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        txn.drop_view(&named("r", "v")).await.unwrap();
        txn.drop_table(&gone).await.unwrap();
        txn.move_table(&table, Space::PUBLIC).await.unwrap();
        txn.move_type(DataType::Enum(of), Space::PUBLIC).await.unwrap();
        txn.drop_schema(s).await.unwrap();
        txn.commit().await.unwrap();
        assert!(db.catalog().schema("r").is_none() && db.catalog().enum_type("mood").is_some());
        assert_eq!(db.catalog().index("t_pkey").unwrap().table, table.oid);
        clean(&db).await;
    });
}

/// The schema public may go, and come again as another.
#[test]
fn public_is_dropped_and_made_again_and_a_rollback_undoes_it() {
    simulate(42, |env| async move {
        let (devices, config) = (devices(), EngineConfig::default());
        let db = Database::create(env.clone(), devices.clone(), storage(), config.clone()).await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        txn.drop_schema(Space::PUBLIC).await.unwrap();
        assert_eq!(txn.create_table(spec("t")).await.unwrap_err().state.0, "3F000");
        txn.rollback().await.unwrap();
        assert_eq!(db.catalog().schema("public"), Some(Space::PUBLIC));
        let mut txn = db.begin(ReadCommitted);
        txn.drop_schema(Space::PUBLIC).await.unwrap();
        let again = txn.create_schema("public").await.unwrap();
        let table = txn.create_table_in(spec("t"), Placing::In(again)).await.unwrap();
        txn.commit().await.unwrap();
        db.close().await.unwrap();
        let (db, _) = Database::open(env, devices, storage(), config).await.unwrap();
        assert_eq!(db.catalog().schema("public"), Some(again));
        assert_ne!(again, Space::PUBLIC);
        assert_eq!(db.catalog().seen_by(&viewer(&["public"])).table("t").unwrap().oid, table.oid);
        clean(&db).await;
    });
}
