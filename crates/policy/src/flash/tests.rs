use super::*;

/// Held frames with their uses, searched one by one.
#[derive(Default)]
struct Naive {
    now: u64,
    /// Frame, admitted, last use, use before, clean.
    held: Vec<(Frame, u64, u64, u64, bool)>,
}

impl Naive {
    fn at(&mut self, frame: Frame) -> &mut (Frame, u64, u64, u64, bool) {
        self.held.iter_mut().find(|h| h.0 == frame).expect("held")
    }
    fn victim(&self, order: FlashOrder) -> Option<Frame> {
        let clean = self.held.iter().filter(|h| h.4);
        match order {
            FlashOrder::Lru2 => clean.min_by_key(|h| (h.3, h.2, h.0)),
            FlashOrder::Fifo => clean.min_by_key(|h| h.1),
        }
        .map(|h| h.0)
    }
}

#[test]
fn orders_agree_with_their_definitions() {
    for order in [FlashOrder::Lru2, FlashOrder::Fifo] {
        let (mut ours, mut naive) = (order.make(24), Naive::default());
        let mut random = 12345u64;
        for _ in 0..20_000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (frame, what) = ((random >> 33) as u32 % 24, (random >> 50) % 6);
            let held = naive.held.iter().find(|h| h.0 == frame).copied();
            naive.now += 1;
            let now = naive.now;
            match (held, what) {
                (None, _) => {
                    let clean = what > 1;
                    ours.admit(frame, now, clean);
                    naive.held.push((frame, now, now, 0, clean));
                }
                (Some(h), 0) if !h.4 => {
                    ours.cleaned(frame);
                    naive.at(frame).4 = true;
                }
                (Some(_), 1) => {
                    ours.remove(frame);
                    naive.held.retain(|h| h.0 != frame);
                }
                (Some(h), 2) if h.4 => {
                    ours.veto(frame);
                    let at = naive.at(frame);
                    (at.1, at.2, at.3) = (now, now, now);
                }
                _ => {
                    ours.hit(frame);
                    let at = naive.at(frame);
                    (at.3, at.2) = (at.2, now);
                }
            }
            assert_eq!(ours.victim(), naive.victim(order), "{order:?}");
            assert_eq!(ours.clean(), naive.held.iter().filter(|h| h.4).count());
        }
    }
}

fn gate(write: WritePolicy) -> Gate {
    Gate { write, frames: 1000, fill_threshold: 0.95, throttle: 100, dirty_fraction: 0.5, redo_bound: 1 << 20 }
}

const OFFER: Offer = Offer { class: Class::Random, used: 1000, dirty: 0, pending: 0, age: 0 };

#[test]
fn scans_pass_by_once_the_tier_is_full() {
    let gate = gate(WritePolicy::CleanWrite);
    let scan = Offer { class: Class::Sequential, ..OFFER };
    assert_eq!(gate.clean(&OFFER), Ok(()));
    assert_eq!(gate.clean(&scan), Err(Refusal::Sequential));
    assert_eq!(gate.clean(&Offer { used: 949, ..scan }), Ok(()), "aggressive filling");
    assert_eq!(gate.clean(&Offer { pending: 100, ..OFFER }), Err(Refusal::Throttled));
}

#[test]
fn dirty_pages_go_where_the_write_policy_says() {
    use Cause::*;
    let clean = gate(WritePolicy::CleanWrite);
    assert_eq!(clean.dirty(&OFFER, Evicted), Route::Disk(Refusal::Policy));
    let dual = gate(WritePolicy::DualWrite);
    assert_eq!(dual.dirty(&OFFER, Evicted), Route::Both);
    assert_eq!(dual.dirty(&OFFER, Checkpoint), Route::Both);
    assert_eq!(dual.dirty(&OFFER, Aged), Route::Disk(Refusal::Policy));
    let lazy = gate(WritePolicy::LazyCleaning);
    assert_eq!(lazy.dirty(&OFFER, Evicted), Route::Flash);
    assert_eq!(lazy.dirty(&OFFER, Checkpoint), Route::Disk(Refusal::Policy));
    assert_eq!(lazy.dirty(&Offer { age: 600 << 10, ..OFFER }, Evicted), Route::Disk(Refusal::Old));
    assert_eq!(lazy.dirty(&Offer { dirty: 625, ..OFFER }, Evicted), Route::Disk(Refusal::Dirty));
    assert_eq!(lazy.dirty(&Offer { dirty: 624, ..OFFER }, Evicted), Route::Flash);
}

#[test]
fn cleaning_follows_lambda_and_age() {
    let gate = gate(WritePolicy::LazyCleaning);
    assert_eq!(gate.to_clean(500, 0), 0);
    assert_eq!(gate.to_clean(510, 0), 11, "to slightly below the threshold");
    assert_eq!(gate.to_clean(100, 1 << 18), 0, "a quarter of the bound");
    let half = gate.to_clean(100, 1 << 19);
    assert!(half > 0 && half < 50, "{half} at half of the bound");
    assert_eq!(gate.to_clean(100, 3 << 18), 100, "all at three quarters");
}
