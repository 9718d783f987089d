use super::*;
use crate::catalog::ColumnDef;
use crate::types::composites::{Attribute, CompositeDef};
use crate::types::enums::EnumDef;
use crate::types::{Array, CompositeType, Decimal, EnumType, Record};
use proptest::prelude::*;
use terrace_storage::ObjectId;

pub(crate) fn any_type() -> impl Strategy<Value = DataType> {
    prop::sample::select(vec![
        DataType::Bool,
        DataType::Int2,
        DataType::Int4,
        DataType::Int8,
        DataType::Float4,
        DataType::Float8,
        DataType::Numeric(None),
        DataType::Numeric(Some((5, 2))),
        DataType::Numeric(Some((38, 38))),
        DataType::Text,
        DataType::Varchar(9),
        DataType::Char(9),
        DataType::Bytea,
        DataType::Date,
        DataType::Timestamp,
        DataType::Timestamptz,
        DataType::Time,
        DataType::Interval,
        DataType::Uuid,
        DataType::Int4.array().unwrap(),
        DataType::Text.array().unwrap(),
        DataType::Numeric(Some((5, 2))).array().unwrap(),
        DataType::Numeric(None).array().unwrap(),
        DataType::Interval.array().unwrap(),
        DataType::Float8.array().unwrap(),
        mood(),
        mood().array().unwrap(),
        pair(),
        pair().array().unwrap(),
    ])
}

/// A composite type.
pub(crate) fn pair() -> DataType {
    let attribute = |name: &str, data_type| Attribute { name: name.into(), data_type };
    let attributes = [
        attribute("a", DataType::Float8),
        attribute("", DataType::Int2),
        attribute("b", DataType::Text.array().unwrap()),
    ];
    DataType::Composite(
        CompositeType::of(CompositeDef::new([70_000, 70_001, 70_002], "pair", attributes).unwrap()).unwrap(),
    )
}

/// An enum.
fn mood() -> DataType {
    let labels = ["sad", "so so", "NULL", "{x,\""].map(str::to_owned);
    DataType::Enum(EnumType::of(EnumDef::new(20_001, 20_002, "mood", &labels, &[1, 2, 3, 4]).unwrap()).unwrap())
}

/// Microseconds within the years that have a text form.
const TIMES: std::ops::Range<i64> = -210_000_000_000_000_000..9_200_000_000_000_000_000;

/// Near ones are often equal in different ways.
pub(crate) fn any_interval() -> impl Strategy<Value = Interval> {
    let far = (any::<i32>(), any::<i32>(), any::<i64>());
    let near = (-1..2i32, prop::sample::select(vec![-30, -1, 0, 1, 29, 30, 60]), -1..2i64);
    let near = near.prop_map(|(months, days, part)| (months, days, part * crate::types::DAY_MICROS));
    prop_oneof![far, near].prop_map(|(months, days, micros)| Interval::new(months, days, micros))
}

/// Many are equal but for their scale.
pub(crate) fn any_decimal() -> impl Strategy<Value = Decimal> {
    let long = "-?[0-9]{1,90}(\\.[0-9]{1,60})?";
    let near = "-?[0-2]{1,3}(\\.[01]{0,2}0{0,4})?";
    let far = "-?[1-9]e-?[0-9]{1,3}";
    let special = prop::sample::select(vec!["NaN", "Infinity", "-Infinity", "0", "0.00"]).prop_map(str::to_owned);
    let text =
        prop_oneof![3 => long.prop_map(|s| s), 4 => near.prop_map(|s| s), 2 => far.prop_map(|s| s), 1 => special];
    text.prop_map(|text| Decimal::parse(&text).unwrap())
}

pub(crate) fn any_of(t: DataType) -> BoxedStrategy<Datum> {
    let value = match t {
        DataType::Bool => any::<bool>().prop_map(Datum::Bool).boxed(),
        DataType::Int4 => prop_oneof![any::<i32>(), -2..3].prop_map(Datum::Int4).boxed(),
        DataType::Int8 => prop_oneof![any::<i64>(), -2..3i64].prop_map(Datum::Int8).boxed(),
        DataType::Int2 => prop_oneof![any::<i16>(), -2..3i16].prop_map(Datum::Int2).boxed(),
        DataType::Numeric(None) => any_decimal().prop_map(|v| Datum::Decimal(v.encode())).boxed(),
        DataType::Numeric(Some((precision, scale))) => {
            let limit = crate::types::power_of_ten(precision) - 1;
            let unscaled = prop_oneof![-limit..=limit, -2..3i128, Just(limit), Just(-limit)];
            unscaled.prop_map(move |unscaled| Datum::Numeric(Numeric { unscaled, scale })).boxed()
        }
        DataType::Float4 => {
            let special = prop::sample::select(vec![0.0, -0.0, 1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-45]);
            prop_oneof![any::<f32>(), special].prop_map(Datum::Float4).boxed()
        }
        DataType::Float8 => {
            let special =
                prop::sample::select(vec![0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 5e-324]);
            prop_oneof![any::<f64>(), special].prop_map(Datum::Float8).boxed()
        }
        DataType::Text => "[\u{1}-\u{3}ab\u{7f}é]{0,6}".prop_map(Datum::text).boxed(),
        DataType::Varchar(_) => "[abé]{0,9}".prop_map(Datum::text).boxed(),
        // Blanks within, none at the end.
        DataType::Char(_) => "( {0,2}[aé\u{1}]){0,3}".prop_map(Datum::text).boxed(),
        DataType::Bytea => prop::collection::vec(prop_oneof![0..3u8, any::<u8>()], 0..6)
            .prop_map(|bytes| Datum::Bytea(bytes.into()))
            .boxed(),
        DataType::Date => prop_oneof![-2_400_000..2_145_000_000, -2..3].prop_map(Datum::Date).boxed(),
        DataType::Timestamp => prop_oneof![TIMES, -2..3i64].prop_map(Datum::Timestamp).boxed(),
        DataType::Timestamptz => prop_oneof![TIMES, -2..3i64].prop_map(Datum::Timestamptz).boxed(),
        DataType::Time => prop_oneof![0..=crate::types::DAY_MICROS, 0..3i64].prop_map(Datum::Time).boxed(),
        DataType::Interval => any_interval().prop_map(Datum::Interval).boxed(),
        DataType::Uuid => any::<u128>().prop_map(Datum::Uuid).boxed(),
        DataType::Json => any::<i64>().prop_map(|v| Datum::Json(format!(" [{v} ]").into())).boxed(),
        DataType::Jsonb => any::<i64>().prop_map(|v| Datum::Jsonb(format!("[{v}]").into())).boxed(),
        DataType::Array(items) => prop::collection::vec(any_of(items.get()), 0..4)
            .prop_map(move |values| Datum::Array(Array::new(items, &values).unwrap()))
            .boxed(),
        DataType::Composite(of) => {
            let values: Vec<_> = of.def().attributes().map(|attribute| any_of(attribute.data_type)).collect();
            values.prop_map(move |values| Datum::Record(Record::new(of, &values).unwrap())).boxed()
        }
        DataType::Enum(of) => {
            (1..=of.def().labels().len() as i64).prop_map(move |at| Datum::Enum(of, at << 32)).boxed()
        }
    };
    prop_oneof![1 => Just(Datum::Null), 6 => value].boxed()
}

pub(crate) fn any_value() -> impl Strategy<Value = (DataType, Datum)> {
    let of = prop_oneof![9 => any_type(), 1 => Just(DataType::Json), 1 => Just(DataType::Jsonb)];
    of.prop_flat_map(|t| (Just(t), any_of(t)))
}

pub(crate) fn table(types: &[DataType]) -> Table {
    let columns = types.iter().enumerate().map(|(i, t)| ColumnDef::new(&format!("c{i}"), *t)).collect();
    Table::new(ObjectId(77), "t".into(), columns, Vec::new())
}

pub(crate) fn same(a: &[Datum], b: &[Datum]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.as_ref().cmp_key(b.as_ref()).is_eq())
}

proptest! {
    #[test]
    fn rows_read_back_and_old_rows_are_prefixes(
        row in prop::collection::vec(any_value(), 0..20),
        extra in prop::collection::vec(any_value(), 0..10),
    ) {
        let types: Vec<DataType> = row.iter().map(|(t, _)| *t).collect();
        let values: Vec<Datum> = row.into_iter().map(|(_, d)| d).collect();
        let old = table(&types);
        let encoded = RowBuf::encode(&old, &values).unwrap();
        prop_assert!(same(&RowView::checked(&old, &encoded.0).unwrap().to_datums(), &values));
        // The same bytes under a definition with columns added since.
        let mut columns = old.columns.clone();
        for (i, (t, d)) in extra.iter().enumerate() {
            columns.push(ColumnDef { missing: d.clone(), ..ColumnDef::new(&format!("x{i}"), *t) });
        }
        let new = Table::new(old.oid, "t".into(), columns, Vec::new());
        let want: Vec<Datum> = values.iter().cloned().chain(extra.into_iter().map(|(_, d)| d)).collect();
        prop_assert!(same(&RowView::checked(&new, &encoded.0).unwrap().to_datums(), &want));
        for cut in 0..encoded.0.len() {
            prop_assert!(RowView::checked(&old, &encoded.0[..cut]).is_err());
        }
    }
}

#[test]
fn rows_are_checked() {
    let mut t = table(&[DataType::Int4, DataType::Varchar(3)]);
    t.columns[0].not_null = true;
    let refuse = |row: &[Datum]| RowBuf::encode(&t, row).unwrap_err();
    let e = refuse(&[Datum::Null, Datum::text("x")]);
    assert_eq!(e.state.0, "23502");
    assert_eq!(e.detail.unwrap(), "Failing row contains (null, x).");
    assert_eq!(e.column.unwrap(), "c0");
    assert_eq!(refuse(&[Datum::Int4(1), Datum::text("four")]).state.0, "22001");
    assert_eq!(refuse(&[Datum::Int8(1), Datum::Null]).state.0, "42804");
    assert_eq!(refuse(&[Datum::Int4(1)]).state.0, "XX000");
}

#[test]
fn the_format_is_what_the_diagram_says() {
    let t = table(&[DataType::Int4, DataType::Text, DataType::Bool, DataType::Text]);
    let row = RowBuf::encode(&t, &[Datum::Int4(5), Datum::text("ab"), Datum::Null, Datum::text("c")]).unwrap();
    assert_eq!(row.0, [1, 4, 0, 0b100, 5, 0, 0, 0, 2, 0, 0, 0, 0, 3, 0, 0, 0, b'a', b'b', b'c']);
}
