//! Options with names, as EXPLAIN, VACUUM, ANALYZE and COPY have them.
use terrace_engine::{EngineError, Result};
use terrace_grammar::statement::{NamedOption, OptionValue};

/// ON, OFF, true, 1, ... of an option; alone it means on.
pub(crate) fn switch(option: &NamedOption) -> Result<bool> {
    let word = match &option.value {
        OptionValue::None => return Ok(true),
        OptionValue::Text(text) | OptionValue::Number(text) => text.to_ascii_lowercase(),
        OptionValue::All | OptionValue::List(_) => String::new(),
    };
    match word.as_str() {
        "on" | "true" | "1" => Ok(true),
        "off" | "false" | "0" => Ok(false),
        _ => Err(EngineError::new("42601", format!("{} requires a Boolean value", option.name.name))),
    }
}

/// The text of an option that needs one.
pub(crate) fn text(option: &NamedOption) -> Result<&str> {
    match &option.value {
        OptionValue::Text(text) | OptionValue::Number(text) => Ok(text),
        OptionValue::None | OptionValue::All | OptionValue::List(_) => {
            Err(EngineError::new("42601", format!("{} requires a parameter", option.name.name)))
        }
    }
}
