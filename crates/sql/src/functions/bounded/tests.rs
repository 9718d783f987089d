use super::*;
use datafusion::arrow::array::Int64Array;

fn column(texts: &[Option<&str>]) -> Text {
    Text::Each(StringArray::from(texts.to_vec()))
}

fn shown(array: &StringArray) -> Vec<Option<&str>> {
    array.iter().collect()
}

#[test]
fn repeated() {
    let texts = column(&[Some("ab"), Some(""), None, Some("ä"), Some("x"), Some("x")]);
    let times = Int64Array::from(vec![Some(3), Some(i64::MAX), Some(1), Some(2), Some(-5), None]);
    let made = texts::repeat("repeat", 6, &texts, &times).expect("short");
    assert_eq!(shown(&made), [Some("ababab"), Some(""), None, Some("ää"), Some(""), None]);
    // Longer than a piece, and no multiple of one.
    let long = texts::repeat("repeat", 1, &Text::constant("abc"), &Int64Array::from(vec![700_001])).expect("2 MB");
    assert_eq!(long.value(0), "abc".repeat(700_001));
    let longer = texts::repeat("repeat", 1, &Text::constant(&"xyz".repeat(500_000)), &Int64Array::from(vec![3]));
    assert_eq!(longer.expect("4.5 MB").value(0), "xyz".repeat(1_500_000));
}

#[test]
fn too_long() {
    let error = |made: Result<StringArray>| crate::error::from_datafusion(made.expect_err("too long")).state.0;
    let many = |n: i64| Int64Array::from(vec![n]);
    assert_eq!(error(texts::repeat("repeat", 1, &Text::constant("x"), &many(2_147_483_647))), "54000");
    assert_eq!(error(texts::repeat("repeat", 1, &Text::constant("xx"), &many(i64::MAX))), "54000");
    let blank = Text::constant(" ");
    assert_eq!(error(texts::pad("lpad", true, 1, &Text::constant("x"), &many(1 << 30), &blank)), "54000");
}

#[test]
fn padded() {
    let texts = column(&[Some("hi"), Some("hi"), Some("höllo"), Some("hi"), None, Some("")]);
    let lengths = Int64Array::from(vec![5, 7, 2, -1, 3, 4]);
    let made = |left, fill: &str| texts::pad("pad", left, 6, &texts, &lengths, &Text::constant(fill)).expect("short");
    let left = [Some("xyxhi"), Some("xyxyxhi"), Some("hö"), Some(""), None, Some("xyxy")];
    assert_eq!(shown(&made(true, "xy")), left);
    let right = [Some("hixyx"), Some("hixyxyx"), Some("hö"), Some(""), None, Some("xyxy")];
    assert_eq!(shown(&made(false, "xy")), right);
    assert_eq!(shown(&made(true, "")), [Some("hi"), Some("hi"), Some("hö"), Some(""), None, Some("")]);
    assert_eq!(shown(&made(true, "äö"))[0], Some("äöähi"));
}

#[test]
fn replaced_and_translated() {
    let texts = column(&[Some("abcabc"), Some("aaa"), None, Some("")]);
    let replaced = |from: &str, to: &str| {
        texts::replace("replace", 4, [&texts, &Text::constant(from), &Text::constant(to)]).expect("short")
    };
    assert_eq!(shown(&replaced("bc", "xyz")), [Some("axyzaxyz"), Some("aaa"), None, Some("")]);
    assert_eq!(shown(&replaced("aa", "b")), [Some("abcabc"), Some("ba"), None, Some("")]);
    assert_eq!(shown(&replaced("", "b")), [Some("abcabc"), Some("aaa"), None, Some("")]);
    let translated = |from: &str, to: &str| {
        texts::translate("translate", 4, [&texts, &Text::constant(from), &Text::constant(to)]).expect("short")
    };
    assert_eq!(shown(&translated("abc", "xä")), [Some("xäxä"), Some("xxx"), None, Some("")]);
    assert_eq!(shown(&translated("aa", "xy")), [Some("xbcxbc"), Some("xxx"), None, Some("")]);
    let each = texts::translate(
        "translate",
        4,
        [&texts, &column(&[Some("a"), Some("a"), Some("a"), None]), &column(&[Some("1"), Some(""), None, None])],
    );
    assert_eq!(shown(&each.expect("short")), [Some("1bc1bc"), Some(""), None, None]);
}

#[test]
fn joined_texts() {
    let made = texts::join("textcat", 3, [&column(&[Some("a"), None, Some("")]), &Text::constant("b")]).expect("short");
    assert_eq!(shown(&made), [Some("ab"), None, Some("b")]);
}

/// Whatever a function makes, it notices a cancel after a piece of it.
#[test]
fn q30_a_cancel_is_noticed_within_a_value() {
    use crate::cancel::{CancelToken, Reason};
    use datafusion::execution::memory_pool::UnboundedMemoryPool;
    use futures::executor::block_on;
    use std::pin::pin;
    let token = Arc::<CancelToken>::default();
    let work = memory::Work::new(token.clone(), Arc::new(UnboundedMemoryPool::default()));
    let text = Text::constant(&"ab".repeat(1 << 20));
    let number = |n: i64| Int64Array::from(vec![n]);
    let made = block_on(work.over(pin!(async {
        // What is asked for first is there; the cancel comes afterwards.
        let mut out = texts::Out::new(vec![]);
        out.put("before").expect("nothing is cancelled");
        token.cancel(Reason::Timeout);
        let one = out.put_times("abc", 10_000_000);
        assert!(out.made() < 4 << 20, "not all of it");
        let long = [&text, &Text::constant("a"), &Text::constant("xyz")];
        [
            one.map(|()| StringArray::new_null(0)),
            texts::repeat("repeat", 1, &Text::constant("x"), &number(1 << 20)),
            texts::pad("lpad", true, 1, &Text::constant("x"), &number(1 << 20), &text),
            texts::replace("replace", 1, long),
            texts::translate("translate", 1, long),
        ]
    })));
    for made in made {
        assert_eq!(crate::error::from_datafusion(made.expect_err("it was cancelled")).state.0, "57014");
    }
}
