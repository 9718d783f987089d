//! COPY's options: `WITH (FORMAT csv, ...)`, and the older form without parentheses.
use crate::error::unsupported;
use crate::parse::copy_options::ALL;
use crate::parse::fold;
use datafusion::sql::sqlparser::ast::{CopyLegacyCsvOption, CopyLegacyOption, CopyOption, Ident};
use terrace_engine::{EngineError, Result};

/// How fields and lines are written.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyFormat {
    pub(crate) delimiter: u8,
    pub(crate) null: String,
    /// The first line is a header: passed over, or written.
    pub(crate) header: bool,
    /// `None`: text format.
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

    fn of(names: &[Ident]) -> Columns {
        match names {
            [all] if all.value == ALL => Columns::All,
            names => Columns::Named(names.iter().map(fold).collect()),
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

/// Options as they were given.
#[derive(Default)]
struct Given {
    csv: Option<bool>,
    delimiter: Option<char>,
    null: Option<String>,
    header: Option<bool>,
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

/// The format that a statement's options ask for.
pub(crate) fn format(options: &[CopyOption], legacy: &[CopyLegacyOption], to: bool) -> Result<CopyFormat> {
    let mut given = Given::default();
    options.iter().try_for_each(|option| given.option(option))?;
    legacy.iter().try_for_each(|option| given.legacy(option))?;
    given.format(to)
}

impl Given {
    fn option(&mut self, option: &CopyOption) -> Result<()> {
        match option {
            CopyOption::Format(name) => match name.value.to_lowercase().as_str() {
                "text" => once(&mut self.csv, false),
                "csv" => once(&mut self.csv, true),
                "binary" => Err(unsupported("the binary format of COPY")),
                other => Err(EngineError::new("22023", format!("COPY format \"{other}\" not recognized"))),
            },
            CopyOption::Freeze(freeze) => once(&mut self.freeze, *freeze),
            CopyOption::Delimiter(c) => once(&mut self.delimiter, *c),
            CopyOption::Null(text) => once(&mut self.null, text.clone()),
            CopyOption::Header(header) => once(&mut self.header, *header),
            CopyOption::Quote(c) => once(&mut self.quote, *c),
            CopyOption::Escape(c) => once(&mut self.escape, *c),
            CopyOption::ForceQuote(columns) => once(&mut self.force_quote, Columns::of(columns)),
            CopyOption::ForceNotNull(columns) => once(&mut self.force_not_null, Columns::of(columns)),
            CopyOption::ForceNull(columns) => once(&mut self.force_null, Columns::of(columns)),
            CopyOption::Encoding(name) => once(&mut self.encoding, name.clone()),
        }
    }

    fn legacy(&mut self, option: &CopyLegacyOption) -> Result<()> {
        match option {
            CopyLegacyOption::Delimiter(c) => once(&mut self.delimiter, *c),
            CopyLegacyOption::Null(text) => once(&mut self.null, text.clone()),
            CopyLegacyOption::Header => once(&mut self.header, true),
            CopyLegacyOption::Binary => Err(unsupported("the binary format of COPY")),
            CopyLegacyOption::Csv(options) => {
                once(&mut self.csv, true)?;
                options.iter().try_for_each(|option| match option {
                    CopyLegacyCsvOption::Header => once(&mut self.header, true),
                    CopyLegacyCsvOption::Quote(c) => once(&mut self.quote, *c),
                    CopyLegacyCsvOption::Escape(c) => once(&mut self.escape, *c),
                    CopyLegacyCsvOption::ForceQuote(columns) => once(&mut self.force_quote, Columns::of(columns)),
                    CopyLegacyCsvOption::ForceNotNull(columns) => once(&mut self.force_not_null, Columns::of(columns)),
                })
            }
            other => Err(EngineError::new("42601", format!("syntax error: COPY has no option {other}"))),
        }
    }

    fn format(self, to: bool) -> Result<CopyFormat> {
        if let Some(name) = &self.encoding
            && !["utf8", "utf-8", "unicode"].contains(&name.to_lowercase().as_str())
        {
            return Err(unsupported(format!("COPY in the encoding {name}")));
        }
        let is_csv = self.csv == Some(true);
        if to && self.freeze == Some(true) {
            return Err(EngineError::new("0A000", "COPY FREEZE is only available using COPY FROM"));
        }
        let delimiter = one_byte(self.delimiter.unwrap_or(if is_csv { ',' } else { '\t' }), "delimiter")?;
        let null = self.null.clone().unwrap_or(if is_csv { "" } else { "\\N" }.into());
        let header = self.header.unwrap_or(false);
        let csv = self.csv_options(to)?;
        let format = CopyFormat { delimiter, null, header, csv };
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
        if self.csv != Some(true) {
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
    let delimiter = char::from(format.delimiter);
    if "\r\n".contains(delimiter) {
        return invalid("COPY delimiter cannot be newline or carriage return".into());
    }
    if format.null.contains(['\r', '\n']) {
        return invalid("COPY null representation cannot use newline or carriage return".into());
    }
    if format.null.contains(delimiter) {
        return invalid("COPY delimiter must not appear in the NULL specification".into());
    }
    match &format.csv {
        None if "\\.abcdefghijklmnopqrstuvwxyz0123456789".contains(delimiter) => {
            invalid(format!("COPY delimiter cannot be \"{delimiter}\""))
        }
        Some(csv) if csv.quote == format.delimiter => invalid("COPY delimiter and quote must be different".into()),
        Some(csv) if format.null.contains(char::from(csv.quote)) => {
            invalid("CSV quote character must not appear in the NULL specification".into())
        }
        _ => Ok(()),
    }
}
