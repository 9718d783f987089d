use super::*;

fn of(oid: u32, attributes: &[(&str, DataType)]) -> CompositeType {
    let attribute = |(name, data_type): &(&str, DataType)| Attribute { name: (*name).into(), data_type: *data_type };
    let def = CompositeDef::new([oid, oid + 1, oid + 2], "pair", attributes.iter().map(attribute)).unwrap();
    CompositeType::of(def).unwrap()
}

#[test]
fn text_is_read_and_written() {
    let pair = of(90_000, &[("a", DataType::Int4), ("b", DataType::Text)]);
    let read = |text: &str| DataType::Composite(pair).parse(text);
    for text in ["(1,x)", "(1,\"x y\")", "(,)", "(1,\"\")", "(,\"a\"\"b\\\\\")"] {
        assert_eq!(read(text).unwrap().to_string(), text);
    }
    assert_eq!(read(" ( 1, x) ").unwrap().to_string(), "(1,\" x\")");
    for (text, detail) in [
        ("1,2", "Missing left parenthesis."),
        ("(1)", "Too few columns."),
        ("(1,2,3)", "Too many columns."),
        ("(1,2", "Unexpected end of input."),
        ("(1,2)x", "Junk after right parenthesis."),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!((error.state.0, error.detail.as_deref()), ("22P02", Some(detail)), "{text}");
    }
}

#[test]
fn values_outlive_changes_of_their_type() {
    let before = of(90_010, &[("a", DataType::Int4), ("b", DataType::Text)]);
    let value = Record::new(before, &[Datum::Int4(7), Datum::text("x")]).unwrap();
    let mut all = before.def().all().to_vec();
    all.push(Attribute { name: "c".into(), data_type: DataType::Int8 });
    let added = CompositeType::of(before.def().with(all.clone()).unwrap()).unwrap();
    assert!(added.is_same(before) && added != before);
    assert_eq!(value.clone().renewed(added).view().to_string(), "(7,x,)");
    all[0].name = String::new();
    let dropped = CompositeType::of(before.def().with(all).unwrap()).unwrap();
    assert_eq!(value.clone().renewed(dropped).view().to_string(), "(x,)");
    let newer = Record::new(dropped, &[Datum::text("y"), Datum::Int8(1)]).unwrap();
    assert_eq!(newer.view().to_string(), "(y,1)");
    // By the definition of a statement that began before.
    assert_eq!(newer.renewed(before).view().to_string(), "(,y)");
}

#[test]
fn order_is_by_attribute_with_nulls_last() {
    let pair = of(90_020, &[("a", DataType::Int4), ("b", DataType::Text)]);
    let read = |text: &str| DataType::Composite(pair).parse(text).unwrap();
    let mut rows: Vec<Datum> = ["(2,a)", "(,a)", "(1,)", "(1,b)", "(1,a)", "(,)"].map(read).into();
    rows.sort_by(|a, b| a.as_ref().cmp_key(b.as_ref()));
    let shown: Vec<String> = rows.iter().map(Datum::to_string).collect();
    assert_eq!(shown, ["(1,a)", "(1,b)", "(1,)", "(2,a)", "(,a)", "(,)"]);
    let mut keys: Vec<Vec<u8>> = vec![];
    for row in &rows {
        let mut key = vec![];
        crate::key::encode_datum(&mut key, row.as_ref());
        keys.push(key);
    }
    assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
}

#[test]
fn damaged_bytes_are_told() {
    let pair = of(90_030, &[("a", DataType::Int4), ("b", DataType::Text)]);
    let value = Record::new(pair, &[Datum::Int4(7), Datum::text("x")]).unwrap();
    for length in 0..value.bytes().len() {
        assert!(check(&value.bytes()[..length], pair).is_err(), "{length}");
    }
    let mut longer = value.bytes().to_vec();
    longer.push(0);
    assert!(check(&longer, pair).is_err());
    for at in 0..value.bytes().len() {
        let mut other = value.bytes().to_vec();
        other[at] ^= 0xff;
        // Whatever is found, nothing panics.
        if check(&other, pair).is_ok() {
            RecordView::stored(&other, pair).values().for_each(drop);
        }
    }
}
