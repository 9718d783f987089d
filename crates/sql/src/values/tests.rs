use super::*;
use datafusion::arrow::array::timezone::Tz;
use std::collections::BTreeSet;

/// Invariant 5.
#[test]
fn each_number_of_an_enum_has_a_zone_of_its_own_that_arrow_reads() {
    let zones: BTreeSet<String> = (0..EnumType::MOST).map(zone_of).collect();
    assert_eq!(zones.len(), EnumType::MOST as usize);
    for number in 0..EnumType::MOST {
        let zone = zone_of(number);
        assert!(zone.parse::<Tz>().is_ok(), "{zone}");
        assert_eq!(enum_number(&zone), Some(number), "{zone}");
    }
    for other in ["", "UTC", "+24:00", "+1:00", "+00:0", "Europe/Vienna"] {
        assert_eq!(enum_number(other), None, "{other}");
    }
    assert_eq!(EnumType::MOST, 4 * ZONES);
}
