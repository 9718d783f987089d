use super::*;
use crate::config::ScanDetection;

#[test]
fn lines_are_changed_where_they_are() {
    let text = "# A\n[flash_tier]\n# how large\nsize = \"1GB\" # not much\ndevice = \"main\"\n\n[memory]\nsize = 3\n";
    let changed = edit(text, "size", Some("2GB")).unwrap();
    assert_eq!(changed, text.replace("1GB", "2GB"));
    assert_eq!(edit(text, "size", Some("4096")).unwrap(), text.replace("\"1GB\"", "4096"));
    assert_eq!(edit(&changed, "device", None).unwrap(), changed.replace("device = \"main\"\n", ""));
    assert_eq!(edit("a = 1\n", "size", Some("1GB")).unwrap(), "a = 1\n\n[flash_tier]\nsize = \"1GB\"\n");
    let odd = edit(text, "device", Some("a\"b\n")).unwrap().parse::<toml::Table>().unwrap();
    assert_eq!(odd["flash_tier"]["device"].as_str(), Some("a\"b\n"));
    assert_eq!(edit("flash_tier = { size = 1 }\n", "size", Some("2")).unwrap(), "flash_tier = { size = 2 }\n");
    assert_eq!(edit("flash_tier.size = 1\n", "size", Some("2")).unwrap(), "flash_tier.size = 2\n");
    assert!(edit("flash_tier = 3\n", "size", Some("2")).unwrap_err().contains("write [flash_tier]"));
    let whole = edit(config::DEFAULT, "size", Some("2GB")).unwrap();
    assert_eq!(whole.lines().count(), config::DEFAULT.lines().count());
}

#[test]
fn what_waits_for_a_start_is_not_taken_over() {
    let mut now = Config::default();
    let mut wanted = now.clone();
    wanted.flash_tier.scan_detection = ScanDetection::Distance;
    wanted.flash_tier.dirty_fraction = 0.25;
    now.flash_tier = in_effect(&now, &wanted);
    assert_eq!(now.flash_tier.dirty_fraction, 0.25);
    assert_ne!(now, wanted, "its reader is told that something waits");
}
