use super::*;
use crate::row::RowBuf;
use crate::row::tests::{any_of, any_type, same, table};
use proptest::prelude::*;
use std::cmp::Ordering;
use std::sync::Arc;
use terrace_storage::{ObjectId, TxnId};

fn index(columns: Vec<usize>) -> Index {
    Index {
        oid: ObjectId(78),
        name: "i".into(),
        table: ObjectId(77),
        columns,
        unique: true,
        primary: false,
        root: 0,
        created_by: TxnId(0),
        extras: None,
    }
}

fn compare(a: &[Datum], b: &[Datum]) -> Ordering {
    a.iter().zip(b).map(|(a, b)| a.as_ref().cmp_key(b.as_ref())).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

/// A table's types and two rows of it.
fn two_rows() -> impl Strategy<Value = (Vec<DataType>, Vec<Datum>, Vec<Datum>)> {
    prop::collection::vec(any_type(), 1..4).prop_flat_map(|types| {
        let row = || types.iter().map(|t| any_of(*t)).collect::<Vec<_>>();
        (Just(types.clone()), row(), row())
    })
}

proptest! {
    #[test]
    fn byte_order_is_value_order((types, a, b) in two_rows()) {
        let (t, i) = (table(&types), index((0..types.len()).collect()));
        let key = |row: &[Datum]| encode_key(&i, RowBuf::encode(&t, row).unwrap().view(&t));
        let (ka, kb) = (key(&a), key(&b));
        prop_assert_eq!(ka.cmp(&kb), compare(&a, &b), "{:?} {:?}", ka, kb);
        prop_assert!(ka == kb || !kb.starts_with(&ka), "invariant 2");
        prop_assert_eq!(&ka, &encode_prefix(&t, &i, &a).unwrap());
        prop_assert!(same(&decode_key(&t, &i, &ka).unwrap(), &a));
    }

    #[test]
    fn ranges_hold_what_they_say(
        (types, a, b) in two_rows(),
        lengths in (0usize..4, 0usize..4),
        kinds in (0..3, 0..3),
        rid in any::<(u32, u16)>(),
    ) {
        let (t, i) = (table(&types), Arc::new(index((0..types.len()).collect())));
        let bound = |kind: i32, v: &[Datum], n: usize| match kind {
            0 => Bound::Unbounded,
            1 => Bound::Included(v[..n.min(v.len())].to_vec()),
            _ => Bound::Excluded(v[..n.min(v.len())].to_vec()),
        };
        let range = IndexRange {
            index: i.clone(),
            from: bound(kinds.0, &b, lengths.0),
            to: bound(kinds.1, &b, lengths.1),
            direction: crate::txn::ScanDirection::Forward,
        };
        let rid = Rid { page: rid.0, slot: rid.1 };
        let entry = encode_entry(&i, RowBuf::encode(&t, &a).unwrap().view(&t), rid);
        prop_assert_eq!(rid_of(&entry), rid);
        let (from, to) = encode_range(&t, &range).unwrap();
        let above = match &from {
            Bound::Unbounded => true,
            Bound::Included(k) => entry >= *k,
            Bound::Excluded(k) => entry > *k,
        };
        let below = match &to {
            Bound::Unbounded => true,
            Bound::Included(k) => entry <= *k,
            Bound::Excluded(k) => entry < *k,
        };
        let want_above = match &range.from {
            Bound::Unbounded => true,
            Bound::Included(v) => compare(&a, v).is_ge(),
            Bound::Excluded(v) => compare(&a, v).is_gt(),
        };
        let want_below = match &range.to {
            Bound::Unbounded => true,
            Bound::Included(v) => compare(&a, v).is_le(),
            Bound::Excluded(v) => compare(&a, v).is_lt(),
        };
        prop_assert_eq!((above, below), (want_above, want_below));
    }
}

#[test]
fn details_name_columns_and_values() {
    let (t, i) = (table(&[DataType::Int4, DataType::Text]), index(vec![1, 0]));
    let row = RowBuf::encode(&t, &[Datum::Int4(-7), Datum::text("x\u{1}")]).unwrap();
    let key = encode_key(&i, row.view(&t));
    assert_eq!(describe(&t, &i, &key), "(c1, c0)=(x\u{1}, -7)");
    assert!(is_one_rows_of(&i, row.view(&t)));
    assert_eq!(decode_key(&t, &i, &key[..3]).unwrap_err().state.0, "XX001");
}
