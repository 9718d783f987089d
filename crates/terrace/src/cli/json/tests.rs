use super::*;
use std::sync::{Arc, Mutex};
use tracing_subscriber::fmt::MakeWriter;

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Sink {
    type Writer = Sink;
    fn make_writer(&'a self) -> Sink {
        self.clone()
    }
}

#[test]
fn a_message_is_an_object_on_a_line() {
    let sink = Sink::default();
    let subscriber = tracing_subscriber::fmt().with_writer(sink.clone()).event_format(Json).finish();
    tracing::subscriber::with_default(subscriber, || {
        tracing::info!(target: "t", pid = 7, ms = 1.5, bad = f64::NAN, ok = true, statement = %"SELECT \"a\\\n\u{1}\"", "slow");
        tracing::warn!("again");
    });
    let text = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let [first, second] = lines.as_slice() else { panic!("two lines: {text}") };
    let rest = first.split_once(",\"level\"").unwrap().1;
    let expected = r#":"INFO","target":"t","message":"slow","pid":7,"ms":1.5,"bad":"NaN","ok":true,"statement":"SELECT \"a\\\n\u0001\""}"#;
    assert_eq!(rest, expected);
    assert!(first.starts_with("{\"time\":1"), "{first}");
    assert!(second.contains("\"level\":\"WARN\"") && second.ends_with("\"message\":\"again\"}"), "{second}");
}
