use super::*;
use std::collections::BTreeMap;

/// A held frame.
#[derive(Clone, Copy)]
struct Held {
    frame: Frame,
    page: Page,
    admitted: u64,
    last: u64,
    before: u64,
    clean: bool,
    /// When it last came to the end of its extent's queue.
    queued: u64,
}

/// Held frames with their uses, searched one by one.
#[derive(Default)]
struct Naive {
    now: u64,
    held: Vec<Held>,
    /// Of extents: when it was first seen, and its temperature.
    extents: BTreeMap<u64, (usize, u32)>,
}

impl Naive {
    fn at(&mut self, frame: Frame) -> &mut Held {
        self.held.iter_mut().find(|h| h.frame == frame).expect("held")
    }
    fn extent(&mut self, page: Page) -> &mut (usize, u32) {
        let next = self.extents.len();
        self.extents.entry(page / 32).or_insert((next, 0))
    }
    fn heat(&self, h: &Held) -> (u32, usize) {
        let (seen, temperature) = self.extents[&(h.page / 32)];
        (temperature, seen)
    }
    fn victim(&self, order: FlashOrder) -> Option<Frame> {
        let clean = self.held.iter().filter(|h| h.clean);
        match order {
            FlashOrder::Lru2 | FlashOrder::Lru2History => clean.min_by_key(|h| (h.before, h.last, h.frame)),
            FlashOrder::Fifo => clean.min_by_key(|h| h.admitted),
            FlashOrder::Temperature => clean.min_by_key(|h| (self.heat(h), h.queued)),
            FlashOrder::Lrfu => unreachable!("it is tested beside its code"),
        }
        .map(|h| h.frame)
    }
    fn veto(&mut self, frame: Frame) {
        let now = self.now;
        let at = self.at(frame);
        (at.admitted, at.last, at.before, at.queued) = (now, now, now, now);
        let extent = at.page / 32;
        if self.held.iter().filter(|h| h.clean && h.page / 32 == extent).count() == 1 {
            self.extents.get_mut(&extent).expect("seen").1 += 1;
        }
    }
}

#[test]
fn orders_agree_with_their_definitions() {
    for order in [FlashOrder::Lru2, FlashOrder::Lru2History, FlashOrder::Fifo, FlashOrder::Temperature] {
        let (mut ours, mut naive) = (order.make(24), Naive::default());
        let mut random = 12345u64;
        for step in 0..20_000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (frame, what) = ((random >> 33) as u32 % 24, (random >> 50) % 7);
            let class = [Class::Random, Class::Sequential][(random >> 55) as usize % 2];
            let saved = if class == Class::Random { 903 } else { 0 };
            let page = (random >> 40) % 640;
            let held = naive.held.iter().find(|h| h.frame == frame).copied();
            naive.now += 1;
            let now = naive.now;
            match (held, what) {
                (_, 6) => {
                    ours.missed(page, class);
                    if saved > 0 {
                        naive.extent(page).1 += saved;
                    }
                }
                (None, _) => {
                    let clean = what > 1;
                    ours.admit(frame, page, clean);
                    naive.extent(page);
                    let (admitted, last, queued) = (now, now, now);
                    naive.held.push(Held { frame, page, admitted, last, before: 0, clean, queued });
                }
                (Some(h), 0) if !h.clean => {
                    ours.cleaned(frame);
                    let at = naive.at(frame);
                    (at.clean, at.queued) = (true, now);
                }
                (Some(h), 1) => {
                    ours.remove(frame, h.page);
                    naive.held.retain(|h| h.frame != frame);
                }
                (Some(h), 2) if h.clean => {
                    ours.veto(frame);
                    naive.veto(frame);
                }
                (Some(h), _) => {
                    ours.hit(frame, class);
                    naive.extent(h.page).1 += saved;
                    let at = naive.at(frame);
                    (at.before, at.last) = (at.last, now);
                }
            }
            assert_eq!(ours.victim(), naive.victim(order), "{order:?}, step {step}");
            assert_eq!(ours.clean(), naive.held.iter().filter(|h| h.clean).count());
            if order == FlashOrder::Temperature {
                let heat = |page: Page| naive.extents.get(&(page / 32)).map_or(0, |e| e.1);
                let coldest = naive.held.iter().filter(|h| h.clean).map(|h| heat(h.page)).min();
                assert_eq!(
                    ours.admits(page, step % 2 == 0),
                    coldest.is_none_or(|coldest| heat(page) > coldest),
                    "step {step}"
                );
            } else {
                assert!(ours.admits(page, step % 2 == 0));
            }
        }
    }
}

/// `arrange` gives the order in which victims would be proposed, were all of them clean.
#[test]
fn an_order_can_be_handed_on() {
    for order in FlashOrder::ALL {
        let mut ours = order.make(40);
        for frame in 0..40 {
            ours.admit(frame, u64::from(frame) * 7, true);
        }
        for frame in (0..40).step_by(3) {
            ours.hit(frame, Class::Random);
        }
        ours.remove(5, 35);
        let mut held: Vec<Frame> = (0..40).filter(|&f| f != 5).collect();
        ours.arrange(&mut held);
        let first = held.clone();
        // Growing and shrinking where nothing is held changes nothing.
        ours.resize(100);
        ours.resize(40);
        let mut victims = Vec::new();
        while let Some(frame) = ours.victim() {
            victims.push(frame);
            ours.remove(frame, u64::from(frame) * 7);
        }
        if order == FlashOrder::Temperature {
            let heat = |f: &Frame| (u64::from(*f) * 7) / 32;
            assert_eq!(
                first.iter().map(heat).collect::<Vec<_>>(),
                victims.iter().map(heat).collect::<Vec<_>>(),
                "extent by extent"
            );
        } else {
            assert_eq!(first, victims, "{order:?}");
        }
    }
}

#[test]
fn temperatures_do_not_grow_without_bound() {
    let mut order = FlashTemperature::new(8);
    order.admit(0, 0, true);
    for page in 0..100_000u64 {
        order.missed(page * 32, Class::Random);
        if page % 16 == 0 {
            order.hit(0, Class::Random);
        }
    }
    assert!(order.temperature(0) > 0, "held extents are not forgotten");
    let known = (0..100_000u64).filter(|&p| order.temperature(p * 32) > 0).count();
    assert!(known <= 8 + 1024 + 1, "{known} extents are known");
    for _ in 0..5_000_000 {
        order.hit(0, Class::Random);
    }
    assert!(order.temperature(0) > u32::MAX / 4, "halved at its limit, not wrapped");
    assert_eq!(order.victim(), Some(0));
}

/// What a read saves is what the devices' reads take, where they have been measured.
#[test]
fn temperatures_are_in_the_time_saved() {
    let mut order = FlashTemperature::new(8);
    order.missed(0, Class::Random);
    assert_eq!(order.temperature(0), 903, "table 3.1, until something is measured");
    order.priced([5000, 20]);
    order.missed(32, Class::Random);
    order.missed(64, Class::Sequential);
    assert_eq!([0, 32, 64].map(|page| order.temperature(page)), [903, 5000, 20]);
}

#[test]
fn a_frame_takes_what_is_stated() {
    let bytes = FlashOrder::ALL.map(|order| (order.frame_bytes(), order.extent_bytes()));
    assert_eq!(bytes, [(16, (0, 0)), (26, (0, 0)), (8, (0, 0)), (12, (70, 1)), (16, (0, 0))]);
}

fn gate(write: WritePolicy) -> Gate {
    Gate { write, frames: 1000, fill_threshold: 0.95, throttle: 100, dirty_fraction: 0.5, redo_bound: 1 << 20 }
}

const OFFER: Offer = Offer { class: Class::Random, used: 1000, dirty: 0, pending: 0, age: 0, kept: false };

#[test]
fn scans_pass_by_once_the_tier_is_full() {
    let gate = gate(WritePolicy::CleanWrite);
    let scan = Offer { class: Class::Sequential, ..OFFER };
    assert_eq!(gate.clean(&OFFER, Moment::Evicted), Ok(()));
    assert_eq!(gate.clean(&scan, Moment::Evicted), Err(Refusal::Sequential));
    assert_eq!(gate.clean(&Offer { used: 949, ..scan }, Moment::Evicted), Ok(()), "aggressive filling");
    assert_eq!(gate.clean(&Offer { pending: 100, ..OFFER }, Moment::Evicted), Err(Refusal::Throttled));
}

/// Section 3.3.3.1: all pages that leave memory, dirty ones too.
#[test]
fn filling_lets_dirty_pages_of_scans_in() {
    let scan = Offer { class: Class::Sequential, used: 949, ..OFFER };
    assert_eq!(gate(WritePolicy::DualWrite).dirty(&scan, Cause::Evicted), Route::Both);
    assert_eq!(gate(WritePolicy::LazyCleaning).dirty(&scan, Cause::Evicted), Route::Flash);
    // Section 3.3.2: checkpoints warm the tier with random pages only.
    assert_eq!(gate(WritePolicy::DualWrite).dirty(&scan, Cause::Checkpoint), Route::Disk(Refusal::Policy));
    let full = Offer { used: 950, ..scan };
    assert_eq!(gate(WritePolicy::DualWrite).dirty(&full, Cause::Evicted), Route::Disk(Refusal::Sequential));
    assert_eq!(gate(WritePolicy::LazyCleaning).dirty(&full, Cause::Evicted), Route::Disk(Refusal::Sequential));
}

/// Write policies that write back without λ.
const UNLIMITED: [WritePolicy; 5] = [
    WritePolicy::Inclusive,
    WritePolicy::Exclusive,
    WritePolicy::Lazy,
    WritePolicy::Rotating,
    WritePolicy::HeteroDrive,
];

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
    assert_eq!(lazy.dirty(&OFFER, Early), Route::Flash);
    assert_eq!(dual.dirty(&OFFER, Early), Route::Disk(Refusal::Policy));
    assert_eq!(lazy.dirty(&OFFER, Checkpoint), Route::Disk(Refusal::Policy));
    assert_eq!(lazy.dirty(&Offer { age: 780 << 10, ..OFFER }, Evicted), Route::Disk(Refusal::Old));
    assert_eq!(lazy.dirty(&Offer { age: 760 << 10, ..OFFER }, Evicted), Route::Flash, "not due yet");
    assert_eq!(lazy.dirty(&Offer { dirty: 563, ..OFFER }, Evicted), Route::Disk(Refusal::Dirty));
    assert_eq!(lazy.dirty(&Offer { dirty: 562, ..OFFER }, Evicted), Route::Flash);
    // λ is about what it says where it is small, too: an eighth of itself more.
    let tenth = Gate { dirty_fraction: 0.1, ..lazy };
    assert_eq!(tenth.dirty(&Offer { dirty: 113, ..OFFER }, Evicted), Route::Disk(Refusal::Dirty));
    assert_eq!(tenth.dirty(&Offer { dirty: 112, ..OFFER }, Evicted), Route::Flash);
    let eager = Gate { dirty_fraction: 0.0, ..lazy };
    assert_eq!(eager.dirty(&Offer { dirty: 4, ..OFFER }, Evicted), Route::Disk(Refusal::Dirty));
    assert_eq!(eager.dirty(&Offer { dirty: 3, ..OFFER }, Evicted), Route::Flash, "to be cleaned at once");
    let tac = gate(WritePolicy::Tac);
    let kept = Offer { kept: true, ..OFFER };
    assert_eq!(tac.dirty(&kept, Evicted), Route::Both);
    assert_eq!(
        tac.dirty(&OFFER, Evicted),
        Route::Disk(Refusal::Policy),
        "only where an invalid version lies in the tier"
    );
    assert_eq!(tac.dirty(&kept, Checkpoint), Route::Disk(Refusal::Policy), "it is still in memory");
    for policy in UNLIMITED {
        let gate = gate(policy);
        assert_eq!(
            gate.dirty(&Offer { dirty: 999, ..OFFER }, Evicted),
            Route::Flash,
            "{policy:?}: no limit but the tier's"
        );
        assert_eq!(gate.dirty(&OFFER, Aged), Route::Disk(Refusal::Policy));
    }
}

#[test]
fn clean_pages_enter_when_the_write_policy_says() {
    for policy in WritePolicy::ALL {
        let at_read = matches!(policy, WritePolicy::Tac | WritePolicy::Inclusive);
        let gate = gate(policy);
        assert_eq!(gate.clean(&OFFER, Moment::Read).is_ok(), at_read, "{policy:?}");
        let as_it_leaves = !at_read && policy != WritePolicy::HeteroDrive;
        assert_eq!(gate.clean(&OFFER, Moment::Evicted).is_ok(), as_it_leaves, "{policy:?}");
        assert_eq!(gate.clean(&Offer { kept: true, ..OFFER }, Moment::Evicted), Ok(()), "it takes its frame up again");
    }
}

#[test]
fn cleaning_follows_lambda_and_age() {
    let lazy = gate(WritePolicy::LazyCleaning);
    assert_eq!(lazy.to_clean(500, 0), 0);
    assert_eq!(lazy.to_clean(510, 0), 11, "to slightly below the threshold");
    assert_eq!(lazy.to_clean(100, 1 << 18), 0, "a quarter of the bound");
    let half = lazy.to_clean(100, 1 << 19);
    assert!(half > 0 && half < 50, "{half} at half of the bound");
    assert_eq!(lazy.to_clean(100, 3 << 18), 100, "all at three quarters");
    for policy in UNLIMITED {
        assert_eq!(gate(policy).to_clean(937, 0), 0, "{policy:?}: only what is about to be wanted");
        assert_eq!(gate(policy).to_clean(940, 0), 3, "{policy:?}");
        assert_eq!(gate(policy).to_clean(100, 3 << 18), 100, "{policy:?}: the log's bounds hold for all");
    }
    for policy in [WritePolicy::CleanWrite, WritePolicy::DualWrite, WritePolicy::Tac] {
        assert_eq!(gate(policy).to_clean(7, 0), 7, "{policy:?}: dirty frames are another policy's, and go");
    }
}

/// Every combination, and why one is refused.
#[test]
fn the_compatibility_matrix() {
    for policy in WritePolicy::ALL {
        assert_eq!(WritePolicy::named(policy.name()), Some(policy));
        for order in FlashOrder::ALL {
            assert_eq!(FlashOrder::named(order.name()), Some(order));
            let in_turn = matches!(policy, WritePolicy::Rotating | WritePolicy::HeteroDrive);
            let refused = in_turn && order != FlashOrder::Fifo;
            let answer = policy.with(order);
            assert_eq!(answer.is_err(), refused, "{policy:?} with {order:?}: {answer:?}");
            if let Err(why) = answer {
                assert!(why.contains("needs replacement = \"fifo\""), "{why}");
            }
        }
    }
}

/// Hits and admissions of 100 frames that are asked for 1,000 pages, the nth of them n^-1.1 times as often as the
/// first.
fn served(order: FlashOrder) -> (u32, u32) {
    let weights = (1..=1000).scan(0.0, |sum, n| {
        *sum += f64::from(n).powf(-1.1);
        Some(*sum)
    });
    let weights = weights.collect::<Vec<f64>>();
    let mut order = order.make(100);
    let mut held: BTreeMap<Page, Frame> = BTreeMap::new();
    let (mut random, mut hits, mut admissions) = (12345u64, 0, 0);
    for _ in 0..60_000 {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let at = (random >> 11) as f64 / (1u64 << 53) as f64 * weights[999];
        let page = weights.partition_point(|&weight| weight < at) as Page * 37 % 1000;
        if let Some(&frame) = held.get(&page) {
            order.hit(frame, Class::Random);
            hits += 1;
            continue;
        }
        order.missed(page, Class::Random);
        let frame = match held.len() {
            100 if !order.admits(page, false) => continue,
            100 => {
                let frame = order.victim().expect("all are clean");
                let gone = *held.iter().find(|(_, f)| **f == frame).expect("it is held").0;
                held.remove(&gone);
                order.remove(frame, gone);
                frame
            }
            free => free as Frame,
        };
        order.admit(frame, page, true);
        held.insert(page, frame);
        admissions += 1;
    }
    (hits, admissions)
}

#[test]
fn lrfu_serves_more_and_writes_less_where_few_pages_are_popular() {
    let ((hits, admissions), (more, fewer)) = (served(FlashOrder::Lru2), served(FlashOrder::Lrfu));
    assert!(more > hits && fewer * 2 < admissions, "{more} hits and {fewer} writes, LRU-2 {hits} and {admissions}");
}
