//! Functions of json and jsonb that answer rows: what each row has, as arrays that are taken apart behind them.
use crate::columns::by_columns;
use crate::error::tunnel;
use crate::functions::builtin::json::text_of;
use crate::values::{ColumnBuilder, arrow_type, utf8};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field};
use datafusion::common::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;
use terrace_engine::types::json::{self, Kind};
use terrace_engine::{DataType, DatumRef, EngineError};

/// What is taken of each part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    Name,
    Value,
    Text,
}

/// A function: its name, whether its argument is a jsonb, whether it is of objects, and its columns.
pub(crate) struct Spread {
    pub(crate) name: &'static str,
    pub(crate) jsonb: bool,
    of_object: bool,
    columns: &'static [(&'static str, Part)],
}

macro_rules! both {
    ($json:literal, $jsonb:literal, $of_object:literal, $columns:expr) => {
        [
            Spread { name: $json, jsonb: false, of_object: $of_object, columns: $columns },
            Spread { name: $jsonb, jsonb: true, of_object: $of_object, columns: $columns },
        ]
    };
}

const FUNCTIONS: [[Spread; 2]; 5] = [
    both!("json_array_elements", "jsonb_array_elements", false, &[("value", Part::Value)]),
    both!("json_array_elements_text", "jsonb_array_elements_text", false, &[("value", Part::Text)]),
    both!("json_object_keys", "jsonb_object_keys", true, &[("", Part::Name)]),
    both!("json_each", "jsonb_each", true, &[("key", Part::Name), ("value", Part::Value)]),
    both!("json_each_text", "jsonb_each_text", true, &[("key", Part::Name), ("value", Part::Text)]),
];

pub(crate) fn function(name: &str) -> Option<&'static Spread> {
    FUNCTIONS.as_flattened().iter().find(|function| function.name == name)
}

impl Spread {
    pub(crate) fn takes(&self) -> DataType {
        if self.jsonb { DataType::Jsonb } else { DataType::Json }
    }

    /// The names of the columns, and for each an array of what it has. A name may be empty: it is the function's.
    /// `padded`: where there is nothing, a NULL.
    pub(crate) fn columns(&'static self, arg: &Expr, padded: bool) -> Vec<(&'static str, Expr)> {
        let column = |(at, (title, _)): (usize, &(&'static str, Part))| {
            let signature = Signature::any(1, Volatility::Immutable);
            let name = format!("{} {at} {padded}", self.name);
            let udf = Column { name, function: self.name, number: at, padded, signature };
            let call = ScalarFunction::new_udf(Arc::new(ScalarUDF::from(udf)), vec![arg.clone()]);
            (*title, Expr::ScalarFunction(call))
        };
        self.columns.iter().enumerate().map(column).collect()
    }

    fn type_of(&self, part: Part) -> DataType {
        if part == Part::Value { self.takes() } else { DataType::Text }
    }

    /// 22023
    fn check(&self, text: &str) -> Result<(), EngineError> {
        let kind = json::kind(text);
        let name = self.name;
        let message = match (self.of_object, self.jsonb, kind) {
            (true, _, Kind::Object) | (false, _, Kind::Array) => return Ok(()),
            (true, true, _) if self.columns.len() == 2 => format!("cannot call {name} on a non-object"),
            (true, false, Kind::Array) if self.columns.len() == 2 => "cannot deconstruct an array as an object".into(),
            (true, false, _) if self.columns.len() == 2 => "cannot deconstruct a scalar".into(),
            (true, _, Kind::Array) => format!("cannot call {name} on an array"),
            (true, ..) => format!("cannot call {name} on a scalar"),
            (false, true, Kind::Object) => "cannot extract elements from an object".into(),
            (false, true, _) => "cannot extract elements from a scalar".into(),
            (false, false, Kind::Object) => format!("cannot call {name} on a non-array"),
            (false, false, _) => format!("cannot call {name} on a scalar"),
        };
        Err(EngineError::new("22023", message))
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Column {
    /// Common subexpressions are told apart by their functions' names.
    name: String,
    function: &'static str,
    number: usize,
    padded: bool,
    signature: Signature,
}

impl Column {
    fn spread(&self) -> (&'static Spread, Part) {
        let spread = function(self.function).expect("it is one of them");
        (spread, spread.columns[self.number].1)
    }
}

impl ScalarUDFImpl for Column {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[ArrowType]) -> Result<ArrowType> {
        let (spread, part) = self.spread();
        Ok(ArrowType::List(Arc::new(Field::new_list_field(arrow_type(spread.type_of(part)), true))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        by_columns(&args, |columns| {
            let array = &columns[0];
            let (spread, part) = self.spread();
            let of = spread.type_of(part);
            let mut items = ColumnBuilder::new(of, array.len());
            let mut lengths = Vec::with_capacity(array.len());
            for row in 0..array.len() {
                crate::memory::check().map_err(tunnel)?;
                let length = match array.is_null(row) {
                    true => 0,
                    false => pushed(spread, part, value(array, row), &mut items).map_err(tunnel)?,
                };
                if length == 0 && self.padded {
                    items.push(DatumRef::Null);
                }
                lengths.push(if self.padded { length.max(1) } else { length });
            }
            let field = Arc::new(Field::new_list_field(arrow_type(of), true));
            let nulls = NullBuffer::from_iter((0..array.len()).map(|row| self.padded || array.is_valid(row)));
            let offsets = OffsetBuffer::from_lengths(lengths);
            Ok(Arc::new(ListArray::try_new(field, offsets, items.finish(), Some(nulls))?))
        })
    }
}

fn value(array: &ArrayRef, row: usize) -> &str {
    utf8(match array.data_type() {
        ArrowType::BinaryView => array.as_binary_view().value(row),
        _ => array.as_binary::<i64>().value(row),
    })
}

/// Adds the parts of a value; how many there are.
fn pushed(spread: &Spread, part: Part, text: &str, items: &mut ColumnBuilder) -> Result<usize, EngineError> {
    let found = json::members(text)?;
    spread.check(text)?;
    for (name, member) in &found {
        match part {
            Part::Name => items.push(DatumRef::Text(name)),
            Part::Value if spread.jsonb => items.push(DatumRef::Jsonb(member)),
            Part::Value => items.push(DatumRef::Json(member)),
            Part::Text => items.push(text_of(member)?.as_deref().map_or(DatumRef::Null, DatumRef::Text)),
        }
    }
    Ok(found.len())
}
