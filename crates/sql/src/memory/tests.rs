use super::*;
use crate::cancel::Reason;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use futures::executor::block_on;
use std::pin::pin;

fn work(bytes: usize) -> (Arc<Work>, Arc<CancelToken>) {
    let token = Arc::<CancelToken>::default();
    (Work::new(token.clone(), Arc::new(GreedyMemoryPool::new(bytes))), token)
}

#[test]
fn what_is_asked_for_comes_from_the_budget() {
    let (work, _) = work(10 << 20);
    block_on(work.clone().over(pin!(async {
        let first = ask("one", 8 << 20).expect("there is room");
        assert_eq!(ask("two", 8 << 20).err().expect("there is none").state.0, "53200");
        drop(first);
        let _again = ask("two", 8 << 20).expect("there is room again");
        let _small = ask("small", 1000).expect("nobody asks for so little");
    })));
    assert_eq!(work.pool.reserved(), 0, "all of it was given back");
    assert!(ask("outside", 1 << 40).is_ok(), "without a statement there is no budget");
}

#[test]
fn functions_learn_of_a_cancel() {
    let (work, token) = work(1 << 20);
    let outcome = block_on(work.over(pin!(async {
        check().expect("nothing is cancelled");
        token.cancel(Reason::Timeout);
        check()
    })));
    assert_eq!(outcome.expect_err("it timed out").state.0, "57014");
    check().expect("what comes after it is somebody else's");
}

#[test]
fn no_value_is_longer_than_a_gigabyte() {
    check_length(LARGEST).expect("as long as can be");
    assert_eq!(check_length(LARGEST + 1).expect_err("one more").state.0, "54000");
}
