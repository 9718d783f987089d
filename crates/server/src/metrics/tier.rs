//! The flash tier's numbers, where there is one.
use super::Page;
use terrace_storage::{FlashState, FlashStats};

pub(super) fn flash(page: &mut Page, tier: &FlashStats) {
    let name = "terrace_flash_state";
    page.family(name, "gauge", "1 for the state that the flash tier is in.");
    for state in [FlashState::Off, FlashState::On, FlashState::Failed, FlashState::Draining] {
        page.sample(name, &[("state", state.name())], u8::from(tier.state == state));
    }
    let name = "terrace_flash_frames";
    page.family(name, "gauge", "Frames of the flash tier: that there are, in use, newer than on the disk.");
    page.sample(name, &[("state", "capacity")], tier.frames);
    page.sample(name, &[("state", "used")], tier.used);
    page.sample(name, &[("state", "dirty")], tier.dirty);
    let name = "terrace_flash_reads_total";
    page.family(name, "counter", "Pages that memory missed, by the tier that they were read from.");
    page.sample(name, &[("tier", "flash")], tier.hits);
    page.sample(name, &[("tier", "disk")], tier.misses);
    let help = "Of the pages read from flash, those that were newer there than on the disk.";
    page.one("terrace_flash_dirty_hits_total", "counter", help, tier.dirty_hits);
    let name = "terrace_flash_miss_seconds";
    page.family(name, "histogram", "How long misses of memory took, by the tier that served them.");
    page.histogram(name, &[("tier", "flash")], &tier.hit_time);
    page.histogram(name, &[("tier", "disk")], &tier.miss_time);
    let help = "Pages read from the disk because the flash device was too busy.";
    page.one("terrace_flash_throttled_reads_total", "counter", help, tier.throttled_reads);
    decisions(page, tier);
    trouble(page, tier);
    writing(page, tier);
}

fn decisions(page: &mut Page, tier: &FlashStats) {
    let mut by = |name: &str, help: &str, label: &str, counts: &[(&str, u64)]| {
        page.family(name, "counter", help);
        counts.iter().for_each(|(value, count)| page.sample(name, &[(label, value)], count));
    };
    let admitted = [("clean", tier.admitted_clean), ("dirty", tier.admitted_dirty)];
    by("terrace_flash_admitted_total", "Pages let into the flash tier.", "page", &admitted);
    let rejected = [
        ("sequential", tier.rejected_sequential),
        ("throttled", tier.rejected_throttled),
        ("policy", tier.rejected_policy),
        ("old", tier.rejected_old),
        ("dirty", tier.rejected_dirty),
        ("cold", tier.rejected_cold),
        ("no frame", tier.rejected_no_frame),
        ("budget", tier.rejected_budget),
    ];
    by("terrace_flash_rejected_total", "Pages not let in, by reason.", "reason", &rejected);
    let left = [
        ("evicted", tier.evicted),
        ("invalidated", tier.invalidated),
        ("forgotten", tier.forgotten),
        ("taken over", tier.taken_over),
    ];
    by("terrace_flash_left_total", "Pages that left the flash tier, by reason.", "reason", &left);
    page.one("terrace_flash_cleaned_total", "counter", "Dirty pages brought home.", tier.cleaned);
    let help = "Dirty pages brought home in a second, lately.";
    page.one("terrace_flash_cleaning_rate", "gauge", help, tier.cleaning_rate);
    let time = tier.time_to_clean().map_or("NaN".to_owned(), |time| time.as_secs_f64().to_string());
    let help = "How long bringing home what is dirty takes at that rate.";
    page.one("terrace_flash_time_to_clean_seconds", "gauge", help, time);
}

fn trouble(page: &mut Page, tier: &FlashStats) {
    let name = "terrace_flash_trouble_total";
    page.family(
        name,
        "counter",
        "Transfers that failed, frames that failed their checks, dirty pages made again from the log.",
    );
    page.sample(name, &[("kind", "device error")], tier.device_errors);
    page.sample(name, &[("kind", "bad frame")], tier.bad_frames);
    page.sample(name, &[("kind", "made again")], tier.replayed);
}

fn writing(page: &mut Page, tier: &FlashStats) {
    let help = "Bytes written to the flash device.";
    page.one("terrace_flash_written_bytes_total", "counter", help, tier.written_bytes);
    if let (Some(budget), Some(left)) = (tier.write_budget, tier.budget_left) {
        page.one("terrace_flash_write_budget_bytes", "gauge", "Bytes that may be written in a day.", budget);
        let help = "Bytes of these that may be written now.";
        page.one("terrace_flash_write_budget_left_bytes", "gauge", help, left.max(0.0));
    }
    if let Some(days) = tier.life_days() {
        page.one("terrace_flash_life_days", "gauge", "How long a new device lasts at the present rate.", days);
    }
}
