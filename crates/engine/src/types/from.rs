//! Values from Rust's.
use super::Datum;

macro_rules! from {
    ($($rust:ty => $variant:ident),*) => {
        $(impl From<$rust> for Datum {
            fn from(value: $rust) -> Datum {
                Datum::$variant(value.into())
            }
        })*
    };
}

from!(bool => Bool, i16 => Int2, i32 => Int4, i64 => Int8, u32 => Int8, f32 => Float4, f64 => Float8);
from!(&str => Text, String => Text, Vec<u8> => Bytea);

/// `None` is NULL.
impl<T: Into<Datum>> From<Option<T>> for Datum {
    fn from(value: Option<T>) -> Datum {
        value.map_or(Datum::Null, Into::into)
    }
}
