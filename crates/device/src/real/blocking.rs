//! Positioned reads and writes on a small pool of threads: the back end that works everywhere.
//!
//! A job owns its file and its buffer, so a future that is dropped leaves nothing dangling.
#![allow(clippy::disallowed_methods)] // Devices own their threads and clocks nothing: this is the room for it.

use crate::IoBuf;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use tokio::sync::oneshot;

/// Transfers that may be under way at once in the process.
const THREADS: usize = 8;

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    idle: usize,
    threads: usize,
}

#[derive(Default)]
struct Workers {
    queue: Mutex<Queue>,
    work: Condvar,
}

fn workers() -> &'static Workers {
    static WORKERS: OnceLock<Workers> = OnceLock::new();
    WORKERS.get_or_init(Workers::default)
}

impl Workers {
    /// Queues a job, with a new thread where nobody is idle and the limit allows one. An error means that not even one
    /// thread can be started.
    fn submit(&'static self, job: Job) -> io::Result<()> {
        let mut queue = self.queue.lock();
        if queue.idle <= queue.jobs.len() && queue.threads < THREADS {
            let started = std::thread::Builder::new().name("terrace-io".into()).spawn(|| self.serve());
            match started {
                Ok(_) => queue.threads += 1,
                Err(error) if queue.threads == 0 => return Err(error),
                Err(_) => {}
            }
        }
        queue.jobs.push_back(job);
        drop(queue);
        self.work.notify_one();
        Ok(())
    }

    fn serve(&self) {
        let mut queue = self.queue.lock();
        loop {
            match queue.jobs.pop_front() {
                // A panic is the job's. The task that waits for it finds that its channel has closed.
                Some(job) => {
                    parking_lot::MutexGuard::unlocked(&mut queue, || drop(catch_unwind(AssertUnwindSafe(job))))
                }
                None => {
                    queue.idle += 1;
                    self.work.wait(&mut queue);
                    queue.idle -= 1;
                }
            }
        }
    }
}

/// Runs `call` on a thread of the pool, beginning now.
pub(crate) fn run<T: Send + 'static>(
    call: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> oneshot::Receiver<io::Result<T>> {
    let (sender, receiver) = oneshot::channel();
    // Where the future was dropped nobody listens any more, and the result is of no interest.
    let job = Box::new(move || drop(sender.send(call())));
    if let Err(error) = workers().submit(job) {
        // The job went with its sender: say why through another channel.
        let (sender, receiver) = oneshot::channel();
        drop(sender.send(Err(error)));
        return receiver;
    }
    receiver
}

pub(crate) fn read(file: Arc<File>, offset: u64, mut buf: IoBuf) -> oneshot::Receiver<io::Result<IoBuf>> {
    run(move || file.read_exact_at(&mut buf, offset).map(|()| buf))
}

pub(crate) fn write(file: Arc<File>, offset: u64, buf: IoBuf) -> oneshot::Receiver<io::Result<IoBuf>> {
    run(move || file.write_all_at(&buf, offset).map(|()| buf))
}

pub(crate) fn sync(file: Arc<File>) -> oneshot::Receiver<io::Result<()>> {
    run(move || file.sync_data())
}
