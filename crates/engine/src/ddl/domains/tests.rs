use crate::catalog::domains::{Domain, DomainCheck};
use crate::catalog::names::Space;
use crate::catalog::{ColumnDef, TableSpec};
use crate::database::{Database, EngineConfig};
use crate::testing::{clean, devices, simulate, storage};
use crate::txn::Isolation::ReadCommitted;
use crate::types::{DataType, Datum, Digits};
use std::sync::Arc;

/// A domain, the column of it, digits of a column, and a generated column are there after a restart, and after a
/// rollback as before.
#[test]
fn columns_of_a_domain_through_changes_of_the_domain_and_a_restart() {
    simulate(12, |env| async move {
        let (devices, config) = (devices(), EngineConfig::default());
        let db = Database::create(env.clone(), devices.clone(), storage(), config.clone()).await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        let check = DomainCheck { oid: txn.new_oid(), name: "few".into(), sql: "value < 9".into(), valid: true };
        let domain = Domain {
            oid: txn.new_oid(),
            space: Space::PUBLIC,
            name: "small".into(),
            base: DataType::Varchar(5),
            digits: None,
            not_null: true,
            default_sql: Some("'x'".into()),
            checks: vec![check],
            parent: None,
        };
        txn.create_domain(domain.clone()).await.unwrap();
        assert_eq!(txn.create_domain(domain.clone()).await.unwrap_err().state.0, "42710");
        assert_eq!(txn.create_enum(Space::PUBLIC, "small", &[]).await.unwrap_err().state.0, "42710");
        let of = txn.catalog().domain("small").unwrap().clone();
        let column = ColumnDef { domain: Some(of), ..ColumnDef::new("a", DataType::Varchar(5)) };
        let time = ColumnDef { digits: Some(Digits::Second(2)), ..ColumnDef::new("t", DataType::Timestamp) };
        let generated = ColumnDef { generated: Some("a || 'z'".into()), ..ColumnDef::new("g", DataType::Text) };
        let spec = TableSpec { name: "t".into(), columns: vec![column, time, generated], indexes: vec![] };
        let t = txn.create_table(spec).await.unwrap();
        txn.insert(&t, &[Datum::text("y"), Datum::Timestamp(7), Datum::text("yz")]).await.unwrap();
        txn.commit().await.unwrap();

        let mut txn = db.begin(ReadCommitted);
        let other = Domain { not_null: false, name: "other".into(), ..domain.clone() };
        txn.replace_domain(other).await.unwrap();
        assert_eq!(txn.catalog().table("t").unwrap().columns[0].domain.as_ref().unwrap().name, "other");
        txn.rollback().await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        txn.replace_domain(Domain { default_sql: None, ..domain.clone() }).await.unwrap();
        txn.commit().await.unwrap();
        clean(&db).await;
        db.close().await.unwrap();

        let (db, _) = Database::open(env, devices, storage(), config).await.unwrap();
        assert_eq!(db.check().await.unwrap(), Vec::<String>::new());
        let catalog = db.catalog();
        let kept = catalog.domain("small").unwrap().clone();
        assert_eq!(kept, Arc::new(Domain { default_sql: None, ..domain }));
        let t = catalog.table("t").unwrap().clone();
        assert_eq!((t.columns[0].domain.as_ref(), t.columns[1].digits), (Some(&kept), Some(Digits::Second(2))));
        assert_eq!(t.generated().collect::<Vec<_>>(), [(2, "a || 'z'")]);
        assert!(!t.is_plain());
        let mut txn = db.begin(ReadCommitted);
        assert_eq!(txn.drop_domain(&kept).await.unwrap_err().state.0, "2BP01");
        let t = txn.drop_column(&t, 0).await.unwrap();
        txn.drop_domain(&kept).await.unwrap();
        assert_eq!(txn.drop_domain(&kept).await.unwrap_err().state.0, "42704");
        assert_eq!(crate::testing::rows(&mut txn, &t).await.len(), 1);
        txn.commit().await.unwrap();
        clean(&db).await;
    });
}
