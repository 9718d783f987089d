//! Why a text is not SQL.

use crate::statement::At;

/// What PostgreSQL says about a text that it cannot parse.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntaxError {
    pub sqlstate: &'static str,
    pub message: String,
    pub detail: Option<&'static str>,
    pub hint: Option<&'static str>,
    /// The offset of a byte. It is the text's length at the end of the input.
    pub at: Option<At>,
}

/// The result of parsing a part of a text. The error is boxed, because it is rare and results are moved often.
pub(crate) type Result<T> = std::result::Result<T, Box<SyntaxError>>;

impl SyntaxError {
    /// An error with SQLSTATE 42601 (syntax_error).
    pub(crate) fn new(message: impl Into<String>, at: At) -> Box<SyntaxError> {
        Self::with_state("42601", message, at)
    }

    pub(crate) fn with_state(sqlstate: &'static str, message: impl Into<String>, at: At) -> Box<SyntaxError> {
        Box::new(SyntaxError { sqlstate, message: message.into(), detail: None, hint: None, at: Some(at) })
    }

    /// `message at or near "..."`, or `message at end of input` where nothing is near.
    pub(crate) fn near(message: &str, near: &str, at: At) -> Box<SyntaxError> {
        match near {
            "" => Self::new(format!("{message} at end of input"), at),
            _ => Self::new(format!("{message} at or near \"{near}\""), at),
        }
    }

    pub(crate) fn hint(mut self: Box<Self>, hint: &'static str) -> Box<SyntaxError> {
        self.hint = Some(hint);
        self
    }

    pub(crate) fn detail(mut self: Box<Self>, detail: &'static str) -> Box<SyntaxError> {
        self.detail = Some(detail);
        self
    }
}

impl std::fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SyntaxError {}
