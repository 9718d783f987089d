use super::*;
use datafusion::arrow::array::{Decimal128Array, Float64Array, Int64Array};
use terrace_engine::types::Decimal;

fn run(name: &str, values: ArrayRef) -> Result<String> {
    let of = values.data_type().clone();
    let (kind, sample) = match name {
        "sum" => (Kind::Sum, false),
        "avg" => (Kind::Average, false),
        "var_pop" => (Kind::Variance, false),
        "var_samp" => (Kind::Variance, true),
        _ => (Kind::Deviation, true),
    };
    let signature = Signature::user_defined(Volatility::Immutable);
    let task = Aggregate { name: "x", aliases: vec![], kind, sample, signature }.task(&of)?;
    // As one, as groups, and over two states.
    let one = |values: &ArrayRef| -> Result<Box<dyn Accumulator>> {
        let mut one: Box<dyn Accumulator> = if task.is_float() {
            Box::new(One::<Float>::of(task.clone()))
        } else {
            Box::new(One::<Exact>::of(task.clone()))
        };
        one.update_batch(std::slice::from_ref(values))?;
        Ok(one)
    };
    let result = one(&values)?.evaluate()?;
    let half = values.len() / 2;
    let mut merged = one(&values.slice(0, half))?;
    let state: Vec<ArrayRef> =
        one(&values.slice(half, values.len() - half))?.state()?.iter().map(|s| s.to_array().unwrap()).collect();
    merged.merge_batch(&state)?;
    if !task.is_float() {
        assert_eq!(merged.evaluate()?, result, "{name} in two parts");
    }
    Ok(match result {
        ScalarValue::Decimal128(Some(value), precision, scale) => format!("{value},{precision},{scale}"),
        ScalarValue::LargeList(_) => Decimal::decode(decimal::bytes(&result.to_array()?, 0)).to_string(),
        other => other.to_string(),
    })
}

fn decimals(values: &[i128], scale: i8) -> ArrayRef {
    Arc::new(Decimal128Array::from_iter_values(values.iter().copied()).with_precision_and_scale(38, scale).unwrap())
}

#[test]
fn exact_results() {
    let whole = |values: &[i64]| -> ArrayRef { Arc::new(Int64Array::from(values.to_vec())) };
    assert_eq!(run("sum", whole(&[i64::MAX, i64::MAX])).unwrap(), "18446744073709551614,38,0");
    assert_eq!(run("avg", whole(&[1, 2])).unwrap(), "1.5000000000000000");
    assert_eq!(run("avg", whole(&[-1, -1, 0])).unwrap(), "-0.66666666666666666667");
    assert_eq!(run("var_pop", whole(&[1, 2, 4])).unwrap(), "1.5555555555555556");
    assert_eq!(run("stddev_samp", whole(&[1, 2, 4])).unwrap(), "1.5275252316519467");
    assert_eq!(run("stddev_samp", whole(&[7, 7])).unwrap(), "0");
    // 5 * 10^18 apart from the mean, twice: the sample's variance is 5e37.
    assert_eq!(
        run("stddev_samp", whole(&[5_000_000_000_000_000_000, -5_000_000_000_000_000_000])).unwrap(),
        "7071067811865475244"
    );
    assert_eq!(run("sum", decimals(&[10i128.pow(36); 9], 18)).unwrap(), "9000000000000000000000000000000000000,38,18");
    let wraps = run("sum", decimals(&[10i128.pow(36); 200], 18)).unwrap_err();
    assert!(wraps.to_string().contains("overflow"), "{wraps}");
}

#[test]
fn float_results() {
    let floats = |values: &[f64]| -> ArrayRef { Arc::new(Float64Array::from(values.to_vec())) };
    assert_eq!(run("avg", floats(&[1.0, 2.0, 4.0])).unwrap(), "2.3333333333333335");
    assert_eq!(run("var_pop", floats(&[1.0, 2.0, 4.0])).unwrap(), "1.5555555555555556");
    assert_eq!(run("var_pop", floats(&[f64::INFINITY])).unwrap(), "NaN");
    assert_eq!(run("sum", floats(&[f64::INFINITY, 1.0])).unwrap(), "inf");
    assert!(run("sum", floats(&[1e308, 1e308])).is_err());
}
