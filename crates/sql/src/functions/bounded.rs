//! Functions of text whose results may be longer than their arguments.
//!
//! 1. The length of a batch of results is known before the first is made. [`crate::memory`] is asked for that much, and
//!    no result is longer than a value may be (54000).
//! 2. They work in pieces. Between two pieces they check whether the statement may go on, so a timeout or a cancel ends
//!    the statement within a function.
//! 3. `repeat`, `lpad`, `rpad`, `replace` and `translate` are made here ([`texts`]), as PostgreSQL makes them. The
//!    others are DataFusion's; they get [`PIECE`] bytes at a time.
//! 4. Name, signature and types are those of DataFusion's function. How it simplifies itself is not: that would put
//!    DataFusion's own function in this one's place.
use crate::error::tunnel;
use crate::memory;
use crate::memory::FOLDED;
use datafusion::arrow::array::{Array, ArrayRef, StringArray};
use datafusion::arrow::compute::{cast, concat};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use std::sync::Arc;

mod texts;

pub(crate) use texts::Text;

/// Bytes of results that are made between two looks at whether the statement may go on.
pub(crate) const PIECE: u64 = 1 << 20;

/// How long a function's results may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Growth {
    Repeat,
    Pad {
        left: bool,
    },
    Replace,
    Translate,
    /// So many times its texts together.
    Times(u64),
    /// Texts with a separator between them, the first.
    Separated,
}

const FUNCTIONS: [(&str, Growth); 17] = [
    ("repeat", Growth::Repeat),
    ("lpad", Growth::Pad { left: true }),
    ("rpad", Growth::Pad { left: false }),
    ("replace", Growth::Replace),
    ("translate", Growth::Translate),
    ("concat", Growth::Times(1)),
    ("concat_ws", Growth::Separated),
    ("overlay", Growth::Times(1)),
    ("reverse", Growth::Times(1)),
    ("substr", Growth::Times(1)),
    ("left", Growth::Times(1)),
    ("right", Growth::Times(1)),
    ("btrim", Growth::Times(1)),
    ("ltrim", Growth::Times(1)),
    ("rtrim", Growth::Times(1)),
    ("split_part", Growth::Times(1)),
    ("levenshtein", Growth::Times(0)),
];

/// Puts the functions that are bounded in the place of those that are not.
pub(crate) fn register(state: &mut SessionState) {
    for (name, growth) in FUNCTIONS {
        let Some(inner) = state.scalar_functions().get(name).cloned() else { continue };
        let bounded = ScalarUDF::from(Bounded { inner, growth });
        state.register_udf(Arc::new(bounded)).expect("functions can be replaced");
    }
}

/// Whether a function's results may be long.
pub(crate) fn is_bounded(function: &ScalarUDF) -> bool {
    let inner = function.inner().as_ref();
    inner.is::<Bounded>() || inner.is::<Joined>() || crate::functions::builtin::makes_texts(function)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    inner: Arc<ScalarUDF>,
    growth: Growth,
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn is_strict(&self) -> bool {
        self.inner.is_strict()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let rows = if scalar { 1 } else { args.number_rows };
        let shown = args.number_rows as u64;
        let to = args.return_field.data_type().clone();
        let result = match self.texts(&args.args, rows)? {
            Some(made) if *made.data_type() == to => Arc::new(made) as ArrayRef,
            Some(made) => cast(&made, &to)?,
            None => self.delegate(args, rows)?,
        };
        if !scalar {
            return Ok(ColumnarValue::Array(result));
        }
        let value = ScalarValue::try_from_array(&result, 0)?;
        // Whoever wants an array of it makes as many copies.
        memory::made(value.size() as u64 * shown.saturating_sub(1));
        Ok(ColumnarValue::Scalar(value))
    }
}

impl Bounded {
    /// What is made here; `None`: DataFusion's function makes it.
    fn texts(&self, args: &[ColumnarValue], rows: usize) -> Result<Option<StringArray>> {
        let text = |at: usize| Text::of(&args[at]);
        let number = |at: usize| texts::numbers(&args[at], rows);
        let name = self.name();
        Ok(match (self.growth, args.len()) {
            (Growth::Repeat, 2) => Some(texts::repeat(name, rows, &text(0)?, &number(1)?)?),
            (Growth::Pad { left }, 2) => {
                let blank = Text::constant(" ");
                Some(texts::pad(name, left, rows, &text(0)?, &number(1)?, &blank)?)
            }
            (Growth::Pad { left }, 3) => Some(texts::pad(name, left, rows, &text(0)?, &number(1)?, &text(2)?)?),
            (Growth::Replace, 3) => Some(texts::replace(name, rows, [&text(0)?, &text(1)?, &text(2)?])?),
            (Growth::Translate, 3) => Some(texts::translate(name, rows, [&text(0)?, &text(1)?, &text(2)?])?),
            _ => None,
        })
    }

    /// Runs DataFusion's function, piece by piece.
    fn delegate(&self, args: ScalarFunctionArgs, rows: usize) -> Result<ArrayRef> {
        let lengths = self.lengths(&args.args, rows)?;
        let total = asked_for(&lengths)?;
        let _asked = memory::ask(self.name(), total).map_err(tunnel)?;
        if total <= PIECE {
            return self.inner.invoke_with_args(args)?.to_array(rows);
        }
        let (mut pieces, mut from) = (vec![], 0);
        while from < rows {
            memory::check().map_err(tunnel)?;
            let mut until = from + 1;
            let mut bytes = lengths[from];
            while until < rows && bytes + lengths[until] <= PIECE {
                bytes += lengths[until];
                until += 1;
            }
            let piece = ScalarFunctionArgs {
                args: args.args.iter().map(|arg| sliced(arg, from, until - from)).collect(),
                number_rows: until - from,
                ..args.clone()
            };
            pieces.push(self.inner.invoke_with_args(piece)?.to_array(until - from)?);
            from = until;
        }
        assert_eq!(pieces.iter().map(|piece| piece.len()).sum::<usize>(), rows, "a result for each row");
        match pieces.len() {
            1 => Ok(pieces.remove(0)),
            _ => Ok(concat(&pieces.iter().map(AsRef::as_ref).collect::<Vec<&dyn Array>>())?),
        }
    }

    /// A bound on each result's bytes.
    fn lengths(&self, args: &[ColumnarValue], rows: usize) -> Result<Vec<u64>> {
        let texts = args.iter().filter(|arg| is_text(&arg.data_type())).map(Text::of).collect::<Result<Vec<_>>>()?;
        let sum = |row: usize| texts.iter().map(|text| text.length(row)).sum::<u64>();
        match self.growth {
            Growth::Separated => {
                let between = texts.len() as u64;
                Ok((0..rows).map(|row| sum(row) + texts.first().map_or(0, |s| s.length(row)) * between).collect())
            }
            Growth::Times(0) => (0..rows).map(|row| compared(&texts, row)).collect(),
            Growth::Times(factor) => Ok((0..rows).map(|row| sum(row) * factor).collect()),
            _ => Ok((0..rows).map(sum).collect()),
        }
    }
}

/// Longest text that is compared letter by letter with another, as in PostgreSQL's extension: the work is the product
/// of the two.
const COMPARED: u64 = 255;

fn compared(texts: &[Text], row: usize) -> Result<u64> {
    if texts.iter().any(|text| text.length(row) > COMPARED) {
        let message = format!("levenshtein argument exceeds maximum length of {COMPARED} bytes");
        return Err(tunnel(terrace_engine::EngineError::new("54000", message)));
    }
    Ok(0)
}

/// The bytes of all results, none longer than it may be; noted as made.
fn asked_for(lengths: &[u64]) -> Result<u64> {
    let mut total = 0u64;
    for length in lengths {
        memory::check_length(*length).map_err(tunnel)?;
        total += length;
    }
    memory::made(total);
    if memory::is_planning() && total > FOLDED {
        return datafusion::common::exec_err!("a constant of {total} bytes is made when it is needed");
    }
    Ok(total)
}

/// Asks for results of functions that are made elsewhere, one length for each row, NULL's being none (invariant 1).
pub(crate) fn ask_for(name: &str, lengths: &[u64]) -> Result<memory::Asked> {
    let total = asked_for(lengths)?;
    if i32::try_from(total).is_err() {
        let message = format!("the results of {name} for a batch of rows exceed 2 GB");
        return Err(tunnel(terrace_engine::EngineError::new("54000", message)));
    }
    memory::ask(name, total).map_err(tunnel)
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn sliced(arg: &ColumnarValue, from: usize, rows: usize) -> ColumnarValue {
    match arg {
        ColumnarValue::Array(array) => ColumnarValue::Array(array.slice(from, rows)),
        scalar => scalar.clone(),
    }
}

/// `text || text`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Joined {
    signature: Signature,
}

/// `left || right`, both text.
pub(crate) fn joined(left: Expr, right: Expr) -> Expr {
    let signature = Signature::exact(vec![DataType::Utf8; 2], Volatility::Immutable);
    ScalarUDF::from(Joined { signature }).call(vec![left, right])
}

impl ScalarUDFImpl for Joined {
    fn name(&self) -> &str {
        "textcat"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let rows = if scalar { 1 } else { args.number_rows };
        let made = texts::join(self.name(), rows, [&Text::of(&args.args[0])?, &Text::of(&args.args[1])?])?;
        if !scalar {
            return Ok(ColumnarValue::Array(Arc::new(made)));
        }
        let value = ScalarValue::try_from_array(&made, 0)?;
        memory::made(value.size() as u64 * (args.number_rows as u64).saturating_sub(1));
        Ok(ColumnarValue::Scalar(value))
    }
}

#[cfg(test)]
mod tests;
