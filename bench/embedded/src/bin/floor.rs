//! The floor under select-only on this machine: a server that reads nothing and knows nothing. It answers pgbench's prepared statement
//! (`-M prepared`, one column) with the bytes of a row that is always the same: what remains is the kernel's work and pgbench's. A thread for
//! each client, as cheap as it gets.
//!
//! ```sh
//! cargo run --release --bin floor -- 127.0.0.1:5599 &
//! pgbench -n -h 127.0.0.1 -p 5599 -U any -f SCRIPT -M prepared -c 8 -j 2 -T 10 any
//! ```

use std::io::{Read, Result, Write};
use std::net::{TcpListener, TcpStream};

/// AuthenticationOk, ReadyForQuery.
const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
const PARSED: &[u8] = b"1\0\0\0\x04";
const BOUND: &[u8] = b"2\0\0\0\x04";
/// RowDescription of one integer column.
const DESCRIBED: &[u8] = b"T\0\0\0\x21\0\x01abalance\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
/// DataRow "0", CommandComplete.
const ROW: &[u8] = b"D\0\0\0\x0b\0\x01\0\0\0\x010C\0\0\0\x0dSELECT 1\0";
const READY: &[u8] = b"Z\0\0\0\x05I";

fn serve(mut socket: TcpStream) -> Result<()> {
    socket.set_nodelay(true)?;
    let (mut input, mut output) = ([0; 8192], Vec::new());
    let (mut started, mut filled) = (false, 0);
    loop {
        match socket.read(&mut input[filled..])? {
            0 => return Ok(()),
            bytes => filled += bytes,
        }
        let mut at = 0;
        loop {
            // The opening packet has no kind before its length.
            let head = usize::from(started);
            let Some(length) = input[..filled].get(at + head..at + head + 4) else { break };
            let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
            if filled < at + head + length {
                break;
            }
            // A request to encrypt: no.
            let asks = !started && input[at + 4..at + 7] == [4, 0xd2, 0x16];
            output.extend_from_slice(match input[at] {
                _ if asks => b"N",
                _ if !started => WELCOME,
                b'P' => PARSED,
                b'B' => BOUND,
                b'D' => DESCRIBED,
                b'E' => ROW,
                b'S' => READY,
                _ => return Ok(()),
            });
            started |= !asks;
            at += head + length;
        }
        input.copy_within(at..filled, 0);
        filled -= at;
        socket.write_all(&output)?;
        output.clear();
    }
}

fn main() -> Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:5599".into());
    let listener = TcpListener::bind(address)?;
    loop {
        let (socket, _) = listener.accept()?;
        std::thread::spawn(move || serve(socket));
    }
}
