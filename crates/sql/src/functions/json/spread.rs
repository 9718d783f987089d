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

/// What rows are made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    /// The items of an array.
    Array,
    /// The members of an object.
    Object,
    /// An object: it is the one row. Of NULL there is one, too.
    Record,
    /// An array of objects.
    Records,
}

/// A function: its name, whether its argument is a jsonb, what its rows are made of, and its columns.
pub(crate) struct Spread {
    pub(crate) name: &'static str,
    pub(crate) jsonb: bool,
    of: Of,
    columns: &'static [(&'static str, Part)],
}

macro_rules! both {
    ($json:literal, $jsonb:literal, $of:expr, $columns:expr) => {
        [
            Spread { name: $json, jsonb: false, of: $of, columns: $columns },
            Spread { name: $jsonb, jsonb: true, of: $of, columns: $columns },
        ]
    };
}

const FUNCTIONS: [[Spread; 2]; 10] = [
    both!("json_array_elements", "jsonb_array_elements", Of::Array, &[("value", Part::Value)]),
    both!("json_array_elements_text", "jsonb_array_elements_text", Of::Array, &[("value", Part::Text)]),
    both!("json_object_keys", "jsonb_object_keys", Of::Object, &[("", Part::Name)]),
    both!("json_each", "jsonb_each", Of::Object, &[("key", Part::Name), ("value", Part::Value)]),
    both!("json_each_text", "jsonb_each_text", Of::Object, &[("key", Part::Name), ("value", Part::Text)]),
    both!("json_to_record", "jsonb_to_record", Of::Record, &[("", Part::Value)]),
    [
        Spread { name: "jsonb_path_query", jsonb: true, of: Of::Array, columns: &[("", Part::Value)] },
        Spread { name: "jsonb_path_query_tz", jsonb: true, of: Of::Array, columns: &[("", Part::Value)] },
    ],
    both!("json_to_recordset", "jsonb_to_recordset", Of::Records, &[("", Part::Value)]),
    both!("json_populate_record", "jsonb_populate_record", Of::Record, &[("", Part::Value)]),
    both!("json_populate_recordset", "jsonb_populate_recordset", Of::Records, &[("", Part::Value)]),
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
        let padded = padded || self.of == Of::Record;
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

    /// The function that answers the array of its rows, if it takes a jsonpath.
    pub(crate) fn of_path(&self) -> Option<&'static str> {
        match self.name {
            "jsonb_path_query" => Some("jsonb_path_query_array"),
            "jsonb_path_query_tz" => Some("jsonb_path_query_array_tz"),
            _ => None,
        }
    }

    /// Whether its first argument is a row, which says what records there are, and has what they lack.
    pub(crate) fn populates(&self) -> bool {
        self.name.contains("_populate_")
    }

    /// Whether its rows are records: who calls it says which columns they have.
    pub(crate) fn is_of_records(&self) -> bool {
        matches!(self.of, Of::Record | Of::Records)
    }

    /// 22023
    fn check(&self, text: &str) -> Result<(), EngineError> {
        let kind = json::kind(text);
        let name = self.name;
        let pairs = self.columns.len() == 2;
        let message = match (self.of, self.jsonb, kind) {
            (Of::Object | Of::Record, _, Kind::Object) | (Of::Array | Of::Records, _, Kind::Array) => return Ok(()),
            (Of::Object, true, _) if pairs => format!("cannot call {name} on a non-object"),
            (Of::Object, false, Kind::Array) if pairs => "cannot deconstruct an array as an object".into(),
            (Of::Object, false, _) if pairs => "cannot deconstruct a scalar".into(),
            // PostgreSQL names a function of its own.
            (Of::Record, _, Kind::Array) => "cannot call populate_composite on an array".into(),
            (Of::Record, ..) => "cannot call populate_composite on a scalar".into(),
            (Of::Object, _, Kind::Array) => format!("cannot call {name} on an array"),
            (Of::Records, true, _) => format!("cannot call {name} on a non-array"),
            (Of::Records, false, Kind::Object) => format!("cannot call {name} on an object"),
            (Of::Object | Of::Records, ..) => format!("cannot call {name} on a scalar"),
            (Of::Array, true, Kind::Object) => "cannot extract elements from an object".into(),
            (Of::Array, true, _) => "cannot extract elements from a scalar".into(),
            (Of::Array, false, Kind::Object) => format!("cannot call {name} on a non-array"),
            (Of::Array, false, _) => format!("cannot call {name} on a scalar"),
        };
        Err(EngineError::new("22023", message))
    }

    /// 22023, of an item of an array.
    fn check_item(&self, item: &str) -> Result<(), EngineError> {
        match self.of == Of::Records && json::kind(item) != Kind::Object {
            true => Err(EngineError::new("22023", format!("argument of {} must be an array of objects", self.name))),
            false => Ok(()),
        }
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
    if spread.of == Of::Record {
        spread.check(text)?;
        items.push(if spread.jsonb { DatumRef::Jsonb(text) } else { DatumRef::Json(text) });
        return Ok(1);
    }
    let found = json::members(text)?;
    spread.check(text)?;
    for (name, member) in &found {
        spread.check_item(member)?;
        match part {
            Part::Name => items.push(DatumRef::Text(name)),
            Part::Value if spread.jsonb => items.push(DatumRef::Jsonb(member)),
            Part::Value => items.push(DatumRef::Json(member)),
            Part::Text => items.push(text_of(member)?.as_deref().map_or(DatumRef::Null, DatumRef::Text)),
        }
    }
    Ok(found.len())
}
