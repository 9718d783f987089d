use super::*;

fn frame(kind: u8, body: &[u8]) -> BytesMut {
    let mut b = BytesMut::from(&[kind][..]);
    b.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    b.extend_from_slice(body);
    b
}

fn decode(kind: u8, body: &[u8]) -> Result<Message> {
    let mut input = frame(kind, body);
    let frame = next_frame(&mut input, 1 << 20).unwrap().expect("it is whole");
    assert!(input.is_empty());
    frame.decode()
}

#[test]
fn messages_are_read_back() {
    assert_eq!(decode(b'Q', b"select 1\0").unwrap(), Message::Query("select 1".into()));
    let parse = decode(b'P', b"s\0select $1\0\0\x01\0\0\0\x17").unwrap();
    assert_eq!(parse, Message::Parse { name: "s".into(), sql: "select $1".into(), types: vec![23] });
    let bind = decode(b'B', b"\0s\0\0\x01\0\x01\0\x02\0\0\0\x01A\xff\xff\xff\xff\0\0").unwrap();
    let values = vec![Some(Bytes::from_static(b"A")), None];
    let wanted =
        Message::Bind { portal: "".into(), statement: "s".into(), formats: vec![1], values, result_formats: vec![] };
    assert_eq!(bind, wanted);
}

/// Every way of cutting a message short, and of lengthening it, is an error and never a panic.
#[test]
fn truncated_and_overlong_bodies_are_refused() {
    let bodies: [(u8, &[u8]); 5] = [
        (b'Q', b"select 1\0"),
        (b'P', b"s\0select $1\0\0\x01\0\0\0\x17"),
        (b'B', b"\0s\0\0\x01\0\x01\0\x01\0\0\0\x01A\0\x01\0\x01"),
        (b'E', b"p\0\0\0\0\0"),
        (b'D', b"Sname\0"),
    ];
    for (kind, body) in bodies {
        decode(kind, body).unwrap();
        for n in 0..body.len() {
            assert_eq!(decode(kind, &body[..n]).unwrap_err().state.0, "08P01", "{} cut at {n}", kind as char);
        }
        assert_eq!(decode(kind, &[body, b"x"].concat()).unwrap_err().state.0, "08P01");
    }
}

#[test]
fn lengths_out_of_bounds_and_unknown_kinds_are_refused() {
    let announced = |length: u32| {
        let mut input = BytesMut::from(&b"Q"[..]);
        input.extend_from_slice(&length.to_be_bytes());
        next_frame(&mut input, 1024).map(|frame| frame.is_some())
    };
    for length in [0u32, 3, 1 << 30, u32::MAX] {
        assert!(matches!(announced(length), Err(Refused::Stream(e)) if e.state.0 == "08P01"), "{length}");
    }
    for length in [1025u32, (1 << 30) - 1] {
        let Err(Refused::TooLong(long)) = announced(length) else { panic!("{length}") };
        assert_eq!((long.bytes, long.error(1024).state.0), (length as usize + 1, "54000"));
    }
    assert!(!announced(1024).unwrap());
    assert!(next_frame(&mut BytesMut::from(&b"z\0\0\0\x04"[..]), 1024).is_err());
    assert!(next_frame(&mut BytesMut::from(&b"Q\0\0"[..]), 1024).unwrap().is_none());
}

#[test]
fn invalid_utf8_is_refused() {
    assert_eq!(decode(b'Q', b"select '\xff'\0").unwrap_err().state.0, "22021");
}

#[test]
fn openings() {
    let packet = |body: &[u8]| {
        let mut b = BytesMut::from(&(body.len() as u32 + 4).to_be_bytes()[..]);
        b.extend_from_slice(body);
        next_opening(&mut b)
    };
    assert_eq!(packet(&80877103u32.to_be_bytes()).unwrap(), Some(Opening::Encrypt { tls: true }));
    let startup = packet(b"\0\x03\0\0user\0terrace\0\0").unwrap();
    assert_eq!(startup, Some(Opening::Startup { minor: 0, parameters: vec![("user".into(), "terrace".into())] }));
    assert_eq!(packet(b"\0\x03\0\0user\0terrace\0").unwrap_err().state.0, "08P01");
    assert_eq!(packet(b"\0\x02\0\0").unwrap_err().state.0, "0A000");
    assert_eq!(packet(b"").unwrap_err().state.0, "08P01");
}
