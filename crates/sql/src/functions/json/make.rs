//! JSON of other values: `to_json` and its kind, what aggregates have gathered, and rows with names.
//!
//! 1. Numbers and booleans are JSON's, json and jsonb stay as they are, times have a T, arrays and rows are arrays and
//!    objects. Everything else is a string of its text.
//! 2. jsonb is made as json, and made normal then.
//! 3. Of an aggregate, DataFusion's `array_agg` gathers the values, in its order; one function makes JSON of the array.
//!
//! Source: PostgreSQL 15 documentation, 9.16.3, and what the server answers.
use crate::columns::by_columns;
use crate::error::tunnel;
use crate::functions::bounded;
use crate::functions::builtin::shown;
use crate::values::arrays::{Arrays, items_of};
use crate::values::decimal::is_decimal;
use crate::values::{arrow_type, engine_type, field_type, is_timestamp};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, LargeBinaryArray, StructArray};
use datafusion::arrow::datatypes::{DataType as ArrowType, Field, FieldRef, Fields};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;
use terrace_engine::types::style::DateStyle;
use terrace_engine::types::{Style, json};
use terrace_engine::{DataType, EngineError};

/// What is made of the arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Made {
    /// Of one value.
    Value,
    /// The same, with a line for each of its parts.
    Lines,
    /// An array of all of them.
    Array,
    /// Names and values by turns.
    Object,
    /// Of an array: an array with a line for each item that has parts.
    Gathered,
    /// Of an array of rows of a name and a value: an object.
    GatheredObject,
    /// Of an array of names and values by turns: an object.
    ObjectOfItems,
    /// A row whose columns are called so, and no JSON yet.
    Row(Vec<String>),
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Make {
    made: Made,
    jsonb: bool,
    /// Common subexpressions are told apart by their functions' names.
    name: String,
    signature: Signature,
}

/// Whether a call makes a row.
pub(crate) fn is_row(call: &ScalarFunction) -> bool {
    let inner = call.func.inner().as_ref() as &dyn std::any::Any;
    inner.downcast_ref::<Make>().is_some_and(|make| matches!(make.made, Made::Row(_)))
}

/// A call. `name`: as PostgreSQL calls the function.
pub(crate) fn call(made: Made, jsonb: bool, name: &str, args: Vec<Expr>) -> Expr {
    let signature = match args.is_empty() {
        true => Signature::nullary(Volatility::Stable),
        false => Signature::any(args.len(), Volatility::Stable),
    };
    let name = match &made {
        Made::Row(names) => format!("row {names:?}"),
        _ => name.to_owned(),
    };
    let udf = ScalarUDF::from(Make { made, jsonb, name, signature });
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(udf), args))
}

impl Make {
    fn gives(&self) -> DataType {
        if self.jsonb { DataType::Jsonb } else { DataType::Json }
    }
}

impl ScalarUDFImpl for Make {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[ArrowType]) -> Result<ArrowType> {
        internal_err!("{} has a field", self.name)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let of = match &self.made {
            Made::Row(names) => ArrowType::Struct(row_fields(names, args.arg_fields)),
            _ => arrow_type(self.gives()),
        };
        Ok(Arc::new(Field::new(&self.name, of, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let Made::Row(names) = &self.made {
            let fields = row_fields(names, &args.arg_fields);
            return by_columns(&args, |columns| Ok(Arc::new(StructArray::try_new(fields, columns.to_vec(), None)?)));
        }
        let fields = args.arg_fields.clone();
        let rows = args.number_rows;
        by_columns(&args, |columns| {
            let rows = columns.first().map_or(rows.min(1), |column| column.len());
            let parts = columns.iter().zip(&fields).map(|(column, field)| Column::of(column, field));
            self.texts(&parts.collect::<Result<Vec<Column>>>()?, rows)
        })
    }
}

fn row_fields(names: &[String], fields: &[FieldRef]) -> Fields {
    names.iter().zip(fields).map(|(name, field)| field.as_ref().clone().with_name(name).with_nullable(true)).collect()
}

impl Make {
    fn texts(&self, columns: &[Column], rows: usize) -> Result<ArrayRef> {
        // A byte may become an escape of six.
        let bytes = columns.iter().map(|column| column.array.get_array_memory_size() as u64).sum::<u64>();
        let _asked = bounded::ask_for(&self.name, &[bytes * 2])?;
        let mut texts: Vec<Option<String>> = Vec::with_capacity(rows);
        for row in 0..rows {
            let text = self.text(columns, row)?;
            texts.push(match text {
                Some(text) if self.jsonb => Some(json::normal(&text).map_err(tunnel)?),
                text => text,
            });
        }
        let bytes = texts.iter().map(|text| text.as_deref().map(str::as_bytes));
        Ok(match self.jsonb {
            true => Arc::new(bytes.collect::<LargeBinaryArray>()),
            false => Arc::new(bytes.collect::<BinaryViewArray>()),
        })
    }

    fn text(&self, columns: &[Column], row: usize) -> Result<Option<String>> {
        let mut out = String::new();
        match &self.made {
            Made::Array => {
                out.push('[');
                for (at, column) in columns.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    column.write(row, &mut out)?;
                }
                out.push(']');
            }
            Made::Object => {
                out.push('{');
                for (at, pair) in columns.chunks(2).enumerate() {
                    let [name, value] = pair else { return internal_err!("names have values") };
                    if name.is_null(row) {
                        return Err(tunnel(self.null_name(at * 2 + 1)));
                    }
                    out.push_str(if at > 0 { ", " } else { "" });
                    name.write_name(row, &mut out)?;
                    out.push_str(" : ");
                    value.write(row, &mut out)?;
                }
                out.push('}');
            }
            _ if columns[0].is_null(row) => return Ok(None),
            Made::Value => columns[0].write(row, &mut out)?,
            Made::Lines => columns[0].write_parts(row, ",\n ", &mut out)?,
            Made::Gathered => columns[0].write_gathered(row, &mut out)?,
            Made::GatheredObject => columns[0].write_members(row, &mut out)?,
            Made::ObjectOfItems => self.write_pairs(&columns[0], row, &mut out)?,
            Made::Row(_) => return internal_err!("a row is no text"),
        }
        Ok(Some(out))
    }

    fn write_pairs(&self, array: &Column, row: usize, out: &mut String) -> Result<()> {
        let Form::Items(items, _) = &array.form else { return internal_err!("an array was given") };
        let places = array.items(row);
        if places.len() % 2 == 1 {
            let error = EngineError::new("22023", "argument list must have even number of elements");
            let hint = format!("The arguments of {}() must consist of alternating keys and values.", self.name);
            return Err(tunnel(error.with_hint(hint)));
        }
        out.push('{');
        for (number, at) in places.step_by(2).enumerate() {
            if items.is_null(at) {
                return Err(tunnel(self.null_name(number * 2 + 1)));
            }
            out.push_str(if number > 0 { ", " } else { "" });
            items.write_name(at, out)?;
            out.push_str(" : ");
            items.write(at + 1, out)?;
        }
        out.push('}');
        Ok(())
    }

    fn null_name(&self, argument: usize) -> EngineError {
        match self.jsonb {
            true => EngineError::new("22023", format!("argument {argument}: key must not be null")),
            false => EngineError::new("22023", format!("argument {argument} cannot be null"))
                .with_hint("Object keys should be text."),
        }
    }
}

/// How the values of a column are written (invariant 1).
enum Form {
    Null,
    Bool,
    /// As it is, where it is a number; `NaN` and its like in quotes.
    Number(ArrayRef),
    /// JSON already.
    Json(ArrayRef),
    Time(ArrayRef),
    Quoted(ArrayRef),
    Items(Box<Column>, Box<Arrays>),
    Members(Vec<(String, Column)>),
}

struct Column {
    array: ArrayRef,
    form: Form,
}

impl Column {
    fn of(array: &ArrayRef, field: &Field) -> Result<Column> {
        // JSON has dates in the style ISO.
        let style = Style { dates: DateStyle::default(), ..Style::current() };
        let texts = || style.scope(|| shown(array, field_type(field)));
        let form = match array.data_type() {
            ArrowType::Null => Form::Null,
            ArrowType::Boolean => Form::Bool,
            of if of.is_numeric() || is_decimal(of) => Form::Number(texts()?),
            ArrowType::BinaryView | ArrowType::LargeBinary => Form::Json(texts()?),
            of if is_timestamp(of) => Form::Time(texts()?),
            of if let (Some(item), Some(arrays)) = (items_of(of), Arrays::of(array)) => {
                let items = Box::new(Column::of(arrays.lists().values(), item)?);
                let array = Arc::new(arrays.lists().clone());
                return Ok(Column { array, form: Form::Items(items, Box::new(arrays)) });
            }
            ArrowType::Struct(fields) => {
                let parts = array.as_struct().columns().iter().zip(fields);
                let parts = parts.map(|(part, field)| Ok((field.name().clone(), Column::of(part, field)?)));
                Form::Members(parts.collect::<Result<_>>()?)
            }
            of if engine_type(of).is_some() => Form::Quoted(texts()?),
            of => return Err(tunnel(EngineError::unsupported(format!("JSON of {of} is not supported")))),
        };
        Ok(Column { array: array.clone(), form })
    }

    fn is_null(&self, row: usize) -> bool {
        matches!(self.form, Form::Null) || self.array.is_null(row)
    }

    fn write(&self, row: usize, out: &mut String) -> Result<()> {
        self.write_parts(row, ",", out)
    }

    /// `between`: what stands between the parts. Those of parts have a comma.
    fn write_parts(&self, row: usize, between: &str, out: &mut String) -> Result<()> {
        if self.is_null(row) {
            out.push_str("null");
            return Ok(());
        }
        let text = |texts: &ArrayRef| texts.as_string::<i32>().value(row).to_owned();
        match &self.form {
            Form::Null => out.push_str("null"),
            Form::Bool => out.push_str(if self.array.as_boolean().value(row) { "true" } else { "false" }),
            Form::Number(texts) => match text(texts) {
                number if number.ends_with(|last: char| last.is_ascii_digit()) => out.push_str(&number),
                other => json::write_text(out, &other),
            },
            Form::Json(texts) => out.push_str(&text(texts)),
            Form::Time(texts) => json::write_text(out, &with_t(&text(texts), self.array.data_type())),
            Form::Quoted(texts) => json::write_text(out, &text(texts)),
            Form::Items(items, arrays) => {
                let shape = arrays.shape(row);
                if shape.is_empty() {
                    out.push_str("[]");
                }
                for (at, item) in self.items(row).enumerate() {
                    let opens = shape.opens(at);
                    // The parts of the whole are those of its first dimension.
                    let whole = at > 0 && opens + 1 >= shape.len();
                    out.push_str(if at == 0 {
                        ""
                    } else if whole {
                        between
                    } else {
                        ","
                    });
                    out.extend(std::iter::repeat_n('[', opens));
                    items.write(item, out)?;
                    out.extend(std::iter::repeat_n(']', shape.closes(at)));
                }
            }
            Form::Members(members) => {
                out.push('{');
                for (at, (name, member)) in members.iter().enumerate() {
                    out.push_str(if at > 0 { between } else { "" });
                    json::write_text(out, name);
                    out.push(':');
                    member.write(row, out)?;
                }
                out.push('}');
            }
        }
        Ok(())
    }

    /// A value as an object's name. 22023 where it has parts.
    fn write_name(&self, row: usize, out: &mut String) -> Result<()> {
        match &self.form {
            Form::Json(_) | Form::Items(..) | Form::Members(_) => {
                let message = "key value must be scalar, not array, composite, or json";
                return Err(tunnel(EngineError::new("22023", message)));
            }
            Form::Bool | Form::Number(_) => {
                let mut name = String::new();
                self.write(row, &mut name)?;
                json::write_text(out, name.trim_matches('"'));
            }
            _ => self.write(row, out)?,
        }
        Ok(())
    }

    /// The places of an array's items.
    fn items(&self, row: usize) -> std::ops::Range<usize> {
        let offsets = self.array.as_list::<i32>().value_offsets();
        offsets[row] as usize..offsets[row + 1] as usize
    }

    fn write_gathered(&self, row: usize, out: &mut String) -> Result<()> {
        let Form::Items(items, _) = &self.form else { return internal_err!("values were gathered") };
        let has_parts = matches!(items.form, Form::Items(..) | Form::Members(_));
        out.push('[');
        for (at, item) in self.items(row).enumerate() {
            out.push_str(match at {
                0 => "",
                _ if has_parts && !items.is_null(item) => ", \n ",
                _ => ", ",
            });
            items.write(item, out)?;
        }
        out.push(']');
        Ok(())
    }

    fn write_members(&self, row: usize, out: &mut String) -> Result<()> {
        let Form::Items(items, _) = &self.form else { return internal_err!("values were gathered") };
        let Form::Members(parts) = &items.form else { return internal_err!("names and values were gathered") };
        let [(_, name), (_, value)] = parts.as_slice() else { return internal_err!("a name and a value") };
        out.push_str("{ ");
        for (at, item) in self.items(row).enumerate() {
            if name.is_null(item) {
                return Err(tunnel(EngineError::new("22023", "field name must not be null")));
            }
            out.push_str(if at > 0 { ", " } else { "" });
            name.write_name(item, out)?;
            out.push_str(" : ");
            value.write(item, out)?;
        }
        out.push_str(" }");
        Ok(())
    }
}

/// A time as ISO 8601 has it: `2024-02-29T12:30:15+00:00`.
fn with_t(text: &str, of: &ArrowType) -> String {
    let with_t = text.replacen(' ', "T", 1);
    if !matches!(of, ArrowType::Timestamp(_, Some(_))) {
        return with_t;
    }
    let (time, era) = with_t.split_once(' ').unwrap_or((&with_t, ""));
    let zone = time.rfind(['+', '-']).map_or(0, |at| time.len() - at);
    let minutes = if zone == "+00".len() { ":00" } else { "" };
    let blank = if era.is_empty() { "" } else { " " };
    format!("{time}{minutes}{blank}{era}")
}
