use super::without_places;

#[test]
fn places_are_left_out_but_numbers_and_texts_are_not() {
    let shown = r#"Expr { at: 17, kind: Literal(Text("a \" at: 5")), word_at: 3, n: Int(4) }"#;
    let kept = r#"Expr { at: , kind: Literal(Text("a \" at: 5")), word_at: , n: Int(4) }"#;
    assert_eq!(without_places(shown), kept);
}
