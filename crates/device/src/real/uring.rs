//! io_uring: one ring for the process, submissions from any thread, completions reaped by one.
//!
//! Invariants: (1) whoever holds `submissions` is the only one with a view of the submission queue, and only the reaper
//! looks at the completion queue; (2) an operation is a box that the kernel's `user_data` owns from submission to its
//! last completion: its buffer and its file outlive any future; (3) no more operations are in the kernel than the
//! completion queue has entries, so it cannot overflow; (4) the kernel cancels what a thread submitted when that thread
//! ends: the reaper, which never ends, submits such operations again.
#![allow(clippy::disallowed_methods)] // Devices own their threads.

use crate::{IoBuf, SECTOR};
use io_uring::{IoUring, Probe, opcode, squeue, types};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Arc, OnceLock};
use tokio::sync::oneshot;

const SUBMISSIONS: u32 = 256;
const COMPLETIONS: u32 = 4096;
const IORING_ENTER_GETEVENTS: u32 = 1;

enum Work {
    Read(IoBuf, oneshot::Sender<io::Result<IoBuf>>),
    Write(IoBuf, oneshot::Sender<io::Result<IoBuf>>),
    Sync(oneshot::Sender<io::Result<()>>),
}

struct Operation {
    file: Arc<File>,
    offset: u64,
    /// Bytes already transferred, a multiple of `SECTOR`.
    done: usize,
    /// After a retry the kernel is told to use a thread of its own at once.
    retried: bool,
    work: Work,
}

impl Operation {
    /// The request for what remains to be done.
    fn entry(&mut self) -> squeue::Entry {
        let fd = types::Fd(self.file.as_raw_fd());
        let at = self.offset + self.done as u64;
        let entry = match &mut self.work {
            Work::Read(buf, _) => {
                let rest = &mut buf[self.done..];
                opcode::Read::new(fd, rest.as_mut_ptr(), rest.len() as u32).offset(at).build()
            }
            Work::Write(buf, _) => {
                let rest = &buf[self.done..];
                opcode::Write::new(fd, rest.as_ptr(), rest.len() as u32).offset(at).build()
            }
            Work::Sync(_) => opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build(),
        };
        if self.retried { entry.flags(squeue::Flags::ASYNC) } else { entry }
    }

    /// Takes the kernel's answer. `None`: not finished, submit again. `Some`: how it ended.
    fn progress(&mut self, result: i32) -> Option<io::Result<()>> {
        if result < 0 {
            if matches!(-result, libc::EINTR | libc::EAGAIN | libc::ECANCELED) {
                self.retried = true;
                return None;
            }
            return Some(Err(io::Error::from_raw_os_error(-result)));
        }
        let (length, stuck) = match &self.work {
            Work::Sync(_) => return Some(Ok(())),
            Work::Read(buf, _) => (buf.len(), io::ErrorKind::UnexpectedEof),
            Work::Write(buf, _) => (buf.len(), io::ErrorKind::WriteZero),
        };
        let moved = result as usize;
        assert!(self.done + moved <= length, "the kernel moved more bytes than it was asked to");
        if self.done + moved == length {
            return Some(Ok(()));
        }
        // A direct transfer goes on at a sector's edge.
        let whole = moved - moved % SECTOR;
        self.done += whole;
        (whole == 0).then(|| Err(stuck.into()))
    }

    /// Tells the future, if it still listens. The file is let go first: who hears of the last transfer and drops the
    /// device has closed it, and with it its lock.
    fn finish(self, result: io::Result<()>) {
        let Operation { file, work, .. } = self;
        drop(file);
        match work {
            Work::Read(buf, sender) | Work::Write(buf, sender) => drop(sender.send(result.map(|()| buf))),
            Work::Sync(sender) => drop(sender.send(result)),
        }
    }
}

#[derive(Default)]
struct Submissions {
    /// Operations that the kernel has or that lie in the submission queue.
    inside: u32,
    /// What has to wait for the kernel to finish something first.
    waiting: VecDeque<squeue::Entry>,
}

struct Ring {
    ring: IoUring,
    submissions: Mutex<Submissions>,
}

fn ring() -> Option<&'static Ring> {
    static RING: OnceLock<Option<&'static Ring>> = OnceLock::new();
    *RING.get_or_init(|| match Ring::start() {
        Ok(ring) => Some(ring),
        Err(error) => {
            tracing::info!(%error, "no io_uring here; files are read and written by threads");
            None
        }
    })
}

/// Whether the kernel offers what this back end needs.
pub(crate) fn available() -> bool {
    ring().is_some()
}

/// Without the reaper no transfer of the process ends any more, and everybody would wait for ever: a mistake there ends
/// the process.
struct LastWords;

impl Drop for LastWords {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!("the thread that ends all transfers of files failed; the process cannot go on");
            std::process::abort();
        }
    }
}

impl Ring {
    fn start() -> io::Result<&'static Ring> {
        let ring = IoUring::builder().dontfork().setup_cqsize(COMPLETIONS).build(SUBMISSIONS)?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        let needed = [opcode::Read::CODE, opcode::Write::CODE, opcode::Fsync::CODE];
        if !needed.iter().all(|code| probe.is_supported(*code)) {
            return Err(io::Error::from_raw_os_error(libc::ENOSYS));
        }
        // One ring for as long as the process lives: leaked on purpose.
        let ring: &'static Ring = Box::leak(Box::new(Ring { ring, submissions: Mutex::default() }));
        std::thread::Builder::new().name("terrace-uring".into()).spawn(|| {
            let _all = LastWords;
            ring.reap()
        })?;
        Ok(ring)
    }

    fn start_operation(&self, operation: Operation) {
        self.submit(Box::new(operation), true);
    }

    /// Hands an operation to the kernel at once. `new`: it is not yet counted in `inside`.
    fn submit(&self, mut operation: Box<Operation>, new: bool) {
        let entry = operation.entry();
        let entry = entry.user_data(Box::into_raw(operation) as u64);
        if new {
            let mut submissions = self.submissions.lock();
            if submissions.inside >= COMPLETIONS {
                submissions.waiting.push_back(entry);
                return;
            }
            submissions.inside += 1;
        }
        self.push(entry);
    }

    /// Queues an entry that is counted in `inside`, and enters the kernel until the queue is empty.
    fn push(&self, entry: squeue::Entry) {
        loop {
            let guard = self.submissions.lock();
            // SAFETY: invariant 1 (the lock is held). Invariant 2: buffer and file of the entry live until its
            // completion.
            let pushed = unsafe { self.ring.submission_shared().push(&entry) }.is_ok();
            drop(guard);
            self.enter();
            if pushed {
                return;
            }
        }
    }

    fn enter(&self) {
        loop {
            if let Err(error) = self.ring.submit()
                && error.raw_os_error() != Some(libc::EINTR)
            {
                // Out of some resource for the moment; the entries stay queued.
                tracing::warn!(%error, "io_uring submission is held up");
                std::thread::yield_now();
            }
            let _guard = self.submissions.lock();
            // SAFETY: invariant 1.
            if unsafe { self.ring.submission_shared() }.is_empty() {
                return;
            }
        }
    }

    /// The reaper: waits for completions, finishes or continues their operations. Never returns.
    fn reap(&self) {
        let mut batch: Vec<(u64, i32)> = Vec::new();
        loop {
            // SAFETY: waits for one completion; submits nothing and passes no pointers.
            let waited = unsafe { self.ring.submitter().enter::<()>(0, 1, IORING_ENTER_GETEVENTS, None) };
            if let Err(error) = waited
                && error.raw_os_error() != Some(libc::EINTR)
            {
                tracing::warn!(%error, "waiting for io_uring completions");
                std::thread::yield_now();
            }
            // SAFETY: invariant 1: only this thread looks at the completion queue.
            batch.extend(unsafe { self.ring.completion_shared() }.map(|c| (c.user_data(), c.result())));
            for (user_data, result) in batch.drain(..) {
                // SAFETY: invariant 2: this is the box leaked in `submit`, and its only completion.
                let mut operation = unsafe { Box::from_raw(user_data as *mut Operation) };
                match operation.progress(result) {
                    None => self.submit(operation, false),
                    Some(result) => {
                        operation.finish(result);
                        self.left();
                    }
                }
            }
        }
    }

    /// An operation left the kernel: the next one may enter.
    fn left(&self) {
        let mut submissions = self.submissions.lock();
        let next = submissions.waiting.pop_front();
        if next.is_none() {
            assert!(submissions.inside > 0, "more completions than submissions");
            submissions.inside -= 1;
        }
        drop(submissions);
        if let Some(entry) = next {
            self.push(entry);
        }
    }
}

fn start<T>(
    file: Arc<File>,
    offset: u64,
    work: impl FnOnce(oneshot::Sender<io::Result<T>>) -> Work,
) -> oneshot::Receiver<io::Result<T>> {
    let (sender, receiver) = oneshot::channel();
    // Proof for the expect: `FileDevice` calls this back end only where `available` said yes.
    let ring = ring().expect("io_uring was found available when the device was opened");
    ring.start_operation(Operation { file, offset, done: 0, retried: false, work: work(sender) });
    receiver
}

pub(crate) fn read(file: Arc<File>, offset: u64, buf: IoBuf) -> oneshot::Receiver<io::Result<IoBuf>> {
    start(file, offset, |sender| Work::Read(buf, sender))
}

pub(crate) fn write(file: Arc<File>, offset: u64, buf: IoBuf) -> oneshot::Receiver<io::Result<IoBuf>> {
    start(file, offset, |sender| Work::Write(buf, sender))
}

pub(crate) fn sync(file: Arc<File>) -> oneshot::Receiver<io::Result<()>> {
    start(file, 0, Work::Sync)
}

#[cfg(test)]
mod tests;
