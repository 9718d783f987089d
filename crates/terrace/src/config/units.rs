//! Sizes and times as people write them.

use serde::de::{Deserialize, Deserializer, Error, IntoDeserializer, Visitor};
use std::fmt;
use std::time::Duration;
use terrace_storage::config::{FlashOrder, WritePolicy};

/// Bytes. Written as a number or as "4KB", "128MB", "1GB", "2TB" (powers of 1024).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Size(pub u64);

/// Bytes, or "unlimited" (`u64::MAX`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Capacity(pub u64);

/// A time. Written as "100ms", "5s", "30min", "1h" or "7d".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Span(pub Duration);

/// Bytes a day, or in hundredths how often a day a device of some size may be written whole ("drive writes per day").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DailyWrites {
    Bytes(Size),
    Drives(u64),
}

/// A value, or "off".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Switch<T>(pub Option<T>);

const SIZES: [(&str, u64); 5] = [("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10), ("B", 1)];
const SPANS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1)];

/// Number and unit of a text like "128 MB".
fn split(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, text[end..].trim()))
}

fn scaled(text: &str, units: &[(&str, u64)], bare: Option<u64>) -> Option<u64> {
    let (number, unit) = split(text)?;
    let scale = match unit {
        "" => bare?,
        unit => units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?.1,
    };
    number.checked_mul(scale)
}

impl Size {
    pub fn parse(text: &str) -> Option<Size> {
        scaled(text, &SIZES, Some(1)).map(Size)
    }
}

impl DailyWrites {
    /// "200GB", "1.5 DWPD".
    pub fn parse(text: &str) -> Option<DailyWrites> {
        let lower = text.trim().to_ascii_lowercase();
        let Some(number) = lower.strip_suffix("dwpd") else { return Size::parse(text).map(DailyWrites::Bytes) };
        let drives: f64 = number.trim().parse().ok()?;
        (0.01..=1000.0).contains(&drives).then(|| DailyWrites::Drives((drives * 100.0).round() as u64))
    }

    /// Bytes a day for a device of that size.
    pub fn bytes(self, device: Size) -> u64 {
        match self {
            DailyWrites::Bytes(size) => size.0,
            DailyWrites::Drives(hundredths) => (u128::from(device.0) * u128::from(hundredths) / 100) as u64,
        }
    }
}

impl fmt::Display for DailyWrites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DailyWrites::Bytes(size) => size.fmt(f),
            DailyWrites::Drives(hundredths) => write!(f, "{} DWPD", *hundredths as f64 / 100.0),
        }
    }
}

impl Span {
    pub fn parse(text: &str) -> Option<Span> {
        scaled(text, &SPANS, None).map(|ms| Span(Duration::from_millis(ms)))
    }
}

/// The largest unit that divides the number, so that nothing is rounded.
fn display(number: u64, units: &[(&str, u64)], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match units.iter().find(|(_, scale)| number != 0 && number.is_multiple_of(*scale)) {
        Some((name, scale)) => write!(f, "{}{name}", number / scale),
        None => write!(f, "{number}"),
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(self.0, &SIZES, f)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_millis() as u64 {
            0 => write!(f, "0s"),
            ms => display(ms, &SPANS, f),
        }
    }
}

/// Accepts a text by `parse` and, where `numbers` allows them, whole numbers.
struct Words<T> {
    expecting: &'static str,
    parse: fn(&str) -> Option<T>,
    number: Option<fn(u64) -> T>,
}

impl<T> Visitor<'_> for Words<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).ok_or_else(|| E::custom(format!("{text:?} is not {}", self.expecting)))
    }
    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        match (self.number, u64::try_from(number)) {
            (Some(make), Ok(number)) => Ok(make(number)),
            _ => Err(E::custom(format!("{number} is not {}", self.expecting))),
        }
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Size, D::Error> {
        let expecting = "a size such as \"128MB\"";
        deserializer.deserialize_any(Words { expecting, parse: Size::parse, number: Some(Size) })
    }
}

impl<'de> Deserialize<'de> for Capacity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Capacity, D::Error> {
        let expecting = "a size such as \"100GB\", or \"unlimited\"";
        let parse = |text: &str| match text {
            "unlimited" => Some(Capacity(u64::MAX)),
            text => Size::parse(text).map(|size| Capacity(size.0)),
        };
        deserializer.deserialize_any(Words { expecting, parse, number: Some(Capacity) })
    }
}

impl<'de> Deserialize<'de> for DailyWrites {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DailyWrites, D::Error> {
        let expecting = "bytes a day such as \"200GB\", or drive writes per day such as \"1.5 DWPD\"";
        let number = |bytes| DailyWrites::Bytes(Size(bytes));
        deserializer.deserialize_any(Words { expecting, parse: DailyWrites::parse, number: Some(number) })
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        let expecting = "a time such as \"5s\", with its unit (ms, s, min, h, d)";
        deserializer.deserialize_any(Words { expecting, parse: Span::parse, number: None })
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Switch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Switch<T>, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.as_str() {
            "off" => Ok(Switch(None)),
            _ => T::deserialize(text.into_deserializer()).map(|value| Switch(Some(value))),
        }
    }
}

/// A value by its name, which is one of `names`.
fn named<'de, D: Deserializer<'de>, T>(from: D, find: fn(&str) -> Option<T>, names: &[&str]) -> Result<T, D::Error> {
    let name = String::deserialize(from)?;
    find(&name).ok_or_else(|| {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        D::Error::custom(format!("unknown variant `{name}`, expected one of {}", names.join(", ")))
    })
}

pub(super) fn write_policy<'de, D: Deserializer<'de>>(from: D) -> Result<WritePolicy, D::Error> {
    named(from, WritePolicy::named, &WritePolicy::ALL.map(WritePolicy::name))
}

pub(super) fn flash_order<'de, D: Deserializer<'de>>(from: D) -> Result<FlashOrder, D::Error> {
    named(from, FlashOrder::named, &FlashOrder::ALL.map(FlashOrder::name))
}
