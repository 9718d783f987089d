use super::*;

#[test]
fn statements_say_where_data_goes() {
    for (sql, way) in [
        ("COPY t FROM STDIN;", Some(Direction::In)),
        ("-- x\ncopy t (a, b) from stdin(format csv)", Some(Direction::In)),
        ("copy (select 'from stdin' from t) to stdout csv;", Some(Direction::Out)),
        ("COPY t TO '/tmp/x'", None),
        ("SELECT 'COPY t TO STDOUT'", None),
        ("", None),
    ] {
        assert_eq!(direction(sql), way, "{sql}");
    }
}

#[test]
fn the_command_becomes_sql() {
    let parsed = |text| Command::parse(text).map(|c| (c.sql, c.direction, c.file));
    let command = |sql: &str, way, file: Option<&str>| Ok((sql.to_string(), way, file.map(str::to_string)));
    assert_eq!(
        parsed("t from x.csv csv header"),
        command("COPY t FROM STDIN csv header", Direction::In, Some("x.csv"))
    );
    assert_eq!(
        parsed("t (a, b) FROM 'it''s here' WITH (FORMAT csv)"),
        command("COPY t (a, b) FROM STDIN WITH (FORMAT csv)", Direction::In, Some("it's here"))
    );
    assert_eq!(
        parsed("(select 1 from t) to stdout"),
        command("COPY (select 1 from t) TO STDOUT", Direction::Out, None)
    );
    assert_eq!(parsed("\"from\" to x"), command("COPY \"from\" TO STDOUT", Direction::Out, Some("x")));
    for wrong in ["", "t", "t from", "from x", "t to program 'cat'"] {
        assert!(Command::parse(wrong).is_err(), "{wrong}");
    }
}
