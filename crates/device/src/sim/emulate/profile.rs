//! Profiles: named devices, as data files in `profiles/`. Each says where its numbers come from, which metrics it was
//! calibrated to (block size, queue depth, span of addresses), and which parameters were fitted to meet them rather
//! than published.
use super::disk::{DiskArray, DiskParameters};
use super::ssd::{Ssd, SsdParameters};
use super::volume::{Volume, VolumeParameters};
use super::{Emulation, Mechanism};
use serde::Deserialize;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub description: String,
    /// Document and table, or data sheet.
    pub source: String,
    /// Parameters chosen so that the calibration holds.
    #[serde(default)]
    pub fitted: Vec<String>,
    #[serde(rename = "device")]
    pub kind: DeviceKind,
    #[serde(default)]
    pub calibration: Vec<Calibration>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    Disk(DiskParameters),
    Ssd(SsdParameters),
    Volume(VolumeParameters),
}

/// One number of the source, and how to measure it again.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    pub write: bool,
    pub pattern: Pattern,
    /// Bytes of a transfer.
    pub block: u64,
    /// Transfers outstanding.
    pub depth: u64,
    /// Bytes of the addresses used.
    pub span: u64,
    /// Mean pause of a client between two transfers, microseconds.
    #[serde(default)]
    pub pause_us: u64,
    pub metric: Metric,
    pub value: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    Random,
    Sequential,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    Iops,
    /// Millions of bytes per second.
    MbPerS,
    /// Mean time of a transfer.
    Ms,
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProfileError {
    #[error("there is no device profile {0:?}; there are \
             {list}", list = Profile::names().collect::<Vec<_>>().join(", "))]
    Unknown(String),
    #[error("device profile: {0}")]
    Malformed(String),
    #[error("device profile: {0} must be above zero")]
    Zero(&'static str),
}

macro_rules! profiles {
    ($($name:literal),* $(,)?) => {
        const PROFILES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../../profiles/", $name, ".toml")))),*];
    };
}

profiles![
    "hdd-8x7200",
    "hdd-18x10k",
    "iodrive-160",
    "toshiba-5400",
    "ocz-core",
    "sas-10k",
    "sas-ssd",
    "smart-ssd",
    "liu-hdd",
    "x25e",
    "barracuda-7200.10",
    "samsung-slc-32",
    "graefe-disk",
    "graefe-flash",
    "nvme-datacentre",
    "sata-consumer",
    "hdd-7200",
    "volume-gp",
];

impl Profile {
    pub fn names() -> impl Iterator<Item = &'static str> {
        PROFILES.iter().map(|(name, _)| *name)
    }

    pub fn named(name: &str) -> Result<Profile, ProfileError> {
        let found = PROFILES.iter().find(|(known, _)| *known == name);
        Profile::parse(found.ok_or_else(|| ProfileError::Unknown(name.into()))?.1)
    }

    /// The device for a database that is `factor` times smaller than the one to be measured: a disk's seeks take as
    /// long as they would over all of it. What else a device does depends on no address.
    pub fn shrunk(mut self, factor: u64) -> Profile {
        if let DeviceKind::Disk(disk) = &mut self.kind {
            disk.stretch = factor.max(1);
        }
        self.calibration.iter_mut().for_each(|of| of.span = (of.span / factor.max(1)).max(of.block));
        self
    }

    /// An array of so many disks of the same kind: what it is calibrated to is of another number.
    pub fn with_spindles(mut self, spindles: u64) -> Profile {
        if let DeviceKind::Disk(disk) = &mut self.kind {
            disk.spindles = spindles.max(1);
        }
        self.calibration.clear();
        self
    }

    /// From the text of a profile file (TOML).
    pub fn parse(text: &str) -> Result<Profile, ProfileError> {
        let profile: Profile = toml::from_str(text).map_err(|e| ProfileError::Malformed(e.to_string()))?;
        match profile.zero() {
            Some(name) => Err(ProfileError::Zero(name)),
            None => Ok(profile),
        }
    }

    /// A parameter that is zero and must not be.
    fn zero(&self) -> Option<&'static str> {
        let above: Vec<(&'static str, u64)> = match &self.kind {
            DeviceKind::Disk(d) => vec![
                ("spindles", d.spindles),
                ("stripe", d.stripe),
                ("capacity", d.capacity),
                ("rpm", d.rpm),
                ("rate", d.rate),
                ("seek_max_us - seek_min_us + 1", (d.seek_max_us + 1).saturating_sub(d.seek_min_us)),
            ],
            DeviceKind::Ssd(s) => {
                vec![("channels", s.channels as u64), ("read.rate", s.read.rate), ("write.rate", s.write.rate)]
            }
            DeviceKind::Volume(v) => vec![("iops", v.iops), ("rate", v.rate), ("operation_bytes", v.operation_bytes)],
        };
        let calibrations = self.calibration.iter();
        let loops = calibrations
            .flat_map(|c| [("block", c.block), ("depth", c.depth), ("span / block", c.span / c.block.max(1))]);
        above.into_iter().chain(loops).find(|(_, value)| *value == 0).map(|(name, _)| name)
    }

    pub(crate) fn emulation(&self) -> Emulation {
        Emulation::new(match &self.kind {
            DeviceKind::Disk(p) => Mechanism::Disk(DiskArray::new(p.clone())),
            DeviceKind::Ssd(p) => Mechanism::Ssd(Ssd::new(p.clone())),
            DeviceKind::Volume(p) => Mechanism::Volume(Volume::new(p.clone())),
        })
    }
}
