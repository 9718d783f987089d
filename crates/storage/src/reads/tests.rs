use super::*;
use crate::types::DATA;
use futures::executor::block_on;
use futures::future::join;
use std::pin::pin;
use terrace_env::yield_now;

async fn work(hits: u64, pages: u64) {
    for _ in 0..hits {
        count_hit();
        yield_now().await;
    }
    count_read(PageId::new(DATA, 1), Tier::Disk, pages, 10 * pages, false);
    yield_now().await;
    count_read(PageId::new(UNDO, 1), Tier::Disk, 1, 7, false);
}

#[test]
fn work_that_takes_turns_is_counted_apart() {
    let (mut a, mut b) = (Reads::default(), Reads::default());
    block_on(join(counting(&mut a, pin!(work(5, 2))), counting(&mut b, pin!(work(1, 3)))));
    assert_eq!(a, Reads { resident: 5, ahead: 0, pages: [2, 1, 0], nanos: [20, 7, 0] });
    assert_eq!(b, Reads { resident: 1, ahead: 0, pages: [3, 1, 0], nanos: [30, 7, 0] });
    assert_eq!((a.total_pages(), a.total_nanos()), (3, 27));
}

#[test]
fn the_whole_contains_its_parts() {
    let (mut outer, mut inner) = (Reads::default(), Reads::default());
    block_on(counting(
        &mut outer,
        pin!(async {
            count_hit();
            counting(&mut inner, pin!(work(2, 1))).await;
            count_read(PageId::new(DATA, 9), Tier::Flash, 4, 1, true);
        }),
    ));
    assert_eq!(inner, Reads { resident: 2, ahead: 0, pages: [1, 1, 0], nanos: [10, 7, 0] });
    assert_eq!(outer.hits(), 0, "pages read ahead and not asked for yet");
    assert_eq!(outer, Reads { resident: 3, ahead: 4, pages: [1, 1, 4], nanos: [10, 7, 1] });
}
