use super::*;

#[test]
fn labels_are_escaped_and_histograms_cumulate() {
    let mut page = Page::default();
    page.family("x_seconds", "histogram", "Help.");
    let mut distribution = Distribution { nanos: 5_500_000_000, ..Distribution::default() };
    distribution.buckets[0] = 2;
    distribution.buckets[1] = 1;
    page.histogram("x_seconds", &[("device", "a\"b\\c\nd")], &distribution);
    let lines: Vec<&str> = page.0.lines().collect();
    assert_eq!(lines[0], "# HELP x_seconds Help.");
    assert_eq!(lines[1], "# TYPE x_seconds histogram");
    assert_eq!(lines[2], r#"x_seconds_bucket{device="a\"b\\c\nd",le="0.000001"} 2"#);
    assert_eq!(lines[3], r#"x_seconds_bucket{device="a\"b\\c\nd",le="0.000002"} 3"#);
    let tail = &lines[lines.len() - 3..];
    assert_eq!(tail[0], r#"x_seconds_bucket{device="a\"b\\c\nd",le="+Inf"} 3"#);
    assert_eq!(tail[1], r#"x_seconds_sum{device="a\"b\\c\nd"} 5.5"#);
    assert_eq!(tail[2], r#"x_seconds_count{device="a\"b\\c\nd"} 3"#);
}

#[test]
fn other_requests_are_told_what_there_is() {
    let body = || "terrace_up 1\n".to_owned();
    let ok = respond("GET /metrics HTTP/1.1", body);
    assert!(ok.starts_with("HTTP/1.1 200 OK\r\n") && ok.ends_with("\r\n\r\nterrace_up 1\n"), "{ok}");
    assert!(ok.contains("Content-Length: 13\r\n"), "{ok}");
    assert!(respond("GET /metrics?x=1 HTTP/1.0", body).contains("200 OK"));
    assert!(respond("HEAD /metrics HTTP/1.1", body).ends_with("Content-Length: 13\r\nConnection: close\r\n\r\n"));
    assert!(respond("GET / HTTP/1.1", body).starts_with("HTTP/1.1 404"));
    assert!(respond("POST /metrics HTTP/1.1", body).starts_with("HTTP/1.1 405"));
    assert!(respond("", body).starts_with("HTTP/1.1 405"));
}
