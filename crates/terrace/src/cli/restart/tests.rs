use super::*;

#[test]
fn what_is_logged_stays_so() {
    let of = |line: &str| log_options(line.split(' ').map(str::to_owned)).join(" ");
    assert_eq!(of("serve db --log debug --listen 127.0.0.1:1"), "--log debug");
    assert_eq!(of("--log=warn serve db"), "--log=warn");
    assert_eq!(of("quickstart --listen 127.0.0.1:1"), "");
}
