use super::*;
use crate::row::RowBuf;

fn index(oid: u32, name: &str, primary: bool) -> Arc<Index> {
    Arc::new(Index {
        oid: ObjectId(oid),
        name: name.into(),
        table: ObjectId(20),
        columns: vec![1, 0],
        unique: true,
        primary,
        root: 9,
        created_by: TxnId(4),
        extras: None,
    })
}

#[test]
fn definitions_survive_their_rows() {
    let domain = Arc::new(Domain {
        space: Space::PUBLIC,
        oid: 30,
        name: "d".into(),
        base: DataType::Int4,
        digits: None,
        not_null: true,
        default_sql: None,
        checks: vec![],
        parent: None,
    });
    let columns = vec![
        ColumnDef { default_sql: Some("1 + 1".into()), missing: Datum::Int4(3), ..ColumnDef::new("a", DataType::Int4) },
        ColumnDef::new("b", DataType::Varchar(7)).not_null(),
        ColumnDef { domain: Some(domain.clone()), ..ColumnDef::new("c", DataType::Int4) },
        ColumnDef { digits: Some(Digits::Second(3)), ..ColumnDef::new("e", DataType::Time) },
        ColumnDef { generated: Some("(a || ')')".into()), ..ColumnDef::new("g", DataType::Text).not_null() },
    ];
    let t = Table::new(ObjectId(20), "t".into(), columns, vec![index(21, "i", false), index(22, "t_pkey", true)]);
    assert_eq!(t.primary_key().unwrap().name, "t_pkey");
    let through = |table: ObjectId, row: Vec<Datum>| {
        let system = system::table(table).unwrap();
        RowBuf::encode(system, &row).unwrap().view(system).to_datums()
    };
    assert_eq!(
        system::read_table(&through(system::TABLES, system::table_row(&t))).unwrap(),
        (t.oid, t.name.clone(), None)
    );
    let mut domains = Domains::default();
    domains.insert(Space::PUBLIC, "d", domain);
    for (i, c) in t.columns.iter().enumerate() {
        let row = through(system::COLUMNS, system::column_row(t.oid, i, c));
        assert_eq!(system::read_column(&row, &OwnTypes::default(), &domains, true).unwrap(), (t.oid, i, c.clone()));
    }
    for i in &t.indexes {
        assert_eq!(&system::read_index(&through(system::INDEXES, system::index_row(i))).unwrap(), &**i);
    }
    assert_eq!(system::read_table(&[Datum::Null, Datum::text("x")]).unwrap_err().state.0, "XX001");
}

#[test]
fn snapshots_do_not_change() {
    let t = Arc::new(Table::new(
        ObjectId(20),
        "t".into(),
        vec![ColumnDef::new("a", DataType::Int4)],
        vec![index(21, "i", false)],
    ));
    let empty = Catalog::default();
    let one = empty.with(t.clone());
    assert!(empty.table("t").is_none() && !empty.name_taken(Space::PUBLIC, "i"));
    assert_eq!(one.table("t"), Some(&t));
    assert_eq!(one.index("i").unwrap().oid, ObjectId(21));
    assert!(one.table("i").is_none() && one.name_taken(Space::PUBLIC, "i"));
    assert_ne!(one.version(), empty.version());
    assert!(one.without(t.oid).table("t").is_none());
    assert_eq!(one.table_by_oid(system::COLUMNS).unwrap().name, "columns");
    assert_eq!(one.tables().count(), 1);
}

#[test]
fn names_are_cut_at_a_character() {
    assert_eq!(truncate_name("short"), "short");
    assert_eq!(truncate_name(&"x".repeat(70)).len(), 63);
    assert_eq!(truncate_name(&("x".to_string() + &"é".repeat(40))).len(), 63);
    assert_eq!(truncate_name(&"é".repeat(40)).len(), 62);
}
