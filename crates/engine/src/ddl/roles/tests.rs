//! Roles: names, what stays, rollback, and restart.
use crate::catalog::roles::{FIRST_ROLE, Role};
use crate::testing::*;
use crate::txn::Isolation;
use crate::{Database, EngineConfig};

#[test]
fn roles_are_made_changed_and_dropped() {
    simulate(1, |env| async move {
        let devices = devices();
        let db = Database::create(env.clone(), devices.clone(), storage(), EngineConfig::default()).await.unwrap();
        assert!(db.catalog().role(FIRST_ROLE).unwrap().superuser);
        let mut txn = db.begin(Isolation::ReadCommitted);
        txn.create_role(Role { login: true, ..Role::new("ann") }).await.unwrap();
        txn.create_role(Role { verifier: Some("v".into()), ..Role::new("bob") }).await.unwrap();
        txn.alter_role(FIRST_ROLE, |role| role.verifier = Some("w".into())).await.unwrap();
        assert!(db.catalog().role("ann").is_none(), "not committed");
        txn.commit().await.unwrap();
        let mut txn = db.begin(Isolation::ReadCommitted);
        assert_eq!(txn.create_role(Role::new("ann")).await.unwrap_err().state.0, "42710");
        assert_eq!(txn.drop_role("nobody").await.unwrap_err().state.0, "42704");
        assert_eq!(txn.drop_role(FIRST_ROLE).await.unwrap_err().state.0, "2BP01");
        assert_eq!(txn.alter_role(FIRST_ROLE, |role| role.login = false).await.unwrap_err().state.0, "0A000");
        txn.drop_role("ann").await.unwrap();
        txn.rollback().await.unwrap();
        let mut txn = db.begin(Isolation::ReadCommitted);
        txn.drop_role("bob").await.unwrap();
        txn.alter_role("ann", |role| role.superuser = true).await.unwrap();
        txn.commit().await.unwrap();
        table(&db, "t").await;
        clean(&db).await;
        let before: Vec<Role> = db.catalog().roles().collect();
        assert_eq!(before.iter().map(|r| &*r.name).collect::<Vec<_>>(), ["ann", FIRST_ROLE]);
        assert!(before.iter().all(|r| r.superuser && r.login) && before[0].oid != before[1].oid);
        assert_eq!(before[1].verifier.as_deref(), Some("w"));
        db.close().await.unwrap();
        let (db, _) = Database::open(env, devices, storage(), EngineConfig::default()).await.unwrap();
        assert_eq!(db.catalog().roles().collect::<Vec<_>>(), before);
        clean(&db).await;
    });
}
