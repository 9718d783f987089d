//! Values of one side as those of the other, and rows of the system table.
use super::*;
use crate::types::Datum::{Float4, Float8, Int2, Int4, Int8};

fn numeric(unscaled: i128, scale: u8) -> Datum {
    Datum::Numeric(Numeric { unscaled, scale })
}

#[test]
fn a_value_is_converted_where_the_other_type_has_an_equal_one() {
    let two = DataType::Numeric(Some((10, 2)));
    let cases = [
        (Int4(7), DataType::Int8, Some(Int8(7))),
        (Int8(7), DataType::Int2, Some(Int2(7))),
        (Int8(1 << 40), DataType::Int4, None),
        (Int4(-3), two, Some(numeric(-300, 2))),
        (numeric(-300, 2), DataType::Int4, Some(Int4(-3))),
        (numeric(-301, 2), DataType::Int4, None),
        (numeric(1_000_000_000_000, 0), DataType::Int4, None),
        (numeric(15, 1), two, Some(numeric(150, 2))),
        (numeric(1505, 3), two, None),
        (numeric(i128::MAX, 0), two, None),
        (Float4(0.5), DataType::Float8, Some(Float8(0.5))),
        (Float8(0.5), DataType::Float4, Some(Float4(0.5))),
        (Float8(0.1), DataType::Float4, None),
        (Datum::text("x"), DataType::Varchar(3), Some(Datum::text("x"))),
        (Datum::Null, DataType::Int4, Some(Datum::Null)),
    ];
    for (value, to, expected) in cases {
        assert_eq!(convert(value.clone(), to), expected, "{value:?} as {to:?}");
    }
}

#[test]
fn columns_refer_to_columns_that_they_can_be_compared_with() {
    use DataType::*;
    for (from, to) in [(Int2, Int8), (Int8, Int2), (Int4, Numeric(None)), (Varchar(3), Text), (Uuid, Uuid)] {
        assert!(may_refer(from, to), "{from:?} to {to:?}");
    }
    for (from, to) in [(Numeric(None), Int4), (Int4, Text), (Date, Timestamp), (Char(3), Text), (Int4, Float8)] {
        assert!(!may_refer(from, to), "{from:?} to {to:?}");
    }
}

#[test]
fn a_row_of_the_system_table_is_read_as_it_was_written() {
    for (on_delete, _) in ACTIONS {
        let key = ForeignKey {
            oid: ObjectId(31),
            name: "k".into(),
            table: ObjectId(20),
            columns: vec![3, 0],
            referenced: ObjectId(21),
            key: vec![1, 2],
            index: ObjectId(22),
            on_delete,
            on_update: Action::Cascade,
            set: if on_delete == Action::SetNull { vec![3] } else { vec![] },
            full: true,
            deferrable: true,
            deferred: false,
            validated: false,
        };
        assert_eq!(read(&row(&key)).unwrap(), key);
    }
    assert_eq!(read(&[]).unwrap_err().state.0, "XX001");
}
