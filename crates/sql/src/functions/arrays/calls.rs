//! Functions and operators of arrays of any type: which types their arguments become, and how they run. What each
//! answers is in [`kernels`].
//!
//! 1. The items of all arrays of a call, and the values beside them, are of one type: of PostgreSQL's `anycompatible`
//!    the one that all become (as in CASE), of `anyarray` the one that all have. A quoted literal, NULL or an untyped
//!    parameter becomes what is wanted.
//! 2. What would see the blanks of char(n) is refused (0A000).
//!
//! Source: PostgreSQL 15 documentation, "Array Functions and Operators" (9.19), "Polymorphic Types" (38.2.5); pg_proc.
use super::item_type;
use crate::columns::by_columns;
use crate::error::tunnel;
use crate::functions::builtin::is_implicit;
use crate::functions::convert::{convert, convert_scalar, is_open};
use crate::memory;
use crate::values::{ColumnBuilder, array_datum, arrow_type, engine_array, field_of, field_type};
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::{DataType as ArrowType, FieldRef};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use std::sync::Arc;
use terrace_engine::{DataType, Datum, EngineError};

mod kernels;

pub(crate) use kernels::OPEN;

/// What an argument is, and a result.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Slot {
    Array,
    Item,
    Is(DataType),
    /// Integers.
    Numbers,
    Texts,
}

#[derive(Debug)]
struct Function {
    name: &'static str,
    takes: &'static [Slot],
    /// How many of them must be given.
    least: usize,
    gives: Slot,
    /// NULL of NULL.
    strict: bool,
    /// Whether items become one type; else they have it.
    compatible: bool,
    /// Whether it sees items as texts or makes arrays of them.
    sees: bool,
    run: fn(DataType, &[Datum]) -> terrace_engine::Result<Datum>,
}

fn find(name: &str) -> Option<&'static Function> {
    kernels::TABLE.iter().find(|function| function.name == name)
}

/// Whether users call a function of arrays by this name. Those of operators and subscripts have a blank in theirs.
pub(crate) fn is_function(name: &str) -> bool {
    !name.contains(' ') && find(name).is_some()
}

/// A call; `None`: the arguments do not fit (42883). 42804 where nothing says of which type the items are.
pub(crate) fn call(name: &str, args: Vec<Expr>, schema: &DFSchema) -> Result<Option<Expr>> {
    let Some(function) = find(name) else { return Err(tunnel(EngineError::internal(format!("no function {name}")))) };
    let fields = args.iter().map(|arg| Ok(arg.to_field(schema)?.1)).collect::<Result<Vec<FieldRef>>>()?;
    let open: Vec<bool> = args.iter().map(is_open).collect();
    let Some(item) = function.item(&fields, &open)? else { return Ok(None) };
    let item = match item {
        // The column that is assigned to says how long they are.
        DataType::Char(_) if function.assigns() => DataType::Text,
        item => item,
    };
    if function.sees && !function.assigns() && matches!(item, DataType::Char(_)) {
        return Err(crate::functions::chars::array_refused());
    }
    let wanted = function.takes.iter().map(|slot| slot.of(item));
    let args = args.into_iter().zip(fields).zip(wanted).map(|((arg, field), wanted)| taken(arg, &field, wanted));
    let args = args.collect::<Result<Vec<Expr>>>()?;
    let signature = Signature::any(args.len(), Volatility::Immutable);
    let made = Call { name: format!("{name} {item:?}"), function: function.name, item, signature };
    Ok(Some(Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(made)), args))))
}

impl Slot {
    fn of(self, item: DataType) -> DataType {
        let array = |of: DataType| of.array().expect("items are no arrays");
        match self {
            Slot::Array => array(item),
            Slot::Item => item,
            Slot::Is(of) => of,
            Slot::Numbers => array(DataType::Int4),
            Slot::Texts => array(DataType::Text),
        }
    }
}

impl Function {
    /// Whether a part of a column is assigned to.
    fn assigns(&self) -> bool {
        self.name.starts_with("array with")
    }

    /// The type of the items (invariant 1); `None`: the arguments do not fit.
    fn item(&self, fields: &[FieldRef], open: &[bool]) -> Result<Option<DataType>> {
        if fields.len() < self.least || fields.len() > self.takes.len() {
            return Ok(None);
        }
        let (mut item, mut polymorphic) = (None, false);
        for ((slot, field), open) in self.takes.iter().zip(fields).zip(open) {
            polymorphic |= matches!(slot, Slot::Array | Slot::Item);
            if *open {
                continue;
            }
            let given = field_type(field);
            let own = match slot {
                Slot::Array if item_type(field.data_type()).is_none() => return Ok(None),
                Slot::Array => given.and_then(DataType::item),
                Slot::Item if given.is_some_and(|given| given.item().is_some()) => return Ok(None),
                Slot::Item => given,
                fixed => match given {
                    Some(given) if is_implicit(given, fixed.of(DataType::Text)) => continue,
                    _ => return Ok(None),
                },
            };
            let Some(own) = own else { return Ok(None) };
            item = match item {
                None => Some(own),
                Some(known) => match self.both(known, own) {
                    Some(both) => Some(both),
                    None => return Ok(None),
                },
            };
        }
        match item {
            Some(DataType::Varchar(_)) => Ok(Some(DataType::Varchar(0))),
            None if polymorphic && !self.compatible => {
                let message = "could not determine polymorphic type because input has type unknown";
                Err(tunnel(EngineError::new("42804", message)))
            }
            None => Ok(Some(DataType::Text)),
            known => Ok(known),
        }
    }

    fn both(&self, a: DataType, b: DataType) -> Option<DataType> {
        match (a, b) {
            _ if a == b => Some(a),
            (DataType::Numeric(_), DataType::Numeric(_)) => Some(DataType::Numeric(None)),
            _ if a.base_name() == b.base_name() => Some(if a.length() == 0 { a } else { b }),
            _ if !self.compatible => None,
            _ if a.is_text() && b.is_text() => Some(DataType::Text),
            (DataType::Time, DataType::Interval) | (DataType::Interval, DataType::Time) => Some(DataType::Interval),
            (DataType::Numeric(_), other) | (other, DataType::Numeric(_))
                if is_implicit(other, DataType::Numeric(None)) =>
            {
                Some(DataType::Numeric(None))
            }
            _ if is_implicit(a, b) => Some(b),
            _ if is_implicit(b, a) => Some(a),
            _ => None,
        }
    }
}

/// An argument as the function takes it.
fn taken(arg: Expr, field: &FieldRef, to: DataType) -> Result<Expr> {
    Ok(match arg {
        Expr::Placeholder(Placeholder { id, field: None }) => {
            Expr::Placeholder(Placeholder { id, field: Some(Arc::new(field_of("", to, true))) })
        }
        Expr::Literal(value, None) => Expr::Literal(convert_scalar(&value, to)?, None),
        arg if field.data_type() == &arrow_type(to) => arg,
        arg => convert(arg, to),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Call {
    /// Upstream: common subexpressions are told apart by their functions' names.
    name: String,
    function: &'static str,
    item: DataType,
    signature: Signature,
}

impl Call {
    fn function(&self) -> &'static Function {
        find(self.function).expect("calls are of functions in the table")
    }

    fn compute(&self, columns: &[ArrayRef]) -> Result<ArrayRef> {
        let function = self.function();
        let columns = columns.iter().map(engine_array).collect::<terrace_engine::Result<Vec<ArrayRef>>>();
        let columns = columns.map_err(tunnel)?;
        let rows = columns.first().map_or(1, |column| column.len());
        let mut builder = ColumnBuilder::new(function.gives.of(self.item), rows);
        let mut values = Vec::with_capacity(columns.len());
        let mut since_look = 0;
        for row in 0..rows {
            values.clear();
            values.extend(
                columns
                    .iter()
                    .zip(function.takes)
                    .map(|(column, slot)| {
                        let value = array_datum(column, row);
                        // The field said which texts they are.
                        match (value, slot.of(self.item)) {
                            (value @ Datum::Array(_), wanted) => crate::cast::cast_datum(value, wanted, true),
                            (value, _) => Ok(value),
                        }
                    })
                    .collect::<terrace_engine::Result<Vec<Datum>>>()
                    .map_err(tunnel)?,
            );
            since_look += values.iter().map(kernels::size).sum::<usize>();
            if since_look > 1 << 20 {
                since_look = 0;
                memory::check().map_err(tunnel)?;
            }
            let made = match function.strict && values.contains(&Datum::Null) {
                true => Datum::Null,
                false => (function.run)(self.item, &values).map_err(tunnel)?,
            };
            builder.push(made.as_ref());
        }
        Ok(builder.finish())
    }
}

impl ScalarUDFImpl for Call {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[ArrowType]) -> Result<ArrowType> {
        Ok(arrow_type(self.function().gives.of(self.item)))
    }

    fn return_field_from_args(&self, _args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(field_of(self.name(), self.function().gives.of(self.item), true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        by_columns(&args, |columns| self.compute(columns))
    }
}
