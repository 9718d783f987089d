use super::*;

#[test]
fn each_style_shows_values_of_every_kind() {
    let columns = ["id".to_string(), "text".to_string()];
    let data = [
        vec![Some("7".to_string()), Some("a, \"b\"\nc".to_string())],
        vec![Some("10".to_string()), None],
        vec![None, Some(String::new())],
    ];
    let table = " id |  text\n----+--------\n  7 | a, \"b\"\n    | c\n 10 |\n    |\n(3 rows)\n";
    assert_eq!(rows(Style::Table, &columns, &data), table);
    assert_eq!(rows(Style::Csv, &columns, &data), "id,text\n7,\"a, \"\"b\"\"\nc\"\n10,\n,\"\"\n");
    let expanded = "-[ RECORD 1 ]-\nid   | 10\ntext |\n";
    assert_eq!(rows(Style::Expanded, &columns, &data[1..2]), expanded);
    assert_eq!(rows(Style::Table, &columns, &data[1..2]), " id | text\n----+------\n 10 |\n(1 row)\n");
}

#[test]
fn wide_characters_take_two_columns_of_the_terminal() {
    let columns = ["id".to_string(), "t".to_string()];
    let row = |id: &str, text: &str| vec![Some(id.to_string()), Some(text.to_string())];
    let data = [row("1", "日本"), row("2", "ab"), row("3", "e\u{301}a")];
    let table = " id |  t\n----+------\n  1 | 日本\n  2 | ab\n  3 | e\u{301}a\n(3 rows)\n";
    assert_eq!(rows(Style::Table, &columns, &data), table);
}
