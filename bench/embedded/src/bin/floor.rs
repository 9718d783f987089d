//! The floor under pgbench on this machine: a server that reads nothing and knows nothing. It answers pgbench's
//! prepared statements (`-M prepared`, one column) with the bytes of a row that is always the same: what remains is the
//! kernel's work and pgbench's. A thread for each client, as cheap as it gets.
//!
//! With a file, each client's every seventh statement (TPC-B's END) waits for 4 KiB written and synced there, one write
//! for all who wait: what remains is that and the kernel's group commit.
//!
//! ```sh
//! cargo run --release --bin floor -- 127.0.0.1:5599 [FILE] &
//! pgbench -n -h 127.0.0.1 -p 5599 -U any -f SCRIPT -M prepared -c 8 -j 2 -T 10 any
//! ```

use std::fs::{File, OpenOptions};
use std::io::{Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::{Arc, Condvar, Mutex};

const O_DIRECT: i32 = 0x4000;
const STATEMENTS_A_COMMIT: u32 = 7;
const LOG: u64 = 64 << 20;

#[repr(align(4096))]
struct Sector([u8; 4096]);

/// Who commits while a write is under way waits for the next.
struct Log {
    file: File,
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Default)]
struct State {
    busy: bool,
    begun: u64,
    done: u64,
}

impl Log {
    fn create(path: &str) -> Result<Log> {
        std::fs::write(path, vec![0; LOG as usize])?;
        let file = OpenOptions::new().write(true).custom_flags(O_DIRECT).open(path)?;
        file.sync_all()?;
        Ok(Log { file, state: Mutex::default(), done: Condvar::new() })
    }

    fn commit(&self) -> Result<()> {
        let mut state = self.state.lock().expect("nobody panics");
        let mine = state.begun + 1;
        while state.done < mine {
            if state.busy {
                state = self.done.wait(state).expect("nobody panics");
                continue;
            }
            state.busy = true;
            state.begun += 1;
            let now = state.begun;
            drop(state);
            self.file.write_all_at(&Sector([7; 4096]).0, now * 4096 % LOG)?;
            self.file.sync_data()?;
            state = self.state.lock().expect("nobody panics");
            (state.busy, state.done) = (false, now);
            self.done.notify_all();
        }
        Ok(())
    }
}

/// AuthenticationOk, ReadyForQuery.
const WELCOME: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";
const PARSED: &[u8] = b"1\0\0\0\x04";
const BOUND: &[u8] = b"2\0\0\0\x04";
/// RowDescription of one integer column.
const DESCRIBED: &[u8] = b"T\0\0\0\x21\0\x01abalance\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
/// DataRow "0", CommandComplete.
const ROW: &[u8] = b"D\0\0\0\x0b\0\x01\0\0\0\x010C\0\0\0\x0dSELECT 1\0";
const READY: &[u8] = b"Z\0\0\0\x05I";

fn serve(mut socket: TcpStream, log: Option<Arc<Log>>) -> Result<()> {
    socket.set_nodelay(true)?;
    let (mut input, mut output) = ([0; 8192], Vec::new());
    let (mut started, mut filled, mut statements) = (false, 0, 0);
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
            if started && input[at] == b'E' {
                statements += 1;
                if let Some(log) = log.as_ref().filter(|_| statements % STATEMENTS_A_COMMIT == 0) {
                    log.commit()?;
                }
            }
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
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:5599".into());
    let log = arguments.next().map(|path| Log::create(&path)).transpose()?.map(Arc::new);
    let listener = TcpListener::bind(address)?;
    loop {
        let (socket, _) = listener.accept()?;
        let log = log.clone();
        std::thread::spawn(move || serve(socket, log));
    }
}
