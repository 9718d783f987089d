//! Rows of the binary format, cut anywhere; each error with PostgreSQL 15's words.
use super::{HEADER, TRAILER, Tuples};

type Rows = Vec<Vec<Option<Vec<u8>>>>;

/// Reads the data in parts of each size from one byte on: the answer does not depend on it.
fn read(data: &[u8]) -> Result<Rows, (String, u64, Option<usize>)> {
    let parts = |size: usize| {
        let (mut tuples, mut rows) = (Tuples::new(), vec![]);
        let mut chunks: Vec<(bool, &[u8])> = data.chunks(size).map(|chunk| (false, chunk)).collect();
        chunks.push((true, &[]));
        for (at_end, chunk) in chunks {
            tuples.push(chunk);
            while tuples.next(2, at_end).map_err(|(e, column)| (e.message, tuples.number(), column))? {
                rows.push(tuples.fields().map(|field| field.map(<[u8]>::to_vec)).collect());
            }
        }
        Ok(rows)
    };
    let whole = parts(data.len().max(1));
    (1..data.len().max(2)).for_each(|size| assert_eq!(parts(size), whole, "parts of {size}"));
    whole
}

fn behind_header(rest: &[u8]) -> Vec<u8> {
    [HEADER.as_slice(), rest].concat()
}

const ROW: &[u8] = b"\0\x02\0\0\0\x01a\xff\xff\xff\xff";

#[test]
fn rows() {
    let one = vec![Some(b"a".to_vec()), None];
    assert_eq!(read(&behind_header(b"")), Ok(vec![]));
    assert_eq!(read(&behind_header(TRAILER)), Ok(vec![]));
    assert_eq!(read(&behind_header(&[ROW, ROW, TRAILER].concat())), Ok(vec![one.clone(), one.clone()]));
    // Without the mark of the end, and with half of a count.
    assert_eq!(read(&behind_header(&[ROW, b"\0"].concat())), Ok(vec![one.clone()]));
    // An extension of the header is passed over.
    let extended = [&HEADER[..15], b"\0\0\0\x03xyz", ROW, TRAILER].concat();
    assert_eq!(read(&extended), Ok(vec![one]));
}

#[test]
fn headers() {
    let wrong = |data: &[u8], message: &str| assert_eq!(read(data), Err((message.to_owned(), 0, None)));
    wrong(b"", "COPY file signature not recognized");
    wrong(b"PGCOPX\n\xff\r\n\0\0\0\0\0\0\0\0\0", "COPY file signature not recognized");
    wrong(&HEADER[..11], "invalid COPY file header (missing flags)");
    wrong(&HEADER[..17], "invalid COPY file header (missing length)");
    wrong(&[&HEADER[..11], b"\0\x01\0\0\0\0\0\0"].concat(), "invalid COPY file header (WITH OIDS)");
    wrong(&[&HEADER[..11], b"\x01\0\0\0\0\0\0\0"].concat(), "unrecognized critical flags in COPY file header");
    wrong(&[&HEADER[..15], b"\xff\0\0\0"].concat(), "invalid COPY file header (missing length)");
    wrong(&[&HEADER[..15], b"\0\0\0\x09xyz"].concat(), "invalid COPY file header (wrong length)");
}

#[test]
fn broken_rows() {
    let wrong = |rest: &[u8], message: &str, row: u64, column: Option<usize>| {
        assert_eq!(read(&behind_header(rest)), Err((message.to_owned(), row, column)));
    };
    wrong(b"\0\x01", "row field count is 1, expected 2", 1, None);
    wrong(&[ROW, b"\xff\xfe"].concat(), "row field count is -2, expected 2", 2, None);
    wrong(b"\0\x02\0\0\0\x04ab", "unexpected EOF in COPY data", 1, Some(0));
    wrong(&[ROW, b"\0\x02\0\0\0\x01a\0\0"].concat(), "unexpected EOF in COPY data", 2, Some(1));
    wrong(b"\0\x02\xff\xff\xff\xfe", "invalid field size", 1, Some(0));
    wrong(&[TRAILER.as_slice(), b"zz"].concat(), "received copy data after EOF marker", 1, None);
}
