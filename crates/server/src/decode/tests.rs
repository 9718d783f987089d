use super::*;

fn read(bytes: &'static [u8], binary: bool, oid: u32, data_type: DataType) -> Result<Datum, &'static str> {
    parameter(Some(&Bytes::from_static(bytes)), binary, oid, data_type, 1).map_err(|e| e.state.0)
}

#[test]
fn binary_values_and_their_lengths() {
    assert_eq!(read(&[0, 0, 0, 7], true, 23, DataType::Int4), Ok(Datum::Int4(7)));
    assert_eq!(read(&[0, 7], true, 21, DataType::Int4), Ok(Datum::Int4(7)));
    assert_eq!(read(&[0, 0, 0, 0, 0, 0, 0, 0], true, 1114, DataType::Timestamp), Ok(Datum::Timestamp(EPOCH_2000)));
    assert_eq!(read(b"abc", true, 25, DataType::Text), Ok(Datum::Text("abc".into())));
    assert_eq!(read(&[0, 0, 7], true, 23, DataType::Int4), Err("22P03"));
    let infinity = Ok(Datum::Timestamp(i64::MAX));
    assert_eq!(read(&[0x7f, 255, 255, 255, 255, 255, 255, 255], true, 1114, DataType::Timestamp), infinity);
    assert_eq!(read(b"abc", true, 1266, DataType::Text), Err("0A000"));
    assert_eq!(read(b"a\0c", true, 17, DataType::Bytea), Ok(Datum::Bytea((*b"a\0c").into())));
    assert_eq!(read(&[0, 7], true, 21, DataType::Int2), Ok(Datum::Int2(7)));
    assert_eq!(read(&[0, 0, 0, 1], true, 1082, DataType::Date), Ok(Datum::Date(10_958)));
    assert_eq!(read(&[0; 8], true, 1184, DataType::Timestamptz), Ok(Datum::Timestamptz(EPOCH_2000)));
    assert_eq!(read(&[0; 16], true, 2950, DataType::Uuid), Ok(Datum::Uuid(0)));
    assert_eq!(read(b" [1]", true, 114, DataType::Json), Ok(Datum::Json(" [1]".into())));
    assert_eq!(read(b"\x01[1 ]", true, 3802, DataType::Jsonb), Ok(Datum::Jsonb("[1]".into())));
    assert_eq!(read(b"\x01[1", true, 3802, DataType::Jsonb), Err("22P02"));
    assert_eq!(read(b"\x02[1]", true, 3802, DataType::Jsonb), Err("XX000"));
    assert_eq!(read(b"", true, 3802, DataType::Jsonb), Err("22P03"));
    assert_eq!(read(&[0, 0, 0, 0, 0, 0, 0, 7], true, 1083, DataType::Time), Ok(Datum::Time(7)));
    assert_eq!(read(&[0xff; 8], true, 1083, DataType::Time), Err("22008"));
    assert_eq!(read(&[0; 7], true, 1083, DataType::Time), Err("22P03"));
    let span = Interval::new(2, -1, 7);
    let bytes = &[0, 0, 0, 0, 0, 0, 0, 7, 255, 255, 255, 255, 0, 0, 0, 2];
    assert_eq!(read(bytes, true, 1186, DataType::Interval), Ok(Datum::Interval(span)));
    assert_eq!(read(b"P1D", false, 1186, DataType::Interval), DataType::Interval.parse("1 day").map_err(|_| ""));
    let half = [0, 1, 255, 255, 0x40, 0, 0, 1, 0x13, 0x88];
    let numeric = DataType::Numeric(Some((5, 2)));
    let want = numeric.parse("-0.5").unwrap();
    assert_eq!(parameter(Some(&Bytes::copy_from_slice(&half)), true, 1700, numeric, 1).unwrap(), want);
}

#[test]
fn texts_are_utf8_without_nul() {
    assert_eq!(read(b"42", false, 23, DataType::Int4), Ok(Datum::Int4(42)));
    assert_eq!(read(b"x", false, 23, DataType::Int4), Err("22P02"));
    assert_eq!(read(b"\xff", false, 25, DataType::Text), Err("22021"));
    assert_eq!(read(b"a\0", false, 25, DataType::Text), Err("22021"));
}

/// The binary form of an int4[] of these dimensions (items, number of the first).
fn binary_array(dimensions: &[(i32, i32)], items: &[Option<i32>]) -> Vec<u8> {
    let mut bytes = vec![];
    for word in [dimensions.len() as i32, 0, 23] {
        bytes.extend_from_slice(&word.to_be_bytes());
    }
    dimensions.iter().for_each(|(length, first)| {
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&first.to_be_bytes());
    });
    for item in items {
        match item {
            Some(item) => bytes.extend([4i32.to_be_bytes(), item.to_be_bytes()].concat()),
            None => bytes.extend((-1i32).to_be_bytes()),
        }
    }
    bytes
}

#[test]
fn arrays_have_their_dimensions() {
    let ints = DataType::Int4.array().unwrap();
    let read = |bytes: Vec<u8>| match parameter(Some(&Bytes::from(bytes)), true, 1007, ints, 1) {
        Ok(array) => array.to_string(),
        Err(error) => error.state.0.to_owned(),
    };
    for (dimensions, items, text) in [
        (&[][..], &[][..], "{}"),
        (&[(2, 1)], &[Some(5), None], "{5,NULL}"),
        (&[(2, 0)], &[Some(5), Some(6)], "[0:1]={5,6}"),
        (&[(2, 1), (1, 1)], &[Some(5), Some(6)], "{{5},{6}}"),
        (&[(1, 1), (2, -3)], &[Some(5), Some(6)], "[1:1][-3:-2]={{5,6}}"),
        (&[(0, 1)], &[], "{}"),
        (&[(-1, 1)], &[], "54000"),
        (&[(1, 1); 7], &[Some(1)], "54000"),
        (&[(1, i32::MAX)], &[Some(1)], "54000"),
        (&[(100_000, 1), (100_000, 1)], &[], "54000"),
        // Fewer items than it says, and more.
        (&[(100_000_000, 1)], &[Some(1)], "22P03"),
        (&[(2, 1)], &[Some(1)], "22P03"),
        (&[(1, 1)], &[Some(1), Some(2)], "22P03"),
    ] {
        assert_eq!(read(binary_array(dimensions, items)), text, "{dimensions:?}");
    }
    let whole = binary_array(&[(2, 1), (1, 1)], &[Some(5), Some(6)]);
    for cut in 0..whole.len() {
        assert_eq!(read(whole[..cut].to_vec()), "22P03", "{cut}");
    }
}
