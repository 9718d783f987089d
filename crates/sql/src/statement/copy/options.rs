//! COPY's options: `WITH (FORMAT csv, ...)`, and the older form without parentheses.
use crate::error::unsupported;
use crate::statement::options::{switch, text};
use terrace_engine::{EngineError, Result};
use terrace_grammar::statement::{NamedOption, OptionValue};

/// How fields and lines are written.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyFormat {
    /// The rest is about the other formats.
    pub(crate) binary: bool,
    pub(crate) parquet: bool,
    pub(crate) delimiter: u8,
    pub(crate) null: String,
    /// The first line is a header: passed over, or written.
    pub(crate) header: bool,
    /// What is read of it has to be the columns' names.
    pub(crate) matched: bool,
    /// `None`: text format, or binary.
    pub(crate) csv: Option<Csv>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Csv {
    pub(crate) quote: u8,
    pub(crate) escape: u8,
    pub(crate) force_quote: Columns,
    pub(crate) force_not_null: Columns,
    pub(crate) force_null: Columns,
}

/// Columns that an option names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Columns {
    All,
    Named(Vec<String>),
    /// By their number among the copied.
    At(Vec<usize>),
}

impl Columns {
    pub(crate) fn has(&self, number: usize) -> bool {
        match self {
            Columns::All => true,
            Columns::At(at) => at.contains(&number),
            Columns::Named(names) => {
                assert!(names.is_empty(), "names are resolved before data is");
                false
            }
        }
    }

    fn of(option: &NamedOption) -> Result<Columns> {
        match &option.value {
            OptionValue::All if option.name.name == "force_quote" => Ok(Columns::All),
            OptionValue::List(names) => Ok(Columns::Named(names.iter().map(|name| name.name.clone()).collect())),
            OptionValue::All | OptionValue::None | OptionValue::Text(_) | OptionValue::Number(_) => {
                let message = format!("argument to option \"{}\" must be a list of column names", option.name.name);
                Err(EngineError::new("22023", message))
            }
        }
    }

    fn resolve(&mut self, find: &impl Fn(&str) -> Result<usize>) -> Result<()> {
        if let Columns::Named(names) = self {
            *self = Columns::At(names.iter().map(|n| find(n)).collect::<Result<_>>()?);
        }
        Ok(())
    }
}

impl CopyFormat {
    /// CSV as most programs write it.
    pub(crate) fn csv(delimiter: u8) -> CopyFormat {
        let none = || Columns::At(vec![]);
        let csv = Csv { quote: b'"', escape: b'"', force_quote: none(), force_not_null: none(), force_null: none() };
        let (binary, parquet, matched) = (false, false, false);
        CopyFormat { binary, parquet, delimiter, null: String::new(), header: true, matched, csv: Some(csv) }
    }

    pub fn is_binary(&self) -> bool {
        self.binary
    }

    pub fn is_parquet(&self) -> bool {
        self.parquet
    }

    pub fn has_header(&self) -> bool {
        self.header
    }

    /// Finds the columns that options name. `find`: a copied column's number.
    pub(crate) fn resolve(mut self, find: impl Fn(&str) -> Result<usize>) -> Result<CopyFormat> {
        if let Some(csv) = &mut self.csv {
            for columns in [&mut csv.force_quote, &mut csv.force_not_null, &mut csv.force_null] {
                columns.resolve(&find)?;
            }
        }
        Ok(self)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Csv,
    Binary,
    Parquet,
}

#[derive(Clone, Copy, PartialEq)]
enum Header {
    No,
    Yes,
    Match,
}

fn header(option: &NamedOption) -> Result<Header> {
    match &option.value {
        OptionValue::Text(text) if text.eq_ignore_ascii_case("match") => Ok(Header::Match),
        _ => switch(option).map(|on| if on { Header::Yes } else { Header::No }).map_err(|error| {
            EngineError::new(error.state.0, format!("{} requires a Boolean value or \"match\"", option.name.name))
        }),
    }
}

/// Options as they were given.
#[derive(Default)]
struct Given {
    kind: Option<Kind>,
    delimiter: Option<char>,
    null: Option<String>,
    header: Option<Header>,
    freeze: Option<bool>,
    encoding: Option<String>,
    quote: Option<char>,
    escape: Option<char>,
    force_quote: Option<Columns>,
    force_not_null: Option<Columns>,
    force_null: Option<Columns>,
}

fn once<T>(place: &mut Option<T>, value: T) -> Result<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(EngineError::new("42601", "conflicting or redundant options")),
    }
}

/// The one character of an option.
fn character(option: &NamedOption) -> Result<char> {
    let mut characters = text(option)?.chars();
    match (characters.next(), characters.next()) {
        (Some(one), None) => Ok(one),
        _ => {
            let message = format!("COPY {} must be a single one-byte character", option.name.name);
            Err(EngineError::new("0A000", message))
        }
    }
}

/// The format that a statement's options ask for.
pub(crate) fn format(options: &[NamedOption], to: bool) -> Result<CopyFormat> {
    let mut given = Given::default();
    options.iter().try_for_each(|option| given.option(option))?;
    given.format(to)
}

impl Given {
    fn option(&mut self, option: &NamedOption) -> Result<()> {
        match option.name.name.as_str() {
            "format" => match text(option)? {
                "text" => once(&mut self.kind, Kind::Text),
                "csv" => once(&mut self.kind, Kind::Csv),
                "binary" => once(&mut self.kind, Kind::Binary),
                "parquet" => once(&mut self.kind, Kind::Parquet),
                other => Err(EngineError::new("22023", format!("COPY format \"{other}\" not recognized"))),
            },
            "freeze" => once(&mut self.freeze, switch(option)?),
            "delimiter" => once(&mut self.delimiter, character(option)?),
            "null" => once(&mut self.null, text(option)?.to_owned()),
            "header" => once(&mut self.header, header(option)?),
            "quote" => once(&mut self.quote, character(option)?),
            "escape" => once(&mut self.escape, character(option)?),
            "force_quote" => once(&mut self.force_quote, Columns::of(option)?),
            "force_not_null" => once(&mut self.force_not_null, Columns::of(option)?),
            "force_null" => once(&mut self.force_null, Columns::of(option)?),
            "encoding" => once(&mut self.encoding, text(option)?.to_owned()),
            other => Err(EngineError::new("42601", format!("option \"{other}\" not recognized"))),
        }
    }

    fn format(self, to: bool) -> Result<CopyFormat> {
        if let Some(name) = &self.encoding
            && !["utf8", "utf-8", "unicode"].contains(&name.to_lowercase().as_str())
        {
            return Err(unsupported(format!("COPY in the encoding {name}")));
        }
        let is = |kind| self.kind == Some(kind);
        let (is_csv, binary, parquet) = (is(Kind::Csv), is(Kind::Binary), is(Kind::Parquet));
        let mode = if parquet { "PARQUET" } else { "BINARY" };
        let of_text = [("DELIMITER", self.delimiter.is_some()), ("NULL", self.null.is_some())];
        if (binary || parquet)
            && let Some((name, _)) = of_text.iter().find(|(_, given)| *given)
        {
            return Err(EngineError::new("42601", format!("cannot specify {name} in {mode} mode")));
        }
        if to && self.header == Some(Header::Match) {
            return Err(EngineError::new("0A000", "cannot use \"match\" with HEADER in COPY TO"));
        }
        let header = self.header.unwrap_or(Header::No);
        if (binary || parquet) && header != Header::No {
            return Err(EngineError::new("0A000", format!("cannot specify HEADER in {mode} mode")));
        }
        if parquet && !to {
            let hint = "INSERT INTO ... SELECT ... FROM 'file.parquet' reads such a file.";
            return Err(unsupported("COPY FROM of the format parquet").with_hint(hint));
        }
        if to && self.freeze == Some(true) {
            return Err(EngineError::new("0A000", "COPY FREEZE is only available using COPY FROM"));
        }
        let delimiter = one_byte(self.delimiter.unwrap_or(if is_csv { ',' } else { '\t' }), "delimiter")?;
        let null = self.null.clone().unwrap_or(if is_csv { "" } else { "\\N" }.into());
        let csv = self.csv_options(to)?;
        let (matched, header) = (header == Header::Match, header != Header::No);
        let format = CopyFormat { binary, parquet, delimiter, null, header, matched, csv };
        check(&format)?;
        Ok(format)
    }

    fn csv_options(self, to: bool) -> Result<Option<Csv>> {
        let only_csv = [
            ("quote", self.quote.is_some()),
            ("escape", self.escape.is_some()),
            ("force quote", self.force_quote.is_some()),
            ("force not null", self.force_not_null.is_some()),
            ("force null", self.force_null.is_some()),
        ];
        if self.kind != Some(Kind::Csv) {
            return match only_csv.iter().find(|(_, given)| *given) {
                Some((name, _)) => Err(EngineError::new("0A000", format!("COPY {name} available only in CSV mode"))),
                None => Ok(None),
            };
        }
        let directed = [
            ("force quote", self.force_quote.is_some(), true),
            ("force not null", self.force_not_null.is_some(), false),
            ("force null", self.force_null.is_some(), false),
        ];
        if let Some((name, ..)) = directed.iter().find(|(_, given, only_to)| *given && *only_to != to) {
            let side = if to { "FROM" } else { "TO" };
            return Err(EngineError::new("0A000", format!("COPY {name} only available using COPY {side}")));
        }
        let quote = one_byte(self.quote.unwrap_or('"'), "quote")?;
        let escape = self.escape.map_or(Ok(quote), |c| one_byte(c, "escape"))?;
        let columns = |given: Option<Columns>| given.unwrap_or(Columns::At(vec![]));
        Ok(Some(Csv {
            quote,
            escape,
            force_quote: columns(self.force_quote),
            force_not_null: columns(self.force_not_null),
            force_null: columns(self.force_null),
        }))
    }
}

fn one_byte(c: char, what: &str) -> Result<u8> {
    u8::try_from(c)
        .ok()
        .filter(u8::is_ascii)
        .ok_or_else(|| EngineError::new("0A000", format!("COPY {what} must be a single one-byte character")))
}

/// What could not be read back is refused.
fn check(format: &CopyFormat) -> Result<()> {
    let invalid = |message: String| Err(EngineError::new("22023", message));
    let within_null =
        |what: &str| Err(EngineError::new("0A000", format!("{what} must not appear in the NULL specification")));
    let delimiter = char::from(format.delimiter);
    if "\r\n".contains(delimiter) {
        return invalid("COPY delimiter cannot be newline or carriage return".into());
    }
    if format.null.contains(['\r', '\n']) {
        return invalid("COPY null representation cannot use newline or carriage return".into());
    }
    if format.null.contains(delimiter) {
        return within_null("COPY delimiter");
    }
    match &format.csv {
        None if "\\.abcdefghijklmnopqrstuvwxyz0123456789".contains(delimiter) => {
            invalid(format!("COPY delimiter cannot be \"{delimiter}\""))
        }
        Some(csv) if csv.quote == format.delimiter => invalid("COPY delimiter and quote must be different".into()),
        Some(csv) if format.null.contains(char::from(csv.quote)) => within_null("CSV quote character"),
        _ => Ok(()),
    }
}
