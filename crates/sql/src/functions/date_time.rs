//! Functions whose results are not what DataFusion's are: fields of times, arithmetic of days, the time of the
//! transaction.
use crate::error::tunnel;
use crate::functions::arithmetic::Function;
use crate::functions::calendar::{DAY, JULIAN_OF_1970, Part, in_range, moved};
use crate::functions::convert::{convert_array, convert_scalar, is_open, micros_of, moments_of};
use crate::values::{UTC, arrow_type, decimal, engine_type, field_of, is_timestamp, is_zoned};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int32Array, PrimitiveArray};
use datafusion::arrow::datatypes::{
    DataType as ArrowType, Date32Type, Field, FieldRef, Int32Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalUnit, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};
use std::any::Any;
use std::sync::Arc;
use terrace_engine::types::{DATES, Decimal, Zone, date_of_timestamp, is_infinite, is_infinite_date};
use terrace_engine::{DataType, EngineError};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// numeric, of date, timestamps, interval.
    Extract(Part),
    /// double precision, the field being an argument.
    DatePart,
    DateTrunc,
    /// `date_bin(stride, time, origin)`.
    DateBin,
    MoveDays(Function),
    DaysBetween,
    TimeBetween,
    /// A timestamp with time zone and an interval, whose days are of the session's zone.
    MoveTime(Function),
    /// `timestamp AT TIME ZONE zone`, the zone first.
    AtZone,
    /// The beginning of the transaction, as this type.
    Now(DataType),
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Native {
    name: &'static str,
    kind: Kind,
    signature: Signature,
    aliases: Vec<String>,
}

fn udf(name: &'static str, kind: Kind, aliases: &[&str]) -> ScalarUDF {
    let signature = match kind {
        Kind::Extract(_) => Signature::any(1, Volatility::Immutable),
        Kind::DateBin => Signature::any(3, Volatility::Immutable),
        Kind::DateTrunc => Signature::one_of(vec![TypeSignature::Any(2), TypeSignature::Any(3)], Volatility::Immutable),
        Kind::Now(_) => Signature::nullary(Volatility::Stable),
        _ => Signature::any(2, Volatility::Immutable),
    };
    ScalarUDF::from(Native { name, kind, signature, aliases: aliases.iter().map(|a| (*a).to_owned()).collect() })
}

/// Puts the functions that have names in the place of DataFusion's.
pub(crate) fn register(state: &mut SessionState) {
    let functions = [
        udf("date_part", Kind::DatePart, &[]),
        udf("date_trunc", Kind::DateTrunc, &[]),
        udf("date_bin", Kind::DateBin, &[]),
        udf("timezone", Kind::AtZone, &[]),
        udf(
            "now",
            Kind::Now(DataType::Timestamptz),
            &["current_timestamp", "transaction_timestamp", "statement_timestamp"],
        ),
        udf("localtimestamp", Kind::Now(DataType::Timestamp), &[]),
        udf("localtime", Kind::Now(DataType::Time), &[]),
        udf("current_date", Kind::Now(DataType::Date), &["today"]),
    ];
    // DataFusion's to_char has other patterns: it would answer 'YYYY' with "YYYY".
    for function in functions.into_iter().chain([crate::functions::to_char::function()]) {
        state.register_udf(Arc::new(function)).expect("functions can be replaced");
    }
}

fn call(kind: Kind, name: &'static str, args: Vec<Expr>) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(udf(name, kind, &[])), args))
}

/// `extract(field FROM value)`.
pub(crate) fn extract(field: &str, value: Expr) -> Result<Expr> {
    let part = Part::named(field).ok_or_else(|| tunnel(unknown_part(field)))?;
    Ok(call(Kind::Extract(part), "extract", vec![value]))
}

fn unknown_part(field: &str) -> EngineError {
    EngineError::new("22023", format!("unit \"{}\" not recognized", field.to_lowercase()))
}

fn no_unit(part: Part, of: &str) -> EngineError {
    let part = format!("{part:?}").to_lowercase();
    EngineError::new("0A000", format!("unit \"{part}\" not supported for type {of}"))
}

/// `date + days`, `date - days`.
pub(crate) fn move_days(date: Expr, days: Expr, function: Function) -> Expr {
    let name = if function == Function::Add { "move_days" } else { "move_days_back" };
    call(Kind::MoveDays(function), name, vec![date, days])
}

/// `date - date`.
pub(crate) fn days_between(left: Expr, right: Expr) -> Expr {
    call(Kind::DaysBetween, "days_between", vec![left, right])
}

/// `timestamp - timestamp`, an interval of days and time of day.
pub(crate) fn time_between(left: Expr, right: Expr) -> Expr {
    call(Kind::TimeBetween, "time_between", vec![left, right])
}

/// `timestamp with time zone + interval`, and minus.
pub(crate) fn move_time(time: Expr, by: Expr, function: Function) -> Expr {
    let name = if function == Function::Add { "move_time" } else { "move_time_back" };
    call(Kind::MoveTime(function), name, vec![time, by])
}

impl ScalarUDFImpl for Native {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[ArrowType]) -> Result<ArrowType> {
        Ok(match self.kind {
            Kind::Extract(part) => {
                time_like(self.name, &types[0])?;
                if types[0] == ArrowType::Date32 && part.is_of_day() {
                    return Err(tunnel(no_unit(part, "date")));
                }
                if matches!(types[0], ArrowType::Time64(_)) && part.of_time(0).is_none() {
                    return Err(tunnel(no_unit(part, DataType::Time.base_name())));
                }
                if may_be_infinite(part, &types[0]) {
                    return Ok(decimal::arrow_type());
                }
                ArrowType::Decimal128(28, scale_of(part, &types[0]) as i8)
            }
            Kind::DatePart => {
                time_like(self.name, &types[1])?;
                ArrowType::Float64
            }
            // In the zone of the third one.
            Kind::DateTrunc if types.len() == 3 => match &types[1] {
                ArrowType::Date32 | ArrowType::Timestamp(..) | ArrowType::Utf8 | ArrowType::Null => {
                    arrow_type(DataType::Timestamptz)
                }
                other => return Err(tunnel(no_function(self.name, other))),
            },
            Kind::DateTrunc => match &types[1] {
                of if *of == ArrowType::Date32 || is_zoned(of) => arrow_type(DataType::Timestamptz),
                ArrowType::Timestamp(_, None) | ArrowType::Utf8 | ArrowType::Null => arrow_type(DataType::Timestamp),
                ArrowType::Interval(_) | ArrowType::Time64(_) => arrow_type(DataType::Interval),
                other => return Err(tunnel(no_function(self.name, other))),
            },
            Kind::DateBin => {
                match &types[0] {
                    ArrowType::Interval(_) | ArrowType::Utf8 | ArrowType::Null => {}
                    other => return Err(tunnel(no_function(self.name, other))),
                }
                types[1..].iter().try_for_each(|given| match given {
                    ArrowType::Interval(_) | ArrowType::Time64(_) => Err(tunnel(no_function(self.name, given))),
                    given => time_like(self.name, given),
                })?;
                let zoned = |t: &ArrowType| matches!(t, ArrowType::Date32 | ArrowType::Timestamp(_, Some(_)));
                let zoned = types[1..].iter().any(zoned);
                arrow_type(if zoned { DataType::Timestamptz } else { DataType::Timestamp })
            }
            Kind::MoveTime(_) => arrow_type(DataType::Timestamptz),
            Kind::AtZone => match &types[1] {
                ArrowType::Timestamp(_, None) => arrow_type(DataType::Timestamptz),
                ArrowType::Date32 | ArrowType::Utf8 | ArrowType::Null => arrow_type(DataType::Timestamp),
                of if is_zoned(of) => arrow_type(DataType::Timestamp),
                other => return Err(tunnel(no_function(self.name, other))),
            },
            Kind::MoveDays(_) => ArrowType::Date32,
            Kind::DaysBetween => ArrowType::Int32,
            Kind::TimeBetween => ArrowType::Interval(IntervalUnit::MonthDayNano),
            Kind::Now(data_type) => arrow_type(data_type),
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<ArrowType> = args.arg_fields.iter().map(|f| f.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|f| f.is_nullable());
        Ok(Arc::new(Field::new(self.name, self.return_type(&types)?, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        // A NULL of no type: all functions here are strict. (DataFusion's optimizer asks what a condition makes of
        // NULLs.)
        if args.args.iter().any(|a| a.data_type() == ArrowType::Null) {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from(args.return_field.data_type())?));
        }
        let scalar = args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let rows = if scalar { 1 } else { args.number_rows };
        let array = |at: usize| args.args[at].to_array(rows);
        let result: ArrayRef = match self.kind {
            Kind::Extract(part) => extracted(part, &array(0)?)?,
            Kind::DatePart => {
                let (part, of) = (self.part(&args.args[0])?, array(1)?);
                if let (Part::Epoch, ArrowType::Interval(_)) = (part, of.data_type()) {
                    let seconds = crate::functions::interval::intervals(&of)?.iter().map(|v| v.map(seconds)).collect();
                    Arc::<Float64Array>::new(seconds)
                } else {
                    Arc::new(part_as_float(part, &of)?)
                }
            }
            Kind::DateBin => date_bin(&array(0)?, &array(1)?, &array(2)?, args.return_field.data_type())?,
            Kind::DateTrunc => {
                let (times, to) = (array(1)?, args.return_field.data_type());
                match (&args.args[0], args.args.len()) {
                    (unit @ ColumnarValue::Scalar(_), 2) => date_trunc(self.part(unit)?, &times, to)?,
                    _ => self.truncated_by_row(&args.args, &times, to, rows)?,
                }
            }
            Kind::MoveDays(function) => move_array(function, &array(0)?, &array(1)?)?,
            Kind::DaysBetween => {
                let (a, b) = (array(0)?, array(1)?);
                let pairs = a.as_primitive::<Date32Type>().iter().zip(b.as_primitive::<Date32Type>());
                let days = pairs.map(|(a, b)| days_apart(a, b)).collect::<Result<Int32Array>>()?;
                Arc::new(days)
            }
            Kind::TimeBetween => time_array(&array(0)?, &array(1)?)?,
            Kind::MoveTime(function) => move_times(function, &array(0)?, &array(1)?)?,
            Kind::AtZone => at_zone(&array(0)?, &array(1)?)?,
            Kind::Now(_) => return internal_err!("{} stands for a constant", self.name),
        };
        if scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?));
        }
        Ok(ColumnarValue::Array(result))
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let (Kind::Now(data_type), Some(now)) = (self.kind, info.query_execution_start_time()) else {
            return Ok(ExprSimplifyResult::Original(args));
        };
        let micros = now.timestamp_micros();
        let value = match data_type {
            DataType::Date => ScalarValue::Date32(Some(date_of_timestamp(Zone::current().local(micros)))),
            DataType::Timestamp => ScalarValue::TimestampMicrosecond(Some(Zone::current().local(micros)), None),
            DataType::Time => ScalarValue::Time64Microsecond(Some(Zone::current().local(micros).rem_euclid(DAY))),
            _ => ScalarValue::TimestampMicrosecond(Some(micros), Some(UTC.into())),
        };
        Ok(ExprSimplifyResult::Simplified(Expr::Literal(value, None)))
    }
}

impl Native {
    fn part(&self, argument: &ColumnarValue) -> Result<Part> {
        match argument {
            ColumnarValue::Scalar(value) => match value.try_as_str() {
                Some(Some(name)) => Part::named(name).ok_or_else(|| tunnel(unknown_part(name))),
                _ => Err(tunnel(EngineError::unsupported(format!("{} of no constant unit", self.name)))),
            },
            ColumnarValue::Array(_) => {
                Err(tunnel(EngineError::unsupported(format!("{} of a unit that is no constant", self.name))))
            }
        }
    }
}

impl Native {
    /// `date_trunc` where each row may have a unit of its own, and a zone.
    fn truncated_by_row(
        &self,
        args: &[ColumnarValue],
        times: &ArrayRef,
        to: &ArrowType,
        rows: usize,
    ) -> Result<ArrayRef> {
        let text = |arg: &ColumnarValue| datafusion::arrow::compute::cast(&arg.to_array(rows)?, &ArrowType::Utf8);
        let units = text(&args[0])?;
        let zones = args.get(2).map(text).transpose()?;
        let mut cut: Vec<ArrayRef> = vec![];
        for row in 0..rows {
            let is_null = units.is_null(row) || zones.as_ref().is_some_and(|zones| zones.is_null(row));
            if is_null {
                cut.push(datafusion::arrow::array::new_null_array(to, 1));
                continue;
            }
            let unit = units.as_string::<i32>().value(row);
            let part = Part::named(unit).ok_or_else(|| tunnel(unknown_part(unit)))?;
            let zone = match &zones {
                Some(zones) => {
                    let name = zones.as_string::<i32>().value(row);
                    let unknown = || EngineError::new("22023", format!("time zone \"{name}\" not recognized"));
                    Zone::in_expression(name).ok_or_else(|| tunnel(unknown()))?
                }
                None => Zone::current(),
            };
            // A text without a zone, and a date, are of the session's.
            let time = times.slice(row, 1);
            let time = if zones.is_some() { convert_array(&time, DataType::Timestamptz)? } else { time };
            cut.push(zone.scope(|| date_trunc(part, &time, to))?);
        }
        if cut.is_empty() {
            return Ok(datafusion::arrow::array::new_empty_array(to));
        }
        let cut: Vec<&dyn Array> = cut.iter().map(AsRef::as_ref).collect();
        Ok(datafusion::arrow::compute::concat(&cut)?)
    }
}

/// What times functions are called with: a text is none (42883), and of constants without a type alone it is not known
/// which they are (42725); `date_bin` prefers moments.
pub(crate) fn refuse_texts(call: &mut ScalarFunction, schema: &DFSchema) -> Result<()> {
    let Some(Native { name, kind, .. }) = (call.func.inner().as_ref() as &dyn Any).downcast_ref() else {
        return Ok(());
    };
    let first = match kind {
        Kind::Extract(_) => 0,
        Kind::DatePart | Kind::DateTrunc | Kind::DateBin => 1,
        _ => return Ok(()),
    };
    let of_extract = matches!(kind, Kind::Extract(_));
    let shown = if of_extract { "pg_catalog.extract" } else { name };
    // With fewer arguments it does not exist, which is said where the function is chosen.
    let Some(times @ [_, ..]) = call.args.get_mut(first..) else { return Ok(()) };
    let is_text = |arg: &Expr| -> Result<bool> { Ok(!is_open(arg) && arg.get_type(schema)? == ArrowType::Utf8) };
    for arg in times.iter() {
        if is_text(arg)? {
            let message = format!("function {shown}(unknown, text) does not exist");
            return Err(tunnel(crate::functions::builtin::with_hint(EngineError::new("42883", message))));
        }
    }
    if !times.iter().all(is_open) {
        return Ok(());
    }
    if !matches!(kind, Kind::DateBin) {
        let message = format!("function {shown}(unknown, unknown) is not unique");
        let hint = "Could not choose a best candidate function. You might need to add explicit type casts.";
        return Err(tunnel(EngineError::new("42725", message).with_hint(hint)));
    }
    for arg in times {
        *arg = match std::mem::take(arg) {
            Expr::Literal(text, _) => Expr::Literal(convert_scalar(&text, DataType::Timestamptz)?, None),
            Expr::Placeholder(Placeholder { id, .. }) => {
                let moment = field_of("", DataType::Timestamptz, true);
                Expr::Placeholder(Placeholder { id, field: Some(Arc::new(moment)) })
            }
            other => other,
        };
    }
    Ok(())
}

fn no_function(name: &str, given: &ArrowType) -> EngineError {
    let shown = engine_type(given).map_or_else(|| given.to_string().to_lowercase(), |t| t.base_name().to_owned());
    EngineError::new("42883", format!("function {name}(unknown, {shown}) does not exist"))
}

fn time_like(name: &str, given: &ArrowType) -> Result<()> {
    match given {
        ArrowType::Date32 | ArrowType::Time64(_) | ArrowType::Interval(_) | ArrowType::Null => Ok(()),
        of if is_timestamp(of) => Ok(()),
        // A quoted literal, taken as a timestamp.
        ArrowType::Utf8 => Ok(()),
        other => Err(tunnel(no_function(name, other))),
    }
}

fn extract_array(part: Part, array: &ArrayRef) -> Result<Decimal128Array> {
    let values: Decimal128Array = match array.data_type() {
        ArrowType::Interval(_) => {
            let intervals = crate::functions::interval::intervals(array)?;
            let value = |v: Option<IntervalMonthDayNano>| -> Result<Option<i128>> {
                let Some(v) = v else { return Ok(None) };
                let found = part.of_interval(v.months, v.days, v.nanoseconds);
                found.map(Some).ok_or_else(|| tunnel(no_unit(part, "interval")))
            };
            intervals.iter().map(value).collect::<Result<_>>()?
        }
        ArrowType::Time64(_) => {
            let times = array.as_primitive::<Time64MicrosecondType>();
            let value = |v: Option<i64>| -> Result<Option<i128>> {
                let Some(v) = v else { return Ok(None) };
                let found = part.of_time(v);
                found.map(Some).ok_or_else(|| tunnel(no_unit(part, DataType::Time.base_name())))
            };
            times.iter().map(value).collect::<Result<_>>()?
        }
        ArrowType::Timestamp(_, Some(_)) => {
            let zone = Zone::current();
            micros_of(array)?.iter().map(|v| finite(v).map(|v| part.of_moment(v, zone))).collect()
        }
        _ if part.is_of_zone() => return Err(tunnel(no_unit(part, "timestamp without time zone"))),
        _ => micros_of(array)?.iter().map(|v| finite(v).map(|v| part.of_timestamp(v))).collect(),
    };
    let scale = scale_of(part, array.data_type());
    let values: Decimal128Array = match part.scale() - scale {
        0 => values,
        gone => values.unary(|v| v / 10i128.pow(gone.into())),
    };
    Ok(values.with_precision_and_scale(28, scale as i8)?)
}

/// Digits behind the point of a field's value: of a date none.
fn scale_of(part: Part, of: &ArrowType) -> u8 {
    if *of == ArrowType::Date32 { 0 } else { part.scale() }
}

/// A time that has this field: what is infinite has no other than those that are infinite, too.
fn finite(time: Option<i64>) -> Option<i64> {
    time.filter(|time| !is_infinite(*time))
}

/// Whether a field of this type's values is infinite where these are.
fn may_be_infinite(part: Part, of: &ArrowType) -> bool {
    part.is_endless() && !matches!(of, ArrowType::Interval(_) | ArrowType::Time64(_) | ArrowType::Null)
}

/// `extract`: as numeric.
fn extracted(part: Part, of: &ArrayRef) -> Result<ArrayRef> {
    let fields: ArrayRef = Arc::new(extract_array(part, of)?);
    if !may_be_infinite(part, of.data_type()) {
        return Ok(fields);
    }
    let fields = convert_array(&fields, DataType::Numeric(None))?;
    let times = micros_of(of)?;
    if part == Part::Julian && is_timestamp(of.data_type()) {
        return julian_days(of);
    }
    decimal::collected(decimal::decimals(&fields).zip(times.iter()).map(|(field, time)| match time {
        Some(i64::MIN) => Ok(Some(Decimal::MinusInfinity)),
        Some(i64::MAX) => Ok(Some(Decimal::Infinity)),
        _ => field,
    }))
}

/// Julian days, with how much of the last has passed.
fn julian_days(of: &ArrayRef) -> Result<ArrayRef> {
    let day = Decimal::from_int(DAY);
    let value = |time: i64| match time {
        i64::MIN => Ok(Decimal::MinusInfinity),
        i64::MAX => Ok(Decimal::Infinity),
        time => {
            let (days, passed) = julian(time, is_zoned(of.data_type()));
            let passed = Decimal::from_int(passed).divide(&day).map_err(tunnel)?;
            Decimal::from_int(days).add(&passed).map_err(tunnel)
        }
    };
    decimal::collected(micros_of(of)?.iter().map(|time| time.map(value).transpose()))
}

/// The Julian day on which a clock shows a time, and the microseconds of it that have passed.
fn julian(time: i64, zoned: bool) -> (i64, i64) {
    let shown = if zoned { Zone::current().local(time) } else { time };
    (shown.div_euclid(DAY) + JULIAN_OF_1970, shown.rem_euclid(DAY))
}

/// `date_part`: as double precision, which has infinity.
fn part_as_float(part: Part, of: &ArrayRef) -> Result<Float64Array> {
    let divisor = 10f64.powi(part.scale().into());
    let is_time = of.data_type() == &ArrowType::Date32 || is_timestamp(of.data_type());
    if !is_time || !part.is_endless() {
        return Ok(extract_array(part, of)?.iter().map(|v| v.map(|v| v as f64 / divisor)).collect());
    }
    let zone = Zone::current();
    let zoned = is_zoned(of.data_type());
    let value = |time: i64| match time {
        i64::MIN => f64::NEG_INFINITY,
        i64::MAX => f64::INFINITY,
        time if part == Part::Julian => {
            let (days, passed) = julian(time, zoned);
            days as f64 + passed as f64 / DAY as f64
        }
        time if zoned => part.of_moment(time, zone) as f64 / divisor,
        time => part.of_timestamp(time) as f64 / divisor,
    };
    Ok(micros_of(of)?.iter().map(|time| time.map(value)).collect())
}

/// An interval's length, summed up in the order in which PostgreSQL does it, and so rounded as there.
fn seconds(v: IntervalMonthDayNano) -> f64 {
    let day = 86_400.0;
    let time = (v.nanoseconds) as f64 / 1e6;
    let years = time + day * 365.25 * f64::from(v.months / 12);
    years + day * 30.0 * f64::from(v.months % 12) + day * f64::from(v.days)
}

/// The beginning of the stretch that a time lies in; stretches of `stride` follow each other from `origin` on, and come
/// before it.
fn date_bin(strides: &ArrayRef, times: &ArrayRef, origins: &ArrayRef, to: &ArrowType) -> Result<ArrayRef> {
    let zoned = matches!(to, ArrowType::Timestamp(_, Some(_)));
    let micros = |array| if zoned { moments_of(array) } else { micros_of(array) };
    let (strides, times, origins) =
        (crate::functions::interval::read_or_cast(strides)?, micros(times)?, micros(origins)?);
    let binned = strides.iter().zip(&times).zip(&origins).map(|((stride, time), origin)| {
        let (Some(stride), Some(time), Some(origin)) = (stride, time, origin) else { return Ok(None) };
        if stride.months != 0 {
            let why = "timestamps cannot be binned into intervals containing months or years";
            return Err(tunnel(EngineError::unsupported(why)));
        }
        let size = i64::from(stride.days).checked_mul(DAY).and_then(|days| days.checked_add(stride.nanoseconds));
        let size = size.ok_or_else(|| tunnel(EngineError::new("22008", "interval out of range")))?;
        if size <= 0 {
            return Err(tunnel(EngineError::new("22008", "stride must be greater than zero")));
        }
        if is_infinite(time) {
            return Ok(Some(time));
        }
        if is_infinite(origin) {
            return Err(tunnel(EngineError::new("22008", "origin out of range")));
        }
        let begin = time.checked_sub(origin).and_then(|since| time.checked_sub(since.rem_euclid(size)));
        let begin = begin.filter(|begin| in_range(*begin));
        begin.map(Some).ok_or_else(|| tunnel(time_out_of_range()))
    });
    if zoned {
        return moments_from(binned);
    }
    Ok(Arc::new(binned.collect::<Result<PrimitiveArray<TimestampMicrosecondType>>>()?))
}

fn date_trunc(part: Part, array: &ArrayRef, to: &ArrowType) -> Result<ArrayRef> {
    if let ArrowType::Interval(_) = to {
        let spans = crate::functions::interval::intervals(&convert_array(array, DataType::Interval)?)?;
        let cut = spans.iter().map(|v| {
            let Some(v) = v else { return Ok(None) };
            let cut = part.truncate_interval(v.months, v.days, v.nanoseconds);
            let (months, days, micros) = cut.ok_or_else(|| {
                let error = no_unit(part, "interval");
                let why = "Months usually have fractional weeks.";
                tunnel(if part == Part::Week { error.with_detail(why.to_owned()) } else { error })
            })?;
            Ok(Some(IntervalMonthDayNano { months, days, nanoseconds: micros }))
        });
        return Ok(Arc::new(cut.collect::<Result<PrimitiveArray<IntervalMonthDayNanoType>>>()?));
    }
    let cut = |v: Option<i64>| -> Result<Option<i64>> {
        let Some(v) = v else { return Ok(None) };
        let begin = part.truncate(v);
        begin.map(Some).ok_or_else(|| tunnel(EngineError::new("22023", format!("unit {part:?} cannot be cut to"))))
    };
    if !matches!(to, ArrowType::Timestamp(TimeUnit::Microsecond, Some(_))) {
        let cut = micros_of(array)?.iter().map(cut).collect::<Result<PrimitiveArray<TimestampMicrosecondType>>>()?;
        return Ok(Arc::new(cut));
    }
    // Units begin when they do in the session's zone. An hour that clocks show twice is cut where it is.
    let zone = Zone::current();
    let moments = moments_of(array)?;
    let cut = moments.iter().map(|v| {
        let Some(v) = v else { return Ok(None) };
        let local = zone.local(v);
        let Some(begin) = cut(Some(local))? else { return Ok(None) };
        let moment = if part.is_of_day() { v.checked_sub(local - begin) } else { zone.utc(begin) };
        moment.map(Some).ok_or_else(|| tunnel(time_out_of_range()))
    });
    moments_from(cut)
}

fn moments_from(values: impl Iterator<Item = Result<Option<i64>>>) -> Result<ArrayRef> {
    let array = values.collect::<Result<PrimitiveArray<TimestampMicrosecondType>>>()?;
    Ok(Arc::new(array.with_timezone(UTC)))
}

fn time_out_of_range() -> EngineError {
    EngineError::new("22008", "timestamp out of range")
}

fn move_times(function: Function, times: &ArrayRef, by: &ArrayRef) -> Result<ArrayRef> {
    let zone = Zone::current();
    let by = crate::functions::interval::intervals(by)?;
    let times = moments_of(times)?;
    let moved = times.iter().zip(by.iter()).map(|(time, by)| {
        let (Some(time), Some(by)) = (time, by) else { return Ok(None) };
        if is_infinite(time) {
            return Ok(Some(time));
        }
        let sign = if function == Function::Add { 1 } else { -1 };
        // Months and days by the clock, what is left by the time that passes.
        let day = match (by.months, by.days) {
            (0, 0) => Some(time),
            (months, days) => months
                .checked_mul(sign)
                .zip(days.checked_mul(sign))
                .and_then(|(months, days)| moved(zone.local(time), months, days, 0))
                .and_then(|local| zone.utc(local)),
        };
        let end = day.zip(by.nanoseconds.checked_mul(sign.into())).and_then(|(day, by)| day.checked_add(by));
        let end = end.filter(|end| in_range(*end));
        end.map(Some).ok_or_else(|| tunnel(time_out_of_range()))
    });
    moments_from(moved)
}

/// What clocks show in a zone at a moment; or when clocks in a zone show a timestamp.
fn at_zone(zones: &ArrayRef, times: &ArrayRef) -> Result<ArrayRef> {
    let zones = datafusion::arrow::compute::cast(zones, &ArrowType::Utf8)?;
    let to_moments = matches!(times.data_type(), ArrowType::Timestamp(_, None));
    let times = if to_moments { micros_of(times)? } else { moments_of(times)? };
    let values = zones.as_string::<i32>().iter().zip(times.iter()).map(|(name, time)| {
        let (Some(name), Some(time)) = (name, time) else { return Ok(None) };
        let unknown = || EngineError::new("22023", format!("time zone \"{name}\" not recognized"));
        let zone = Zone::in_expression(name).ok_or_else(|| tunnel(unknown()))?;
        if !to_moments {
            return Ok(Some(zone.local(time)));
        }
        zone.utc(time).map(Some).ok_or_else(|| tunnel(time_out_of_range()))
    });
    if to_moments {
        return moments_from(values);
    }
    Ok(Arc::new(values.collect::<Result<PrimitiveArray<TimestampMicrosecondType>>>()?))
}

fn date_out_of_range() -> EngineError {
    EngineError::new("22008", "date out of range")
}

fn days_apart(a: Option<i32>, b: Option<i32>) -> Result<Option<i32>> {
    let (Some(a), Some(b)) = (a, b) else { return Ok(None) };
    if is_infinite_date(a) || is_infinite_date(b) {
        return Err(tunnel(EngineError::new("22008", "cannot subtract infinite dates")));
    }
    a.checked_sub(b).map(Some).ok_or_else(|| tunnel(date_out_of_range()))
}

fn move_array(function: Function, dates: &ArrayRef, days: &ArrayRef) -> Result<ArrayRef> {
    let pairs = dates.as_primitive::<Date32Type>().iter().zip(days.as_primitive::<Int32Type>());
    let moved = pairs.map(|(date, days)| {
        let (Some(date), Some(days)) = (date, days) else { return Ok(None) };
        if is_infinite_date(date) {
            return Ok(Some(date));
        }
        let moved = if function == Function::Add { date.checked_add(days) } else { date.checked_sub(days) };
        let moved = moved.filter(|day| DATES.contains(day));
        moved.map(Some).ok_or_else(|| tunnel(date_out_of_range()))
    });
    Ok(Arc::new(moved.collect::<Result<PrimitiveArray<Date32Type>>>()?))
}

fn time_array(left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
    let (left, right) = (micros_of(left)?, micros_of(right)?);
    let between = left.iter().zip(right.iter()).map(|(a, b)| {
        let (Some(a), Some(b)) = (a, b) else { return Ok(None) };
        if is_infinite(a) || is_infinite(b) {
            return Err(tunnel(EngineError::new("22008", "cannot subtract infinite timestamps")));
        }
        let apart = a.checked_sub(b).ok_or_else(|| tunnel(EngineError::new("22008", "interval out of range")))?;
        // Days of 24 hours, and what is left of one, both of the same sign.
        Ok(Some(IntervalMonthDayNano::new(0, (apart / DAY) as i32, apart % DAY)))
    });
    Ok(Arc::new(between.collect::<Result<PrimitiveArray<IntervalMonthDayNanoType>>>()?))
}
