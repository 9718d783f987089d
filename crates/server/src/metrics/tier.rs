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
    counters(
        page,
        tier,
        "terrace_flash_reads_total",
        "tier",
        "Pages that memory missed, by the tier that they were read from.",
    );
    let help = "Of the pages read from flash, those that were newer there than on the disk.";
    counters(page, tier, "terrace_flash_dirty_hits_total", "", help);
    let name = "terrace_flash_miss_seconds";
    page.family(name, "histogram", "How long misses of memory took, by the tier that served them.");
    page.histogram(name, &[("tier", "flash")], &tier.hit_time);
    page.histogram(name, &[("tier", "disk")], &tier.miss_time);
    let help = "Pages read from the disk because the flash device was too busy.";
    counters(page, tier, "terrace_flash_throttled_reads_total", "", help);
    decisions(page, tier);
    trouble(page, tier);
    writing(page, tier);
}

/// A family of counters, as storage declares them. `label`: what its samples differ in, if there are several.
fn counters(page: &mut Page, tier: &FlashStats, family: &str, label: &str, help: &str) {
    page.family(family, "counter", help);
    for counter in tier.counters() {
        match counter.metric {
            Some((name, Some(value))) if name == family => page.sample(family, &[(label, value)], counter.value),
            Some((name, None)) if name == family => page.sample(family, &[], counter.value),
            _ => {}
        }
    }
}

fn decisions(page: &mut Page, tier: &FlashStats) {
    counters(page, tier, "terrace_flash_admitted_total", "page", "Pages let into the flash tier.");
    counters(page, tier, "terrace_flash_rejected_total", "reason", "Pages not let in, by reason.");
    counters(page, tier, "terrace_flash_left_total", "reason", "Pages that left the flash tier, by reason.");
    counters(page, tier, "terrace_flash_cleaned_total", "", "Dirty pages brought home.");
    let help = "Dirty pages brought home in a second, lately.";
    page.one("terrace_flash_cleaning_rate", "gauge", help, tier.cleaning_rate);
    let time = tier.time_to_clean().map_or("NaN".to_owned(), |time| time.as_secs_f64().to_string());
    let help = "How long bringing home what is dirty takes at that rate.";
    page.one("terrace_flash_time_to_clean_seconds", "gauge", help, time);
}

fn trouble(page: &mut Page, tier: &FlashStats) {
    let help = "Transfers that failed, frames that failed their checks, dirty pages made again from the log.";
    counters(page, tier, "terrace_flash_trouble_total", "kind", help);
}

fn writing(page: &mut Page, tier: &FlashStats) {
    counters(page, tier, "terrace_flash_written_bytes_total", "", "Bytes written to the flash device.");
    if let (Some(budget), Some(left)) = (tier.write_budget, tier.budget_left) {
        page.one("terrace_flash_write_budget_bytes", "gauge", "Bytes that may be written in a day.", budget);
        let help = "Bytes of these that may be written now.";
        page.one("terrace_flash_write_budget_left_bytes", "gauge", help, left.max(0.0));
    }
    if let Some(days) = tier.life_days() {
        page.one("terrace_flash_life_days", "gauge", "How long a new device lasts at the present rate.", days);
    }
}
