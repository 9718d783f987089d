//! Abbreviations of time zones: those that PostgreSQL knows from its start on (its set `Default`).
//!
//! 1. An abbreviation is a fixed offset, also where a zone has the same name (`CET` is one hour in summer too).
//! 2. One that a zone has used for several offsets is what it meant there at the time in question, or last before it.
use super::Zone;
use chrono::{DateTime, TimeZone};
use chrono_tz::{OffsetName, Tz};

/// In seconds east of UTC.
#[rustfmt::skip]
const FIXED: [(&str, i32); 145] = [
    ("ACDT", 37_800), ("ACSST", 37_800), ("ACST", 34_200), ("ACT", -18_000), ("ACWST", 31_500), ("ADT", -10_800),
    ("AEDT", 39_600), ("AESST", 39_600), ("AEST", 36_000), ("AFT", 16_200), ("AKDT", -28_800), ("AKST", -32_400),
    ("ALMST", 25_200), ("ALMT", 21_600), ("AMT", -14_400), ("AST", -14_400), ("AWSST", 32_400), ("AWST", 28_800),
    ("AZOST", 0), ("AZOT", -3600), ("BDST", 7200), ("BDT", 21_600), ("BNT", 28_800), ("BORT", 28_800),
    ("BOT", -14_400), ("BRA", -10_800), ("BRST", -7200), ("BRT", -10_800), ("BST", 3600), ("BTT", 21_600),
    ("CADT", 37_800), ("CAST", 34_200), ("CCT", 28_800), ("CDT", -18_000), ("CEST", 7200), ("CET", 3600),
    ("CETDST", 7200), ("CHADT", 49_500), ("CHAST", 45_900), ("CHUT", 36_000), ("CLST", -10_800), ("COT", -18_000),
    ("CST", -21_600), ("CXT", 25_200), ("DDUT", 36_000), ("EAT", 10_800), ("EDT", -14_400), ("EEST", 10_800),
    ("EET", 7200), ("EETDST", 10_800), ("EGST", 0), ("EGT", -3600), ("EST", -18_000), ("FET", 10_800),
    ("FJST", 46_800), ("FJT", 43_200), ("FNST", -3600), ("FNT", -7200), ("GALT", -21_600), ("GAMT", -32_400),
    ("GFT", -10_800), ("GILT", 43_200), ("GMT", 0), ("HKT", 28_800), ("HST", -36_000), ("ICT", 25_200),
    ("IDT", 10_800), ("IRT", 12_600), ("IST", 7200), ("JAYT", 32_400), ("JST", 32_400), ("KDT", 36_000),
    ("KGST", 21_600), ("KST", 32_400), ("LHST", 37_800), ("LIGT", 36_000), ("MART", -34_200), ("MDT", -21_600),
    ("MEST", 7200), ("MESZ", 7200), ("MET", 3600), ("METDST", 7200), ("MEZ", 3600), ("MHT", 43_200),
    ("MMT", 23_400), ("MPT", 36_000), ("MSD", 14_400), ("MST", -25_200), ("MUST", 18_000), ("MUT", 14_400),
    ("MVT", 18_000), ("MYT", 28_800), ("NDT", -9000), ("NFT", -12_600), ("NPT", 20_700), ("NST", -12_600),
    ("NZDT", 46_800), ("NZST", 43_200), ("NZT", 43_200), ("PDT", -25_200), ("PET", -18_000), ("PGT", 36_000),
    ("PHT", 28_800), ("PKST", 21_600), ("PKT", 18_000), ("PMDT", -7200), ("PMST", -10_800), ("PONT", 39_600),
    ("PST", -28_800), ("PWT", 32_400), ("PYST", -10_800), ("RET", 14_400), ("SADT", 37_800), ("SAST", 7200),
    ("SCT", 14_400), ("TAHT", -36_000), ("TFT", 18_000), ("TJT", 18_000), ("TOT", 46_800), ("TRUT", 36_000),
    ("TVT", 43_200), ("UCT", 0), ("ULAST", 32_400), ("UT", 0), ("UTC", 0), ("UYST", -7200), ("UYT", -10_800),
    ("UZST", 21_600), ("UZT", 18_000), ("VUT", 39_600), ("WADT", 28_800), ("WAKT", 43_200), ("WAST", 25_200),
    ("WAT", 3600), ("WDT", 32_400), ("WET", 0), ("WETDST", 3600), ("WFT", 43_200), ("WGST", -7200),
    ("WGT", -10_800), ("XJT", 21_600), ("YAPT", 36_000), ("YEKST", 21_600), ("Z", 0), ("ZULU", 0),
];

/// With the zone that says what they mean.
#[rustfmt::skip]
const CHANGING: [(&str, &str); 50] = [
    ("AMST", "Asia/Yerevan"), ("ANAST", "Asia/Anadyr"), ("ANAT", "Asia/Anadyr"),
    ("ARST", "America/Argentina/Buenos_Aires"), ("ART", "America/Argentina/Buenos_Aires"), ("AZST", "Asia/Baku"),
    ("AZT", "Asia/Baku"), ("CKT", "Pacific/Rarotonga"), ("CLT", "America/Santiago"), ("DAVT", "Antarctica/Davis"),
    ("EASST", "Pacific/Easter"), ("EAST", "Pacific/Easter"), ("FKST", "Atlantic/Stanley"),
    ("FKT", "Atlantic/Stanley"), ("GEST", "Asia/Tbilisi"), ("GET", "Asia/Tbilisi"), ("GYT", "America/Guyana"),
    ("IOT", "Indian/Chagos"), ("IRKST", "Asia/Irkutsk"), ("IRKT", "Asia/Irkutsk"), ("KGT", "Asia/Bishkek"),
    ("KOST", "Pacific/Kosrae"), ("KRAST", "Asia/Krasnoyarsk"), ("KRAT", "Asia/Krasnoyarsk"),
    ("LHDT", "Australia/Lord_Howe"), ("LINT", "Pacific/Kiritimati"), ("LKT", "Asia/Colombo"),
    ("MAGST", "Asia/Magadan"), ("MAGT", "Asia/Magadan"), ("MAWT", "Antarctica/Mawson"), ("MSK", "Europe/Moscow"),
    ("NOVST", "Asia/Novosibirsk"), ("NOVT", "Asia/Novosibirsk"), ("NUT", "Pacific/Niue"), ("OMSST", "Asia/Omsk"),
    ("OMST", "Asia/Omsk"), ("PETST", "Asia/Kamchatka"), ("PETT", "Asia/Kamchatka"), ("PYT", "America/Asuncion"),
    ("SGT", "Asia/Singapore"), ("TKT", "Pacific/Fakaofo"), ("TMT", "Asia/Ashgabat"), ("ULAT", "Asia/Ulaanbaatar"),
    ("VET", "America/Caracas"), ("VLAST", "Asia/Vladivostok"), ("VLAT", "Asia/Vladivostok"),
    ("VOLT", "Europe/Volgograd"), ("YAKST", "Asia/Yakutsk"), ("YAKT", "Asia/Yakutsk"),
    ("YEKT", "Asia/Yekaterinburg"),
];

/// What an abbreviation stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Abbreviation {
    name: &'static str,
    zone: Tz,
}

/// The zone of an abbreviation (in any case).
pub(super) fn named(name: &str) -> Option<Zone> {
    if let Some((_, east)) = FIXED.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
        return Some(if *east == 0 { Zone::Utc } else { Zone::Fixed(*east) });
    }
    let (name, zone) = CHANGING.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    Some(Zone::Abbreviated(Abbreviation { name, zone: zone.parse().ok()? }))
}

/// Days between two looks back for an abbreviation's last use.
const STEP: i64 = 20;

impl Abbreviation {
    pub(super) fn name(self) -> &'static str {
        self.name
    }

    pub(super) fn zone(self) -> Zone {
        Zone::Named(self.zone)
    }

    /// Invariant 2, at a moment in microseconds since 1970: seconds east of UTC.
    pub(super) fn offset_at(self, utc: i64) -> i32 {
        let used = |seconds: i64| {
            let moment = DateTime::from_timestamp(seconds, 0)?;
            let offset = self.zone.offset_from_utc_datetime(&moment.naive_utc());
            let own = offset.abbreviation().is_some_and(|own| own.eq_ignore_ascii_case(self.name));
            own.then(|| chrono::Offset::fix(&offset).local_minus_utc())
        };
        // From 1850 to 2100, beyond which no zone has changes.
        let (first, last) = (-3_786_912_000, 4_102_444_800);
        let now = utc.div_euclid(1_000_000).clamp(first, last);
        let step = STEP * 86_400;
        let before = (0..=(now - first) / step).find_map(|back| used(now - back * step));
        let after = || (1..=(last - now) / step).find_map(|on| used(now + on * step));
        before.or_else(after).unwrap_or_else(|| self.zone().offset_at(utc))
    }
}
