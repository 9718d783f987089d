//! Connections that are not sessions yet: they have not started up, are logging in, or only cancel.
//!
//! 1. They have places of their own, apart from those of sessions. So nobody can keep others from logging in or
//!    cancelling by holding such connections open.
//! 2. A new one is always let in. Where all places are taken, the oldest goes.
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Notify;

/// How many there may be.
pub(crate) const PLACES: usize = 128;

#[derive(Default)]
pub(crate) struct Lobby {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    next: u64,
    /// By number: the oldest first.
    seats: BTreeMap<u64, Arc<Notify>>,
}

/// A place in the lobby; dropping it frees the place.
pub(crate) struct Seat {
    number: u64,
    turned_out: Arc<Notify>,
    lobby: Arc<Lobby>,
}

impl Lobby {
    pub(crate) fn enter(self: &Arc<Self>) -> Seat {
        let turned_out = Arc::new(Notify::new());
        let mut inner = self.inner.lock();
        if inner.seats.len() >= PLACES
            && let Some((_, oldest)) = inner.seats.pop_first()
        {
            oldest.notify_one();
        }
        let number = inner.next;
        inner.next += 1;
        inner.seats.insert(number, turned_out.clone());
        Seat { number, turned_out, lobby: self.clone() }
    }
}

impl Seat {
    /// Done once the place is somebody else's.
    pub(crate) async fn lost(&self) {
        self.turned_out.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.lobby.inner.lock().seats.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn f4_the_oldest_goes() {
        let lobby = Arc::new(Lobby::default());
        let mut seats: Vec<Seat> = (0..PLACES).map(|_| lobby.enter()).collect();
        let has_place = |seat: &Seat| seat.lost().now_or_never().is_none();
        assert!(seats.iter().all(has_place));
        let (late, later) = (lobby.enter(), lobby.enter());
        assert!(!has_place(&seats[0]) && !has_place(&seats[1]) && has_place(&seats[2]));
        // A place that was given back turns nobody out.
        drop(seats.drain(..3));
        let _last = lobby.enter();
        assert!(has_place(&seats[0]) && has_place(&late) && has_place(&later));
    }
}
