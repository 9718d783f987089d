use super::*;

#[test]
fn addresses_of_all_kinds() {
    let read = |address: &str| parse(address, Some("from outside".into()), "test").map_err(|e| e.to_string());
    let plain = read("127.0.0.1:5433").unwrap();
    assert_eq!(shown(&plain), "terrace@127.0.0.1:5433");
    assert_eq!((plain.get_dbname(), plain.get_password()), (Some("terrace"), Some(&b"from outside"[..])));
    let named = read("postgres://ann:secret@db.example:7000/terrace").unwrap();
    assert_eq!(shown(&named), "ann@db.example:7000");
    assert_eq!(named.get_password(), Some(&b"secret"[..]));
    assert_eq!(shown(&read("host=/tmp user=bob").unwrap()), "bob@/tmp");
    let error = read("127.0.0.1:port").unwrap_err();
    assert!(error.contains("write HOST:PORT"), "{error}");
}
