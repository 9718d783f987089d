//! What clients send, cut into messages and decoded.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| terrace_server::decode_all(bytes));
