use crate::catalog::access::{Access, DefaultOf, FIRST_OWNER, Grant, Member, PUBLIC, PUBLIC_SCHEMA, Rights, Securable};
use crate::catalog::roles::Role;
use crate::database::{Database, EngineConfig};
use crate::testing::{clean, devices, simulate, storage, table};
use crate::txn::Isolation::ReadCommitted;
use terrace_storage::ObjectId;

/// Owners, privileges and memberships through a rollback, TRUNCATE, a restart, and the end of what they are of.
#[test]
fn access_is_kept_and_goes_with_its_object() {
    simulate(5, |env| async move {
        let (devices, config) = (devices(), EngineConfig::default());
        let db = Database::create(env.clone(), devices.clone(), storage(), config.clone()).await.unwrap();
        let t = table(&db, "t").await;
        let mut txn = db.begin(ReadCommitted);
        for name in ["ann", "bob", "staff"] {
            txn.create_role(Role { inherit: name != "bob", ..Role::new(name) }).await.unwrap();
        }
        txn.commit().await.unwrap();
        let oid = |name: &str| db.catalog().role(name).unwrap().oid;
        let (ann, bob, staff) = (oid("ann"), oid("bob"), oid("staff"));
        let grant = Grant { grantee: staff, grantor: ann, rights: Rights::SELECT, options: Rights::SELECT };
        let access = Access::new(ann, Some(vec![grant]));
        let mut txn = db.begin(ReadCommitted);
        txn.set_access(t.oid, access.clone()).await.unwrap();
        txn.rollback().await.unwrap();
        assert_eq!((db.catalog().owner(t.oid), db.catalog().stated_acl(t.oid)), (FIRST_OWNER, None));
        let mut txn = db.begin(ReadCommitted);
        txn.set_access(t.oid, access).await.unwrap();
        let member = |role, member| Member { role, member, grantor: FIRST_OWNER, admin: false };
        for who in [ann, bob] {
            txn.put_member(member(staff, who)).await.unwrap();
        }
        assert_eq!(txn.put_member(member(bob, staff)).await.unwrap_err().state.0, "0LP01");
        let t = txn.truncate_table(&t).await.unwrap();
        txn.commit().await.unwrap();
        clean(&db).await;
        db.close().await.unwrap();

        let (db, _) = Database::open(env, devices, storage(), config).await.unwrap();
        let catalog = db.catalog();
        assert_eq!((catalog.owner(t.oid), catalog.stated_acl(t.oid)), (ann, Some(&[grant][..])));
        assert_eq!(catalog.acl(t.oid, Securable::Table), [grant]);
        let all = |role, inherits| catalog.with_memberships(role, inherits).into_iter().collect::<Vec<u32>>();
        assert_eq!((all(ann, true), all(bob, true), all(bob, false)), (vec![ann, staff], vec![bob], vec![bob, staff]));
        let mut txn = db.begin(ReadCommitted);
        txn.drop_table(&t).await.unwrap();
        txn.drop_role("staff").await.unwrap();
        txn.commit().await.unwrap();
        assert_eq!((db.catalog().accesses().count(), db.catalog().members().count()), (0, 0));
        clean(&db).await;
    });
}

/// Privileges on columns through a rollback, TRUNCATE, a restart, and the end of the column.
#[test]
fn columns_keep_their_privileges() {
    simulate(59, |env| async move {
        let (devices, config) = (devices(), EngineConfig::default());
        let db = Database::create(env.clone(), devices.clone(), storage(), config.clone()).await.unwrap();
        let t = table(&db, "t").await;
        let grant = Grant { grantee: PUBLIC, grantor: FIRST_OWNER, rights: Rights::SELECT, options: Rights::NONE };
        let mut access = Access::new(FIRST_OWNER, None);
        access.columns = [(0, vec![grant]), (1, vec![grant])].into();
        let mut txn = db.begin(ReadCommitted);
        txn.set_access(t.oid, access.clone()).await.unwrap();
        txn.rollback().await.unwrap();
        assert_eq!(db.catalog().column_acls(t.oid).count(), 0);
        let mut txn = db.begin(ReadCommitted);
        txn.set_access(t.oid, access.clone()).await.unwrap();
        let t = txn.truncate_table(&t).await.unwrap();
        txn.commit().await.unwrap();
        clean(&db).await;
        db.close().await.unwrap();

        let (db, _) = Database::open(env, devices, storage(), config).await.unwrap();
        assert_eq!(db.catalog().access_to(t.oid), access);
        assert_eq!(db.catalog().stated_acl(t.oid), None);
        let mut txn = db.begin(ReadCommitted);
        let t = txn.drop_column(&t, 1).await.unwrap();
        let left: Vec<usize> = txn.catalog().column_acls(t.oid).map(|(at, _)| at).collect();
        assert_eq!((left, txn.catalog().column_acl(t.oid, 0)), (vec![0], &[grant][..]));
        txn.drop_table(&t).await.unwrap();
        txn.commit().await.unwrap();
        assert_eq!(db.catalog().accesses().count(), 0);
        clean(&db).await;
    });
}

#[test]
fn default_privileges_survive_a_restart_and_go_with_their_schema() {
    simulate(53, |env| async move {
        let (devices, config) = (devices(), EngineConfig::default());
        let db = Database::create(env.clone(), devices.clone(), storage(), config.clone()).await.unwrap();
        let mut txn = db.begin(ReadCommitted);
        let schema = txn.create_schema("s").await.unwrap();
        let kind = Securable::Table;
        let of = |schema: ObjectId| DefaultOf { role: FIRST_OWNER, schema: schema.0, kind };
        let read = vec![Grant { grantee: PUBLIC, grantor: FIRST_OWNER, rights: Rights::SELECT, options: Rights::NONE }];
        txn.set_access(schema.0, Access::new(FIRST_OWNER, Some(read.clone()))).await.unwrap();
        txn.set_default_acl(of(schema.0), Some(read.clone())).await.unwrap();
        txn.set_default_acl(of(ObjectId(0)), Some(vec![])).await.unwrap();
        txn.commit().await.unwrap();
        db.close().await.unwrap();
        let (db, _) = Database::open(env, devices, storage(), config).await.unwrap();
        let new = |schema| db.catalog().acl_of_new(FIRST_OWNER, schema, kind);
        assert_eq!((new(schema.0), new(PUBLIC_SCHEMA)), (Some(read.clone()), Some(vec![])));
        // What is said of the schema itself is apart from what is said of its new tables.
        assert_eq!(db.catalog().stated_acl(schema.0), Some(read.as_slice()));
        let mut txn = db.begin(ReadCommitted);
        txn.set_access(schema.0, Access::new(FIRST_OWNER, None)).await.unwrap();
        assert_eq!(txn.catalog().defaults().count(), 2);
        txn.set_default_acl(of(ObjectId(0)), None).await.unwrap();
        txn.drop_schema(schema).await.unwrap();
        txn.commit().await.unwrap();
        assert_eq!(db.catalog().defaults().count(), 0);
        clean(&db).await;
    });
}
