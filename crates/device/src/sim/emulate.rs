//! Emulated devices: how long each transfer takes on a disk, an SSD seen as a black box, or a network volume, from a
//! profile that says what it was calibrated to. Bytes are kept by another device; this room adds the time, in whatever
//! time the timer keeps.
//!
//! ```text
//! request --parts--> queue (one per spindle; one for an SSD) --choose--> server --serve--> end
//! ```
//!
//! 1. A mechanism is a deterministic state machine: the same arrivals give the same ends, in virtual and in real time.
//! 2. A server that ends a transfer takes the next that waits in its queue, whichever the mechanism chooses (a disk:
//!    the elevator). It begins at the end of the one before: no time is lost to a waiter that wakes up late.
//! 3. A transfer whose future is dropped leaves the queue, or is served to its end where it has begun.
//!
//! What is not modelled: volatile write caches, garbage collection, wear (the flash translation layer is a model of its
//! own).

mod disk;
pub mod measure;
pub mod profile;
mod ssd;
mod volume;

pub use profile::{Profile, ProfileError};

use crate::latency::{Delay, Operation, Timer};
use disk::DiskArray;
use parking_lot::Mutex;
use ssd::Ssd;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::oneshot;
use volume::Volume;

/// A piece of a transfer that one queue serves; `offset` is on that queue's medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    pub(crate) queue: usize,
    pub(crate) write: bool,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// What differs between kinds of device. Times are nanoseconds.
#[derive(Debug)]
pub(crate) enum Mechanism {
    Disk(DiskArray),
    Ssd(Ssd),
    Volume(Volume),
}

impl Mechanism {
    /// Queues, and how many transfers each serves at once.
    fn queues(&self) -> (usize, usize) {
        match self {
            Mechanism::Disk(disks) => (disks.spindles(), 1),
            Mechanism::Ssd(ssd) => (1, ssd.channels()),
            Mechanism::Volume(_) => (1, usize::MAX),
        }
    }

    fn parts(&self, write: bool, offset: u64, bytes: u64) -> Vec<Part> {
        match self {
            Mechanism::Disk(disks) => disks.parts(write, offset, bytes),
            _ => vec![Part { queue: 0, write, offset, bytes }],
        }
    }

    /// The index of the next to serve of those that wait, oldest first.
    fn choose(&mut self, queue: usize, waiting: &[Waiting]) -> usize {
        match self {
            Mechanism::Disk(disks) => disks.choose(queue, waiting.iter().map(|w| w.part.offset)),
            _ => 0,
        }
    }

    /// The end of a transfer that begins at `start`.
    fn serve(&mut self, part: Part, start: u64) -> u64 {
        match self {
            Mechanism::Disk(disks) => disks.serve(part, start),
            Mechanism::Ssd(ssd) => ssd.serve(part, start),
            Mechanism::Volume(volume) => volume.serve(part, start),
        }
    }

    fn sync_nanos(&self) -> u64 {
        match self {
            Mechanism::Disk(disks) => disks.sync_nanos(),
            Mechanism::Ssd(ssd) => ssd.sync_nanos(),
            Mechanism::Volume(volume) => volume.sync_nanos(),
        }
    }
}

#[derive(Debug)]
struct Waiting {
    ticket: u64,
    arrived: u64,
    part: Part,
}

#[derive(Debug, Default)]
struct Queue {
    busy: usize,
    waiting: Vec<Waiting>,
    /// Time that its servers have served or are about to, nanoseconds.
    served: u64,
}

/// The queues of one device: a pure state machine (invariant 1).
#[derive(Debug)]
pub(crate) struct Emulation {
    mechanism: Mechanism,
    servers: usize,
    queues: Vec<Queue>,
}

impl Emulation {
    pub(crate) fn new(mechanism: Mechanism) -> Emulation {
        let (queues, servers) = mechanism.queues();
        assert!(queues > 0 && servers > 0, "a device serves at least one transfer at a time");
        Emulation { mechanism, servers, queues: (0..queues).map(|_| Queue::default()).collect() }
    }

    pub(crate) fn parts(&self, write: bool, offset: u64, bytes: u64) -> Vec<Part> {
        self.mechanism.parts(write, offset, bytes)
    }

    /// The end of the part where a server is free; else it waits until [`Emulation::leave`] names its ticket.
    pub(crate) fn arrive(&mut self, now: u64, ticket: u64, part: Part) -> Option<u64> {
        let queue = &mut self.queues[part.queue];
        if queue.busy < self.servers {
            queue.busy += 1;
            return Some(self.serve(part, now));
        }
        queue.waiting.push(Waiting { ticket, arrived: now, part });
        None
    }

    /// A server of the queue is free from `at` on: who is served next, and until when (invariant 2).
    pub(crate) fn leave(&mut self, at: u64, queue: usize) -> Option<(u64, u64)> {
        let state = &mut self.queues[queue];
        assert!(state.busy > 0, "nobody was served in queue {queue}");
        if state.waiting.is_empty() {
            state.busy -= 1;
            return None;
        }
        let next = self.mechanism.choose(queue, &state.waiting);
        let next = state.waiting.remove(next);
        Some((next.ticket, self.serve(next.part, at.max(next.arrived))))
    }

    fn serve(&mut self, part: Part, start: u64) -> u64 {
        let end = self.mechanism.serve(part, start);
        self.queues[part.queue].served += end - start;
        end
    }

    /// Whether the ticket was still waiting; it does no longer (invariant 3).
    fn give_up(&mut self, queue: usize, ticket: u64) -> bool {
        let waiting = &mut self.queues[queue].waiting;
        let found = waiting.iter().position(|w| w.ticket == ticket);
        found.map(|at| waiting.remove(at)).is_some()
    }
}

/// A profile's device, as a [`Delay`] for [`crate::latency::LatencyDevice`] or [`crate::fault::FaultDevice`]. One for
/// each device; shared where two files lie on one device.
pub struct Emulator(Arc<EmulatorShared>);

struct EmulatorShared {
    timer: Arc<dyn Timer>,
    state: Mutex<EmulatorState>,
}

struct EmulatorState {
    emulation: Emulation,
    tickets: u64,
    /// By ticket: where those that wait get the end of their service.
    waiters: BTreeMap<u64, oneshot::Sender<u64>>,
}

impl Emulator {
    pub fn new(profile: &Profile, timer: Arc<dyn Timer>) -> Emulator {
        let state = EmulatorState { emulation: profile.emulation(), tickets: 0, waiters: BTreeMap::new() };
        Emulator(Arc::new(EmulatorShared { timer, state: Mutex::new(state) }))
    }

    /// Nanoseconds that each queue's servers have been at work, up to the ends of what they serve now: of an array of
    /// disks, each spindle's.
    pub fn served(&self) -> Vec<u64> {
        self.0.state.lock().emulation.queues.iter().map(|queue| queue.served).collect()
    }
}

/// A place in a queue, and then at a server.
struct Turn {
    shared: Arc<EmulatorShared>,
    queue: usize,
    ticket: u64,
    end: Option<u64>,
    end_sent: Option<oneshot::Receiver<u64>>,
}

impl EmulatorShared {
    fn arrive(self: &Arc<EmulatorShared>, part: Part) -> Turn {
        let mut state = self.state.lock();
        state.tickets += 1;
        let ticket = state.tickets;
        let end = state.emulation.arrive(self.timer.now(), ticket, part);
        let end_sent = end.is_none().then(|| {
            let (tell, end_sent) = oneshot::channel();
            state.waiters.insert(ticket, tell);
            end_sent
        });
        Turn { shared: self.clone(), queue: part.queue, ticket, end, end_sent }
    }
}

impl Turn {
    async fn served(mut self) {
        if let Some(end_sent) = self.end_sent.take() {
            // The sender goes only by sending: `Turn`s are forgotten by their own drop alone.
            self.end = Some(end_sent.await.expect("a place in the queue is kept"));
        }
        let end = self.end.expect("an end is known where nobody waits");
        self.shared.timer.sleep_until(end).await;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.waiters.remove(&self.ticket);
        if state.emulation.give_up(self.queue, self.ticket) {
            return;
        }
        // If the end was sent and not received yet, it is not known here. The next in the queue is then served from now
        // on.
        let at = self.end.unwrap_or_else(|| self.shared.timer.now());
        if let Some((ticket, end)) = state.emulation.leave(at, self.queue) {
            let end_sent = state.waiters.remove(&ticket).map(|tell| tell.send(end));
            assert!(end_sent.is_some(), "everybody who waits in a queue has a sender");
        }
    }
}

impl Delay for Emulator {
    fn serve(&self, operation: Operation, offset: u64, bytes: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        if operation == Operation::Sync {
            let end = self.0.timer.now() + self.0.state.lock().emulation.mechanism.sync_nanos();
            return self.0.timer.sleep_until(end);
        }
        let parts = self.0.state.lock().emulation.parts(operation == Operation::Write, offset, bytes);
        let turns: Vec<Turn> = parts.into_iter().map(|part| self.0.arrive(part)).collect();
        Box::pin(async move {
            // All at once: each holds a server until it has been waited for.
            let all: Vec<_> = turns.into_iter().map(|turn| Box::pin(turn.served())).collect();
            join(all).await;
        })
    }
}

/// Waits for all, whichever ends first.
async fn join(mut all: Vec<Pin<Box<impl Future<Output = ()> + Send>>>) {
    std::future::poll_fn(|context| {
        all.retain_mut(|one| one.as_mut().poll(context).is_pending());
        if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

#[cfg(test)]
mod tests;
