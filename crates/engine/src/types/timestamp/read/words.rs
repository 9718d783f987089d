//! The words that texts of times have.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Word {
    Late,
    Early,
    Epoch,
    Now,
    /// `today` and its like: days from today.
    Day(i64),
    /// Midnight, UTC.
    AllBalls,
    Month(i64),
    Weekday,
    /// AM; true: PM.
    Half(bool),
    /// AD; true: BC.
    Era(bool),
    /// An hour of summer time.
    Summer,
    Label(Label),
    /// `t`
    TimeFollows,
    Ignored,
}

/// What the number behind a word is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Label {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Julian,
    Time,
    /// A field that no text can set.
    Other,
}

/// Of a word in small letters, of which ten count.
pub(super) fn of(word: &str) -> Option<Word> {
    let word = word.get(..10).unwrap_or(word);
    Some(match word {
        "infinity" | "+infinity" => Word::Late,
        "-infinity" => Word::Early,
        "epoch" => Word::Epoch,
        "now" => Word::Now,
        "today" => Word::Day(0),
        "tomorrow" => Word::Day(1),
        "yesterday" => Word::Day(-1),
        "allballs" => Word::AllBalls,
        "ad" => Word::Era(false),
        "bc" => Word::Era(true),
        "am" => Word::Half(false),
        "pm" => Word::Half(true),
        "at" | "on" => Word::Ignored,
        "dst" => Word::Summer,
        "t" => Word::TimeFollows,
        "y" => Word::Label(Label::Year),
        "m" => Word::Label(Label::Month),
        "d" => Word::Label(Label::Day),
        "h" => Word::Label(Label::Hour),
        "mm" => Word::Label(Label::Minute),
        "s" => Word::Label(Label::Second),
        "j" | "jd" | "julian" => Word::Label(Label::Julian),
        "dow" | "doy" | "isodow" | "isoyear" => Word::Label(Label::Other),
        "sun" | "sunday" | "mon" | "monday" | "tue" | "tues" | "tuesday" | "wed" | "weds" | "wednesday" | "thu"
        | "thur" | "thurs" | "thursday" | "fri" | "friday" | "sat" | "saturday" => Word::Weekday,
        "jan" | "january" => Word::Month(1),
        "feb" | "february" => Word::Month(2),
        "mar" | "march" => Word::Month(3),
        "apr" | "april" => Word::Month(4),
        "may" => Word::Month(5),
        "jun" | "june" => Word::Month(6),
        "jul" | "july" => Word::Month(7),
        "aug" | "august" => Word::Month(8),
        "sep" | "sept" | "september" => Word::Month(9),
        "oct" | "october" => Word::Month(10),
        "nov" | "november" => Word::Month(11),
        "dec" | "december" => Word::Month(12),
        _ => return None,
    })
}
