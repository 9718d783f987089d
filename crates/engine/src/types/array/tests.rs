use super::*;
use crate::row::tests::any_of;
use crate::types::composites::CompositeDef;
use crate::types::enums::EnumDef;
use proptest::prelude::*;

fn ints(values: &[Option<i32>]) -> Datum {
    let values: Vec<Datum> = values.iter().map(|v| v.map_or(Datum::Null, Datum::Int4)).collect();
    Datum::Array(Array::new(Items::of(DataType::Int4).unwrap(), &values).unwrap())
}

fn read(of: DataType, text: &str) -> String {
    match of.array().unwrap().parse(text) {
        Ok(value) => value.to_string(),
        Err(e) => format!("{} {} {}", e.state.0, e.message, e.detail.unwrap_or_default()),
    }
}

#[test]
fn texts_of_arrays() {
    for (of, given, want) in [
        (DataType::Int4, "{}", "{}"),
        (DataType::Int4, " { } ", "{}"),
        (DataType::Int4, "{1, 2 ,-3}", "{1,2,-3}"),
        (DataType::Int4, "{1,NULL,null}", "{1,NULL,NULL}"),
        (DataType::Int4, "[1:2]={1,2}", "{1,2}"),
        (
            DataType::Text,
            r#"{a b, " c ","","null",nu\ll,x\,y,"q\"\\"}"#,
            r#"{"a b"," c ","","null","null","x,y","q\"\\"}"#,
        ),
        (DataType::Int4, "{{1,2},{3,NULL}}", "{{1,2},{3,NULL}}"),
        (DataType::Int4, " [0:1] = { 1 , 2 }", "[0:1]={1,2}"),
        (DataType::Int4, "[-1:0][2:3]={{1,2},{3,4}}", "[-1:0][2:3]={{1,2},{3,4}}"),
        (DataType::Int4, "{{{1},{2}},{{3},{4}}}", "{{{1},{2}},{{3},{4}}}"),
        (DataType::Text, " { { \",\" } , { 3 } }", "{{\",\"},{3}}"),
        (DataType::Bool, "{t,false}", "{t,f}"),
        (DataType::Numeric(None), "{1.50,2,NaN}", "{1.50,2,NaN}"),
        (DataType::Numeric(Some((5, 2))), "{1.5,2}", "{1.50,2.00}"),
        (DataType::Char(3), "{a,bcd}", "{\"a  \",bcd}"),
        (DataType::Bytea, r#"{"\\x00ff"}"#, r#"{"\\x00ff"}"#),
        (DataType::Date, "{2024-02-29}", "{2024-02-29}"),
    ] {
        assert_eq!(read(of, given), want, "{given}");
    }
}

#[test]
fn texts_that_are_no_arrays() {
    let malformed = |text: &str, detail: &str| {
        assert_eq!(read(DataType::Int4, text), format!("22P02 malformed array literal: \"{text}\" {detail}"));
    };
    for text in ["", "1,2", "x{}"] {
        malformed(text, "Array value must start with \"{\" or dimension information.");
    }
    for text in ["{", "{1", "{1,", "{\"a}", "{a\\", "{\"a\\"] {
        malformed(text, "Unexpected end of input.");
    }
    for text in ["{,1}", "{1,,2}"] {
        malformed(text, "Unexpected \",\" character.");
    }
    malformed("{1,}", "Unexpected \"}\" character.");
    malformed("{1}}", "Junk after closing right brace.");
    malformed("{\"1\"2}", "Unexpected array element.");
    malformed("{1\"2\"}", "Unexpected array element.");
    for text in ["[1:3]={1,2}", "[1:2]={{1,2}}", "[1:1][1:1]={1}"] {
        let what = text.split('=').nth(1).unwrap();
        let want = "Specified array dimensions do not match array contents.";
        assert_eq!(read(DataType::Int4, text), format!("22P02 malformed array literal: \"{what}\" {want}"));
    }
    for (text, shown, detail) in [
        ("{{1,{2}},{2,3}}", "{{1,{2}},{2,3}}", "Unexpected \"{\" character."),
        ("{{},{}}", "{{},{}}", "Unexpected \"}\" character."),
        ("{{1,2},\\{2,3}}", "{{1,2},\\{2,3}}", "Unexpected \"\\\" character."),
        ("{{\"1 2\" x},{3}}", "{{\"1 2\" x},{3}}", "Unexpected array element."),
        ("{{1,2},{3}}", "{{1,2},{3}}", "Multidimensional arrays must have sub-arrays with matching dimensions."),
        ("[1:2]={1", "{1", "Unexpected end of input."),
        ("[x]={1}", "[x]={1}", "\"[\" must introduce explicitly-specified array dimensions."),
        ("[1:]={1}", "[1:]={1}", "Missing array dimension value."),
    ] {
        let want = format!("22P02 malformed array literal: \"{shown}\" {detail}");
        assert_eq!(read(DataType::Int4, text), want, "{text}");
    }
    malformed("[1:2]{1,2}", "Missing \"=\" after array dimensions.");
    malformed("[1:2]=1", "Array contents must start with \"{\".");
    for (text, state) in [
        ("[2:1]={}", "2202E"),
        ("{x}", "22P02"),
        ("[2147483647:2147483647]={1}", "54000"),
        ("{{{{{{{1}}}}}}}", "54000"),
    ] {
        assert!(read(DataType::Int4, text).starts_with(state), "{text}");
    }
}

#[test]
fn arrays_are_of_their_columns_type() {
    let of = |item: DataType| item.array().unwrap();
    assert_eq!((of(DataType::Int4).pg_oid(), of(DataType::Int4).base_name()), (1007, "integer[]"));
    assert_eq!(of(DataType::Varchar(3)).to_string(), "character varying(3)[]");
    assert!(of(DataType::Int4).array().is_none(), "no array is of arrays");
    let value = ints(&[Some(1), None]);
    assert!(of(DataType::Int4).admits(value.as_ref()).is_ok());
    assert_eq!(of(DataType::Int8).admits(value.as_ref()).unwrap_err().state.0, "42804");
    assert_eq!(Array::new(Items::of(DataType::Int2).unwrap(), &[Datum::Int4(1)]).unwrap_err().state.0, "42804");
    let long = Array::new(Items::of(DataType::Varchar(1)).unwrap(), &[Datum::text("ab")]);
    assert_eq!(long.unwrap_err().state.0, "22001");
}

#[test]
fn arrays_are_ordered_as_in_postgresql() {
    let ascending = [
        ints(&[]),
        ints(&[Some(1)]),
        ints(&[Some(1), Some(2)]),
        ints(&[Some(1), Some(2), Some(0)]),
        ints(&[Some(1), Some(3)]),
        ints(&[Some(1), None]),
        ints(&[Some(2)]),
        ints(&[None]),
    ];
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            assert_eq!(a.as_ref().cmp_key(b.as_ref()), i.cmp(&j), "{a} {b}");
        }
    }
}

#[test]
fn shapes_are_ordered_behind_items() {
    let of = DataType::Int4.array().unwrap();
    let ascending = ["{1,2}", "[2:3]={1,2}", "{{1,2}}", "{{1},{2}}", "{1,2,3}", "{{1},{3}}"];
    let ascending = ascending.map(|text| of.parse(text).unwrap());
    for (i, a) in ascending.iter().enumerate() {
        for (j, b) in ascending.iter().enumerate() {
            assert_eq!(a.as_ref().cmp_key(b.as_ref()), i.cmp(&j), "{a} {b}");
        }
    }
    let (below, plain) = (of.parse("[0:1]={1,2}").unwrap(), of.parse("{1,2}").unwrap());
    assert!(below.as_ref().cmp_key(plain.as_ref()).is_lt());
}

#[test]
fn the_format_is_what_the_diagram_says() {
    let Datum::Array(shaped) = DataType::Int2.array().unwrap().parse("[0:0][1:2]={{5,6}}").unwrap() else {
        panic!("it is an array")
    };
    let dimensions = [2, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0];
    let whole = [&[2, 21, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0][..], &dimensions, &[0, 5, 0, 6, 0]].concat();
    assert_eq!(shaped.bytes(), whole);
    for cut in 0..whole.len() {
        assert!(check(&whole[..cut], None).is_err(), "{cut}");
    }

    let Datum::Array(array) = ints(&[Some(5), None]) else { panic!("it is an array") };
    assert_eq!(array.bytes(), [1, 23, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0b10, 5, 0, 0, 0]);
    let texts = Array::new(Items::of(DataType::Text).unwrap(), &[Datum::text("ab")]).unwrap();
    assert_eq!(texts.bytes()[13..], [0, 2, 0, 0, 0, b'a', b'b']);
}

/// Two databases of a process may have an enum and a composite type of one OID, and their definitions one number.
#[test]
fn items_of_an_enum_are_not_those_of_a_composite_type() {
    let name = |n: usize| format!("t{n}");
    for n in 0..200 {
        let labels = ["a".to_owned()];
        let of_enum = EnumType::of(EnumDef::new(70_000, 70_001, &name(n), &labels, &[70_002]).unwrap()).unwrap();
        let made = CompositeDef::new([70_000, 70_001, 70_002], &name(n), []).unwrap();
        for of in [DataType::Enum(of_enum), DataType::Composite(CompositeType::of(made).unwrap())] {
            assert_eq!(Items::of(of).unwrap().get(), of);
        }
    }
}

proptest! {
    /// Invariant 1: what is cut, or has another byte, is told, or is another array that can be read.
    #[test]
    fn bytes_are_checked(
        values in prop::collection::vec(any_of(DataType::Text), 0..4),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let array = Array::new(Items::of(DataType::Text).unwrap(), &values).unwrap();
        let read: Vec<Datum> = array.view().iter().map(|item| item.to_datum()).collect();
        prop_assert_eq!(&read, &values);
        for cut in 0..array.bytes().len() {
            prop_assert!(check(&array.bytes()[..cut], None).is_err());
        }
        let mut damaged = array.bytes().to_vec();
        let at = at.index(damaged.len());
        damaged[at] = byte;
        if check(&damaged, None).is_ok() {
            prop_assert_eq!(ArrayView::of(&damaged).iter().count(), ArrayView::of(&damaged).len());
        }
    }
}
