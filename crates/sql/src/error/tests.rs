use super::*;
use std::io;

/// The error of a temporary file's writer, as DataFusion and Arrow hand it on.
fn handed_on(of_the_system: io::Error) -> DataFusionError {
    let wrapped = io::Error::from(DataFusionError::IoError(of_the_system));
    DataFusionError::ArrowError(Box::new(ArrowError::from(wrapped)), None).context("spilling")
}

#[test]
fn f6_a_full_temp_device_is_told_as_such() {
    let full = || io::Error::from_raw_os_error(28);
    assert_eq!(full().kind(), io::ErrorKind::StorageFull, "ENOSPC");
    for error in [
        handed_on(full()),
        DataFusionError::IoError(full()),
        DataFusionError::External(Box::new(ArrowError::IoError("writing".into(), full()))),
        DataFusionError::Shared(std::sync::Arc::new(handed_on(full()))),
        // A quota, and a file that may not grow.
        handed_on(io::Error::from_raw_os_error(122)),
        handed_on(io::Error::from_raw_os_error(27)),
    ] {
        let shown = error.to_string();
        let error = from_datafusion(error);
        assert_eq!(error.state.0, "53100", "{shown}");
        assert!(error.hint.is_some_and(|hint| hint.contains("tablespaces.temp")), "{shown}");
    }
    assert_eq!(from_arrow(ArrowError::from(full())).state.0, "53100");
    assert_eq!(from_datafusion(handed_on(io::Error::from_raw_os_error(5))).state.0, "58030", "EIO is none");
    // The engine says itself what is full.
    let own = EngineError::new("53100", "the data device is full");
    assert_eq!(from_datafusion(tunnel(own)).message, "the data device is full");
}

#[test]
fn what_datafusion_has_not_is_told_in_words_of_sql() {
    for (message, said) in [
        (
            "Physical plan does not support logical expression OuterReferenceColumn(Field { .. }, Column { .. })",
            "a subquery that refers to the outer query in this place is not supported yet",
        ),
        (
            "Physical plan does not support logical expression InSubquery(InSubquery { expr: .. })",
            "a query in this place is not supported yet",
        ),
        ("something else", "something else"),
    ] {
        let error = from_datafusion(DataFusionError::NotImplemented(message.into()));
        assert_eq!((error.state.0, error.message.as_str()), ("0A000", said));
    }
}

#[test]
fn windows_whose_order_datafusion_loses_are_not_supported() {
    let inner = DataFusionError::Execution("Expects PARTITION BY expression to be ordered".into());
    let shared = DataFusionError::Shared(std::sync::Arc::new(inner));
    assert_eq!(from_datafusion(shared).state.0, "0A000");
}

/// No message shows how columns are told apart within a plan.
#[test]
fn n113_messages_show_no_inner_names() {
    let of = |message: &str| from_datafusion(DataFusionError::Execution(message.into())).message;
    assert_eq!(of("no field a\u{0}12 among b\u{0}7, \u{0}target"), "no field a among b, target");
    assert_eq!(of("no field a12"), "no field a12");
}
