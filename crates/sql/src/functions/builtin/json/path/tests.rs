use super::*;

fn items(json: &str, path: &str) -> String {
    let values = [Datum::Jsonb(json.into()), Datum::text(path)];
    match found(&values, false) {
        Ok(found) => found.iter().map(|item| item.shown().unwrap()).collect::<Vec<String>>().join(" "),
        Err(error) => error.state.0.to_owned(),
    }
}

#[test]
fn items_that_are_found() {
    for (json, path, wanted) in [
        (r#"{"a": 12}"#, "$.a + 2", "14"),
        (r#"{"a": [1, 2.50]}"#, "$.a[*] * 2", "22038"),
        (r#"{"a": [1, 2.50]}"#, "$.a[last] * 2", "5.00"),
        ("[1, [2, 3]]", "$[*][*]", "1 2 3"),
        ("[1, [2, 3]]", "strict $[*][*]", "22039"),
        ("[1, 2, 3]", "$[0, 1 to last]", "1 2 3"),
        ("[1, 2, 3]", "strict $[3]", "22033"),
        ("[1, 2, 3]", "$[3]", ""),
        (r#"{"a": {"b": 1}}"#, "$.**", r#"{"a": {"b": 1}} {"b": 1} 1"#),
        (r#"{"a": {"b": 1}}"#, "$.**{1 to last}.b", "1"),
        (r#"[{"a": 1}, {"b": 2}, 3]"#, "$.a", "1"),
        (r#"[{"a": 1}, {"b": 2}, 3]"#, "strict $[*].a", "2203A"),
        ("[1, 2, 3]", "$[*] ? (@ > 1 && !(@ == 3))", "2"),
        (r#"[1, "a", null]"#, "$[*] ? ((@ > 0) is unknown)", r#""a""#),
        (r#"["abc", "ABD", "x"]"#, r#"$[*] ? (@ like_regex "^ab" flag "i")"#, r#""abc" "ABD""#),
        (r#"["abc", "x"]"#, r#"$[*] ? (@ starts with "ab")"#, r#""abc""#),
        ("[1, 2]", "$.size()", "2"),
        ("[1.5, -1.5]", "$.floor()", "1 -2"),
        ("1", "1 / 0", "22012"),
        ("1", "$x", "42704"),
        ("1", "(1 < 2).type()", r#""boolean""#),
        ("1", "-1.5e2 - -$", "-149"),
        ("1", "10 / 3", "3.3333333333333333"),
    ] {
        assert_eq!(items(json, path), wanted, "{path}");
    }
}

#[test]
fn long_paths() {
    assert_eq!(items("5", &format!("${}", "[0]".repeat(290))), "5");
    assert_eq!(items("5", &format!("1{}", " + 1".repeat(290))), "291");
    let deep = format!("$ ? ({}@ == 5{})", "exists(@ ? (".repeat(45), "))".repeat(45));
    assert_eq!(items("5", &deep), "5");
    let wide = format!("$ ? (@ == 5{})", " || @ == 6".repeat(5000));
    assert_eq!(items("5", &wide), "5");
}

#[test]
fn what_is_no_path() {
    for (path, state) in [
        ("", "22P02"),
        ("@", "42601"),
        ("last", "42601"),
        ("$[", "42601"),
        ("$.a = 1", "42601"),
        ("1 < 2 < 3", "42601"),
        ("(1 < 2) + 1", "42601"),
        ("$ ? (@)", "42601"),
        ("00", "42601"),
        ("1a", "42601"),
        (r#"$ ? (@ like_regex "(")"#, "2201B"),
        (r#"$ ? (@ like_regex "a" flag "z")"#, "42601"),
        ("$.datetime()", "0A000"),
        (&"(".repeat(5000), "54001"),
        (&format!("${}", "[0]".repeat(5000)), "54001"),
        (&format!("1{}", " + 1".repeat(5000)), "54001"),
        (&format!("{}1", "-".repeat(5000)), "54001"),
        ("1 == 1 && 2", "42601"),
        ("1 || 2 == 2", "42601"),
    ] {
        assert_eq!(check(path).unwrap_err().state.0, state, "{path}");
    }
}

#[test]
fn silence_is_about_the_json_alone() {
    let with = |path: &str, variables: &str, silent: bool| {
        let values = ["[1]", variables].map(|json| Datum::Jsonb(json.into()));
        let [whole, variables] = values;
        exists(&[whole, Datum::text(path), variables, Datum::Bool(silent)], false)
    };
    assert_eq!(with("strict $.a", "{}", true).unwrap(), Datum::Null);
    assert_eq!(with("strict $.a", "{}", false).unwrap_err().state.0, "2203A");
    assert_eq!(with("$y", "{}", true).unwrap_err().state.0, "42704");
    assert_eq!(with("$y", "[]", true).unwrap_err().state.0, "22023");
    assert_eq!(with("$[*] ? (@ < $y)", r#"{"y": 2}"#, false).unwrap(), Datum::Bool(true));
}
