//! A member of an object as a text that a type reads: see `plan::bind::records`.
use super::{member, text_of, written};
use crate::functions::builtin::text::text;
use crate::functions::builtin::wrong_arguments;
use terrace_engine::types::array::{Array, Dimension, Items, MOST_DIMENSIONS, Shape};
use terrace_engine::types::json::{self, Kind};
use terrace_engine::{DataType, Datum, EngineError, Result};

/// What reads the text.
struct Reader<'n> {
    /// The member's name.
    name: &'n str,
    /// The type: of an array the items'.
    of: &'n str,
    /// The most characters of a text; 0: any number.
    length: usize,
}

/// The object, the member's name, the type, its length, whether it is an array of such.
pub(super) fn member_text(values: &[Datum]) -> Result<Datum> {
    let [whole, name, of, Datum::Int8(length), Datum::Bool(is_array)] = values else {
        return Err(wrong_arguments(values));
    };
    let reader = Reader { name: text(name)?, of: text(of)?, length: *length as usize };
    let Some(found) = member(written(whole)?, reader.name)? else { return Ok(Datum::Null) };
    let made = if *is_array { reader.array(found)? } else { reader.scalar(found)? };
    Ok(made.map_or(Datum::Null, Datum::text))
}

impl Reader<'_> {
    fn scalar(&self, value: &str) -> Result<Option<String>> {
        if matches!(self.of, "json" | "jsonb") {
            return Ok(Some(value.to_owned()).filter(|_| json::kind(value) != Kind::Null));
        }
        let Some(text) = text_of(value)? else { return Ok(None) };
        // Blanks may be too many.
        let beyond = text.char_indices().nth(self.length).map_or("", |(at, _)| &text[at..]);
        match self.length > 0 && beyond.contains(|c| c != ' ') {
            true => {
                let message = format!("value too long for type {}({})", self.of, self.length);
                Err(EngineError::new("22001", message))
            }
            false => Ok(Some(text)),
        }
    }

    /// The text of an array.
    fn array(&self, value: &str) -> Result<Option<String>> {
        match json::kind(value) {
            Kind::Null => Ok(None),
            Kind::Text => text_of(value),
            Kind::Array => {
                let mut texts = vec![];
                let shape = Shape::new(&self.dimensions(value, &mut texts)?)?;
                let of = Items::of(DataType::Text).expect("a text is no array");
                let texts = if shape.is_empty() { vec![] } else { texts };
                Ok(Some(Array::shaped(of, &shape, &texts)?.view().to_string()))
            }
            _ => Err(self.no_array()),
        }
    }

    fn no_array(&self) -> EngineError {
        let hint = format!("See the value of key \"{}\".", self.name);
        EngineError::new("22P02", "expected JSON array").with_hint(hint)
    }

    /// The dimensions of an array: as many as there are brackets before its first item. `texts`: gets the items.
    fn dimensions(&self, value: &str, texts: &mut Vec<Datum>) -> Result<Vec<Dimension>> {
        let mut dimensions = vec![];
        let mut first = Some(value);
        while let Some(array) = first.filter(|array| json::kind(array) == Kind::Array) {
            let items = json::items(array)?;
            dimensions.push(Dimension { length: items.len() as i32, first: 1 });
            first = items.first().copied();
        }
        if dimensions.len() > MOST_DIMENSIONS {
            return Err(Shape::too_many(dimensions.len()));
        }
        self.gather(value, &dimensions, texts)?;
        Ok(dimensions)
    }

    fn gather(&self, value: &str, dimensions: &[Dimension], texts: &mut Vec<Datum>) -> Result<()> {
        let Some((own, inner)) = dimensions.split_first() else {
            texts.push(self.scalar(value)?.map_or(Datum::Null, Datum::text));
            return Ok(());
        };
        if json::kind(value) != Kind::Array {
            return Err(self.no_array());
        }
        let items = json::items(value)?;
        if items.len() != own.length as usize {
            let detail = "Multidimensional arrays must have sub-arrays with matching dimensions.";
            return Err(EngineError::new("22P02", "malformed JSON array").with_detail(detail));
        }
        items.into_iter().try_for_each(|item| self.gather(item, inner, texts))
    }
}
