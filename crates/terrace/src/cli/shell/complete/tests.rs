use super::*;

#[test]
fn words_names_and_commands_are_completed() {
    let names = ["sales".to_string(), "\"Odd Name\"".to_string(), "id".to_string()];
    assert_eq!(candidates("sa", &names), ["sales", "savepoint"]);
    assert_eq!(candidates("SEL", &names), ["SELECT"]);
    assert_eq!(candidates("\"o", &names), ["\"Odd Name\""]);
    assert_eq!(candidates("\\ti", &names), ["\\timing"]);
    assert_eq!(candidates("", &names).len(), names.len());
    assert_eq!(word_start("select sa", 9), 7);
    assert_eq!(word_start("select ä", "select ä".len()), 7);
    assert_eq!(word_start("a,b", 2), 2);
}
