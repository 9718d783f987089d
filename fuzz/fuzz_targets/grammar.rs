//! Texts through lexer, parser and shapes: what they say of a text fits the text, and fits together.
#![no_main]

use std::mem::discriminant;
use terrace_grammar::{Options, parse, shape};

libfuzzer_sys::fuzz_target!(|sql: &str| {
    for standard_conforming_strings in [true, false] {
        look(sql, Options { standard_conforming_strings });
    }
});

fn look(sql: &str, options: Options) {
    let mut text = String::new();
    let found = shape(sql, options, usize::MAX, &mut text);
    let statements = match parse(sql, options) {
        Ok(statements) => statements,
        Err(error) => {
            let at = error.at.map_or(0, |at| at as usize);
            assert!(sql.is_char_boundary(at), "{error:?}");
            return;
        }
    };
    assert!(found.whole, "what parses has tokens to its end");
    // The body of a function has semicolons of its own.
    assert!(found.statements as usize >= statements.len());
    let mut end = 0;
    for statement in &statements {
        let range = statement.range.clone();
        assert!(end <= range.start && range.start < range.end, "{range:?} is not behind {end}");
        end = range.end;
        let alone = parse(&sql[range], options).expect("a statement parses without the others");
        assert_eq!(alone.len(), 1);
        assert_eq!(discriminant(alone[0].statement()), discriminant(statement.statement()));
        assert_eq!(alone[0].height, statement.height);
    }
    let mut again = String::new();
    let shapes = shape(&text, options, usize::MAX, &mut again);
    // `'a'b` becomes `$1b`, which cannot be read.
    let same = shapes.literals.is_empty() && again == text;
    assert!(same || !shapes.whole, "a shape is its own shape: {text:?}, {again:?}");
}
