use super::*;
use proptest::prelude::*;

fn refused(text: &str) -> (String, String) {
    let error = check(text).expect_err(text);
    assert_eq!((error.state.0, error.message.as_str()), ("22P02", "invalid input syntax for type json"), "{text}");
    (error.detail.expect("a detail"), error.context.expect("a context"))
}

/// What PostgreSQL 15 says.
#[test]
fn mistakes_are_told_as_postgresql_tells_them() {
    for (text, detail, context) in [
        ("", "The input string ended unexpectedly.", ""),
        ("{\"a\":1", "The input string ended unexpectedly.", "{\"a\":1"),
        ("{\"a\" 1}", "Expected \":\", but found \"1\".", "{\"a\" 1..."),
        ("{a:1}", "Token \"a\" is invalid.", "{a..."),
        ("[1,]", "Expected JSON value, but found \"]\".", "[1,]"),
        ("[1 2]", "Expected \",\" or \"]\", but found \"2\".", "[1 2..."),
        ("01", "Token \"01\" is invalid.", "01"),
        ("-", "Token \"-\" is invalid.", "-"),
        ("1.", "Token \"1.\" is invalid.", "1."),
        (".5", "Token \".\" is invalid.", "...."),
        ("\"abc", "Token \"\"abc\" is invalid.", "\"abc"),
        ("\"a\\x\"", "Escape sequence \"\\x\" is invalid.", "\"a\\x..."),
        ("\"\\u12g4\"", "\"\\u\" must be followed by four hexadecimal digits.", "\"\\u12g..."),
        ("{\"a\":1}}", "Expected end of input, but found \"}\".", "{\"a\":1}}"),
        ("{\"a\":1,}", "Expected string, but found \"}\".", "{\"a\":1,}"),
        ("{,}", "Expected string or \"}\", but found \",\".", "{,..."),
        ("{\"a\":1 \"b\":2}", "Expected \",\" or \"}\", but found \"\"b\"\".", "{\"a\":1 \"b\"..."),
        ("}", "Expected JSON value, but found \"}\".", "}"),
        ("\"a\tb\"", "Character with value 0x09 must be escaped.", "\"a..."),
        ("a-b", "Token \"a\" is invalid.", "a..."),
        ("\"\\", "Token \"\"\\\" is invalid.", "\"\\"),
        ("{\"é\":xé}", "Token \"xé\" is invalid.", "{\"é\":xé..."),
    ] {
        assert_eq!(refused(text), (detail.to_owned(), format!("JSON data, line 1: {context}")), "{text}");
    }
    let (detail, context) = refused("{\"a\":1\n ,\"b\":x}");
    assert_eq!((detail.as_str(), context.as_str()), ("Token \"x\" is invalid.", "JSON data, line 2:  ,\"b\":x..."));
}

#[test]
fn surrogates_and_nul_are_for_json_alone() {
    for (text, state, context) in [
        ("\"\\ud800\"", "22P02", "\"\\ud800\""),
        ("\"\\ud800x\"", "22P02", "\"\\ud800x..."),
        ("\"\\ud800\\u0041\"", "22P02", "\"\\ud800\\u0041..."),
        ("\"\\udc00\"", "22P02", "\"\\udc00..."),
        ("\"\\u0000\"", "22P05", "\"\\u0000..."),
    ] {
        check(text).expect(text);
        let error = normal(text).expect_err(text);
        assert_eq!((error.state.0, error.context), (state, Some(format!("JSON data, line 1: {context}"))), "{text}");
    }
    assert_eq!(normal("\"\\ud83d\\ude00\"").unwrap(), "\"😀\"");
}

#[test]
fn numbers_are_those_of_numeric() {
    for (written, shown) in [
        ("-0", "0"),
        ("-0.0", "0.0"),
        ("1.0e1", "10"),
        ("1.50e1", "15.0"),
        ("1E-5", "0.00001"),
        ("0e5", "0"),
        ("0.0e5", "0"),
        ("0e-2", "0.00"),
        ("1.10", "1.10"),
        ("-12.5e-3", "-0.0125"),
        ("0.05e1", "0.5"),
        ("123456789012345678901234567890.5", "123456789012345678901234567890.5"),
    ] {
        assert_eq!(normal(written).unwrap(), shown, "{written}");
    }
    for (written, bytes) in [("1e131071", 131_072), ("1e-16383", 16_385)] {
        assert_eq!(normal(written).unwrap().len(), bytes, "{written}");
    }
    for written in ["1e131072", "1e-16384", "1e2000000000", "1e99999999999999999999"] {
        assert_eq!(normal(written).expect_err(written).state.0, "22003", "{written}");
    }
}

#[test]
fn objects_are_normal() {
    let read = " {\"bb\":1,\"a\" : [ ] , \"a\":{\"z\":null,\"y\":true}, \"\":\"\\u00e9\\n\\u001f\\/\" ,\"b\":1.0}";
    let shown = "{\"\": \"é\\n\\u001f/\", \"a\": {\"y\": true, \"z\": null}, \"b\": 1.0, \"bb\": 1}";
    assert_eq!(normal(read).unwrap(), shown);
    assert_eq!(normal(shown).unwrap(), shown);
    assert_eq!(Json::read(shown).unwrap().member("bb"), Some(&Json::Number("1".into())));
    assert_eq!(Json::read(shown).unwrap().member("c"), None);
    let found = members(read).unwrap();
    let found: Vec<(&str, &str)> = found.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    let expected =
        [("bb", "1"), ("a", "[ ]"), ("a", "{\"z\":null,\"y\":true}"), ("", "\"\\u00e9\\n\\u001f\\/\""), ("b", "1.0")];
    assert_eq!(found, expected);
    assert_eq!(items(" [ {\"a\": [1]},2, \"x\" ] ").unwrap(), ["{\"a\": [1]}", "2", "\"x\""]);
}

#[test]
fn the_order_is_postgresqls() {
    let ordered = [
        "[]",
        "null",
        "\"\"",
        "\"a\"",
        "\"ab\"",
        "\"b\"",
        "-1e30",
        "-12.5",
        "-12",
        "-0.5",
        "0",
        "0.001",
        "0.5",
        "1",
        "1.05",
        "1.5",
        "2",
        "10",
        "11",
        "1e30",
        "false",
        "true",
        "[null]",
        "[1]",
        "[[]]",
        "[{}]",
        "[1, 2]",
        "[2, 1]",
        "{}",
        "{\"a\": 1}",
        "{\"a\": 2}",
        "{\"aa\": 0}",
        "{\"b\": 0}",
        "{\"a\": 1, \"b\": 1}",
    ];
    let keys: Vec<Vec<u8>> = ordered.iter().map(|text| key(text).unwrap()).collect();
    for at in 1..keys.len() {
        assert!(keys[at - 1] < keys[at], "{} < {}", ordered[at - 1], ordered[at]);
    }
    assert_eq!(key("[1.0, {\"a\": 100}]").unwrap(), key("[1, {\"a\": 1e2}]").unwrap());
    assert!(Json::read("[1.5, 10, 0]").unwrap().is_alone());
    assert!(!Json::read("[{\"a\": 1.50}]").unwrap().is_alone());
}

#[test]
fn deep_values_are_read_and_deeper_ones_refused() {
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert_eq!(normal(&deep(1000)).unwrap(), deep(1000));
    assert_eq!(key(&deep(1000)).unwrap().len(), 1 + 999 * 5 + 5);
    assert_eq!(check(&deep(1001)).expect_err("too deep").state.0, "54001");
}

proptest! {
    /// Texts that are nearly JSON: a library takes and refuses the same ones.
    #[test]
    fn a_library_reads_the_same(text in "([\\[\\]{},: ]|\"[a\\\\\"]{0,2}\"|-?[0-9]{1,2}(\\.5)?(e1)?|true|null){0,8}") {
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        prop_assert_eq!(check(&text).is_ok(), theirs.is_ok(), "{}", text);
    }

    #[test]
    fn a_normal_text_stays(text in "\\PC{0,20}", number in any::<i64>(), fraction in any::<u16>()) {
        let number = Json::Number(format!("{number}.{fraction}1").into());
        let value = Json::Array(vec![Json::Text(text.as_str().into()), number]);
        let shown = value.shown().unwrap();
        prop_assert_eq!(Json::read(&shown).unwrap(), value);
        let theirs: serde_json::Value = serde_json::from_str(&shown).unwrap();
        prop_assert_eq!(theirs[0].as_str(), Some(text.as_str()));
    }
}
