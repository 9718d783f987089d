//! Which characters are letters, digits, blanks and so on, as Rust's regular expressions write it.
//!
//! 1. They are those of a C library whose LC_CTYPE is `C.UTF-8`, which knows Unicode: what `lc_ctype` says. (A library
//!    may know an earlier version of Unicode, and so fewer characters.)
//! 2. Each is a set in brackets, so it may stand in a set and alone.
//!
//! Source: glibc's `gen_unicode_ctype.py`, and PostgreSQL 15's answers for each code point.
use regex::Regex;
use std::sync::LazyLock;

/// Blanks that a line may be broken at.
macro_rules! spaces {
    () => {
        r"\t-\r\x20\x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{2028}\x{2029}\x{205f}\x{3000}"
    };
}

/// Digits of other scripts count as letters.
macro_rules! letters_and_digits {
    () => {
        r"\p{Alphabetic}\p{Nd}"
    };
}

pub(super) const SPACE: &str = concat!("[", spaces!(), "]");
pub(super) const NO_SPACE: &str = concat!("[^", spaces!(), "]");
pub(super) const WORD: &str = concat!("[", letters_and_digits!(), "_]");
pub(super) const NO_WORD: &str = concat!("[^", letters_and_digits!(), "_]");

/// What `[:name:]` stands for in a set; `None`: nothing.
pub(super) fn named(name: &str, any_case: bool) -> Option<&'static str> {
    const LETTERS: &str = concat!("[", letters_and_digits!(), "--0-9]");
    Some(match name {
        "upper" | "lower" if any_case => LETTERS,
        "alpha" => LETTERS,
        "alnum" => concat!("[", letters_and_digits!(), "]"),
        // `ǅ` and its kind are both.
        "upper" => r"[\p{Uppercase}\p{Lt}]",
        "lower" => r"[\p{Lowercase}\x{1c5}\x{1c8}\x{1cb}\x{1f2}]",
        "space" => SPACE,
        "word" => WORD,
        "digit" => "[0-9]",
        "xdigit" => "[0-9A-Fa-f]",
        "blank" => r"[\x20\t]",
        "cntrl" => r"[\p{Cc}]",
        "print" => r"[\P{Cn}--[\p{Cc}\p{Zl}\p{Zp}]]",
        "graph" => concat!(r"[\P{Cn}--[\p{Cc}", spaces!(), "]]"),
        "punct" => concat!(r"[\P{Cn}--[\p{Cc}", spaces!(), letters_and_digits!(), "]]"),
        "ascii" => r"[\x00-\x7f]",
        _ => return None,
    })
}

/// Whether a character is a letter or a digit.
pub(super) fn is_letter_or_digit(c: char) -> bool {
    static DIGITS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\p{Nd}").expect("a set of characters"));
    c.is_alphabetic() || c.is_ascii_digit() || c.is_numeric() && DIGITS.is_match(c.encode_utf8(&mut [0; 4]))
}
