use super::AttributeChange;
use crate::catalog::names::Space;
use crate::catalog::{ColumnDef, IndexSpec, TableSpec};
use crate::database::{Database, EngineConfig};
use crate::testing::{clean, devices, simulate, storage};
use crate::txn::Isolation::ReadCommitted;
use crate::types::composites::Attribute;
use crate::types::enums::Place;
use crate::types::{DataType, Datum};

/// Values keep their meaning through new and renamed labels, a restart, and a rollback.
#[test]
fn columns_of_an_enum_through_changes_of_the_type_and_a_restart() {
    simulate(11, |env| async move {
        let (devices, config) = (devices(), EngineConfig::default());
        let db = Database::create(env.clone(), devices.clone(), storage(), config.clone()).await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        let of = txn.create_enum(Space::PUBLIC, "mood", &["sad".into(), "ok".into()]).await.unwrap();
        assert_eq!(txn.create_enum(Space::PUBLIC, "mood", &[]).await.unwrap_err().state.0, "42710");
        let mood = DataType::Enum(of);
        let mut later = ColumnDef::new("later", mood);
        let columns = vec![ColumnDef::new("m", mood).not_null(), ColumnDef::new("all", mood.array().unwrap())];
        let key = IndexSpec { name: "t_pkey".into(), columns: vec![0], unique: true, primary: true, extras: None };
        let t = txn.create_table(TableSpec { name: "t".into(), columns, indexes: vec![key] }).await.unwrap();
        let all = mood.array().unwrap().parse("{ok,NULL,sad}").unwrap();
        txn.insert(&t, &[mood.parse("sad").unwrap(), all]).await.unwrap();
        later.missing = mood.parse("ok").unwrap();
        txn.add_column(&t, later).await.unwrap();
        txn.commit().await.unwrap();

        let mut txn = db.begin(ReadCommitted);
        txn.rename_enum_label(of, "sad", "bad").await.unwrap();
        txn.rollback().await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        txn.add_enum_label(of, "so so", Place::Before("ok")).await.unwrap();
        txn.rename_enum_label(of, "ok", "fine").await.unwrap();
        txn.rename_type(DataType::Enum(of), "spirit").await.unwrap();
        txn.commit().await.unwrap();
        clean(&db).await;
        db.close().await.unwrap();

        let (db, _) = Database::open(env, devices, storage(), config).await.unwrap();
        assert_eq!(db.check().await.unwrap(), Vec::<String>::new());
        let catalog = db.catalog();
        assert!(catalog.enum_type("mood").is_none());
        let of = catalog.enum_type("spirit").unwrap();
        let t = catalog.table("t").unwrap().clone();
        assert_eq!(t.columns[0].data_type, DataType::Enum(of));
        let mut txn = db.begin(ReadCommitted);
        let rows = crate::testing::rows(&mut txn, &t).await;
        let shown: Vec<String> = rows[0].iter().map(Datum::to_string).collect();
        assert_eq!(shown, ["sad", "{fine,NULL,sad}", "fine"]);
        // A type that columns are of does not go; one of dropped columns does, and the table is read without it.
        assert_eq!(txn.drop_type(DataType::Enum(of)).await.unwrap_err().state.0, "2BP01");
        let t = txn.drop_column(&t, 1).await.unwrap();
        let t = txn.drop_column(&t, 2).await.unwrap();
        assert_eq!(txn.drop_type(DataType::Enum(of)).await.unwrap_err().state.0, "2BP01");
        txn.drop_table(&t).await.unwrap();
        txn.drop_type(DataType::Enum(of)).await.unwrap();
        txn.commit().await.unwrap();
        clean(&db).await;
    });
}

#[test]
fn a_dropped_column_outlives_its_type() {
    simulate(12, |env| async move {
        let (devices, config) = (devices(), EngineConfig::default());
        let db = Database::create(env.clone(), devices.clone(), storage(), config.clone()).await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        let of = txn.create_enum(Space::PUBLIC, "mood", &["sad".into()]).await.unwrap();
        let mood = DataType::Enum(of);
        let columns = vec![
            ColumnDef::new("id", DataType::Int4),
            ColumnDef::new("m", mood),
            ColumnDef::new("all", mood.array().unwrap()),
            ColumnDef::new("text", DataType::Text),
        ];
        let t = txn.create_table(TableSpec { name: "t".into(), columns, indexes: vec![] }).await.unwrap();
        let all = mood.array().unwrap().parse("{sad}").unwrap();
        txn.insert(&t, &[Datum::Int4(1), mood.parse("sad").unwrap(), all, Datum::text("x")]).await.unwrap();
        let t = txn.drop_column(&t, 1).await.unwrap();
        txn.drop_column(&t, 2).await.unwrap();
        txn.drop_type(DataType::Enum(of)).await.unwrap();
        txn.commit().await.unwrap();
        db.close().await.unwrap();
        let (db, _) = Database::open(env, devices, storage(), config).await.unwrap();
        let t = db.catalog().table("t").unwrap().clone();
        let mut txn = db.begin(ReadCommitted);
        let rows = crate::testing::rows(&mut txn, &t).await;
        assert_eq!((&rows[0][0], &rows[0][3]), (&Datum::Int4(1), &Datum::text("x")));
        txn.rollback().await.unwrap();
        clean(&db).await;
    });
}

/// Values outlive changes of their type, a restart, and a rollback; a type within another is altered in both.
#[test]
fn columns_of_a_composite_type_through_changes_of_the_type_and_a_restart() {
    simulate(13, |env| async move {
        let (devices, config) = (devices(), EngineConfig::default());
        let db = Database::create(env.clone(), devices.clone(), storage(), config.clone()).await.unwrap();
        let attribute = |name: &str, data_type| Attribute { name: name.into(), data_type };
        let mut txn = db.begin(ReadCommitted);
        let mood = DataType::Enum(txn.create_enum(Space::PUBLIC, "mood", &["sad".into(), "ok".into()]).await.unwrap());
        let attributes = vec![attribute("a", DataType::Int4), attribute("m", mood)];
        let of = txn.create_composite(Space::PUBLIC, "pair", attributes.clone()).await.unwrap();
        assert_eq!(txn.create_composite(Space::PUBLIC, "pair", attributes).await.unwrap_err().state.0, "42710");
        let pair = DataType::Composite(of);
        let outer = vec![attribute("p", pair), attribute("all", pair.array().unwrap())];
        let outer = DataType::Composite(txn.create_composite(Space::PUBLIC, "outer", outer).await.unwrap());
        let columns = vec![ColumnDef::new("p", pair), ColumnDef::new("o", outer)];
        let t = txn.create_table(TableSpec { name: "t".into(), columns, indexes: vec![] }).await.unwrap();
        let row = [pair.parse("(1,ok)").unwrap(), outer.parse(r#"("(2,sad)","{""(3,ok)"",NULL}")"#).unwrap()];
        txn.insert(&t, &row).await.unwrap();
        let mut later = ColumnDef::new("later", pair);
        later.missing = pair.parse("(4,sad)").unwrap();
        txn.add_column(&t, later).await.unwrap();
        txn.commit().await.unwrap();

        let mut txn = db.begin(ReadCommitted);
        txn.alter_composite(of, AttributeChange::Drop("a".into())).await.unwrap();
        txn.rollback().await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        txn.alter_composite(of, AttributeChange::Add(attribute("n", DataType::Text))).await.unwrap();
        let twice = txn.alter_composite(of, AttributeChange::Add(attribute("n", DataType::Text))).await;
        assert_eq!(twice.unwrap_err().state.0, "42701");
        let DataType::Enum(of_mood) = mood else { unreachable!() };
        txn.rename_enum_label(of_mood, "ok", "fine").await.unwrap();
        let change = AttributeChange::Rename { from: "m".into(), to: "mood".into() };
        txn.alter_composite(of, change).await.unwrap();
        txn.commit().await.unwrap();
        clean(&db).await;
        db.close().await.unwrap();

        let (db, _) = Database::open(env, devices, storage(), config).await.unwrap();
        assert_eq!(db.check().await.unwrap(), Vec::<String>::new());
        let catalog = db.catalog();
        let of = catalog.composite_type("pair").unwrap();
        let names: Vec<&str> = of.def().attributes().map(|attribute| attribute.name.as_str()).collect();
        assert_eq!(names, ["a", "mood", "n"]);
        let t = catalog.table("t").unwrap().clone();
        assert_eq!(t.columns[0].data_type, DataType::Composite(of));
        let mut txn = db.begin(ReadCommitted);
        let rows = crate::testing::rows(&mut txn, &t).await;
        let shown: Vec<String> = rows[0].iter().map(Datum::to_string).collect();
        assert_eq!(shown, ["(1,fine,)", r#"("(2,sad,)","{""(3,fine,)"",NULL}")"#, "(4,sad,)"]);
        assert_eq!(txn.drop_type(DataType::Composite(of)).await.unwrap_err().state.0, "2BP01");
        assert_eq!(txn.drop_type(mood).await.unwrap_err().state.0, "2BP01");
        txn.rollback().await.unwrap();
        clean(&db).await;
    });
}
