//! Stored values to DataRow messages, without Arrow between them: the same bytes.
use super::{array_head, date_2000, interval, moment_2000, numeric, pad};
use crate::types::{JSONB_VERSION, Wire, row_description, wire};
use bytes::{BufMut, Bytes, BytesMut};
use datafusion::arrow::datatypes::Schema;
use pgwire::messages::PgWireBackendMessage;
use std::fmt::Write;
use terrace_engine::DatumRef;
use terrace_engine::types::Decimal;
use terrace_sql::Prepared;

/// What of a statement's result is the same each time it runs.
pub(crate) struct Shown {
    wires: Vec<Wire>,
    /// The RowDescription message, all columns as text.
    pub(crate) description: Bytes,
}

impl Shown {
    pub(super) fn new(schema: &Schema) -> Shown {
        let mut description = BytesMut::new();
        let message = PgWireBackendMessage::RowDescription(row_description(schema, |_| false));
        message.encode(&mut description).expect("a message within its size limits, and a buffer grows");
        let wires = schema.fields().iter().map(|field| wire(field)).collect();
        Shown { wires, description: description.freeze() }
    }

    /// Of a statement that returns rows; made once for each.
    pub(crate) fn of(prepared: &Prepared) -> Option<&Shown> {
        let schema = prepared.columns.as_ref()?;
        prepared.attached.get_or_init(|| Box::new(Shown::new(schema))).downcast_ref()
    }

    /// Writes one DataRow; `binary`: as [`crate::extended`] spreads formats, empty: all text.
    pub(crate) fn row<'a>(
        &self,
        out: &mut BytesMut,
        values: impl ExactSizeIterator<Item = DatumRef<'a>>,
        binary: &[bool],
    ) {
        assert_eq!(values.len(), self.wires.len(), "a row has the columns that were described");
        let start = out.len();
        out.put_u8(b'D');
        out.put_u32(0);
        out.put_u16(values.len() as u16);
        for (i, (value, wire)) in values.zip(&self.wires).enumerate() {
            field(out, value, wire, binary.get(i).copied().unwrap_or(false));
        }
        let length = (out.len() - start - 1) as u32;
        out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    }
}

/// A value with its length before it; NULL is length -1.
fn field(out: &mut BytesMut, value: DatumRef<'_>, wire: &Wire, binary: bool) {
    let start = out.len();
    out.put_i32(-1);
    match value {
        DatumRef::Null => return,
        DatumRef::Text(text) | DatumRef::Json(text) => out.put_slice(text.as_bytes()),
        value if binary => self::binary(out, value, wire),
        value => write!(out, "{value}").expect("a buffer grows"),
    }
    pad(out, start + 4, wire.padded());
    let length = (out.len() - start - 4) as i32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

fn binary(out: &mut BytesMut, value: DatumRef<'_>, wire: &Wire) {
    match value {
        DatumRef::Bool(v) => out.put_u8(u8::from(v)),
        DatumRef::Int2(v) => out.put_i16(v),
        DatumRef::Int4(v) => out.put_i32(v),
        DatumRef::Int8(v) => out.put_i64(v),
        DatumRef::Float4(v) => out.put_f32(v),
        DatumRef::Float8(v) => out.put_f64(v),
        DatumRef::Date(v) => out.put_i32(date_2000(v)),
        DatumRef::Timestamp(v) | DatumRef::Timestamptz(v) => out.put_i64(moment_2000(v)),
        DatumRef::Numeric(v) => numeric::binary(out, &v.into()),
        DatumRef::Decimal(v) => numeric::binary(out, &Decimal::decode(v)),
        DatumRef::Bytea(v) => out.put_slice(v),
        DatumRef::Time(v) => out.put_i64(v),
        DatumRef::Interval(v) => interval::binary(out, v),
        DatumRef::Uuid(v) => out.put_u128(v),
        DatumRef::Jsonb(v) => {
            out.put_u8(JSONB_VERSION);
            out.put_slice(v.as_bytes());
        }
        DatumRef::Array(array) => {
            let item = wire.item();
            array_head(out, item.oid, &array.shape(), array.iter().any(DatumRef::is_null));
            array.iter().for_each(|value| field(out, value, &item, true));
        }
        DatumRef::Enum(of, v) => out.put_slice(of.shown(v).as_bytes()),
        DatumRef::Record(record) => {
            let attributes: Vec<_> = record.of().def().attributes().collect();
            out.put_i32(attributes.len() as i32);
            for (value, attribute) in record.values().zip(attributes) {
                let wire = Wire::of_attribute(attribute.data_type);
                out.put_u32(wire.oid);
                field(out, value, &wire, true);
            }
        }
        DatumRef::Null | DatumRef::Text(_) | DatumRef::Json(_) => unreachable!("written by the caller"),
    }
}
