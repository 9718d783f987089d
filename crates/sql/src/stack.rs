//! Stack for what walks deep trees.
//!
//! 1. What walks a tree of depth n has [`stack_for`] n bytes left, or gets a stack of its own: on the spot
//!    ([`on_stack`]), for each poll of a future ([`on_stack_for`]), and for dropping what it holds ([`Deep`]).
use futures::future::BoxFuture;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Bytes of stack: so many, and for each level so many more. Only what is touched becomes memory.
const STACK: (usize, usize) = if cfg!(debug_assertions) { (2 << 20, 256 << 10) } else { (512 << 10, 128 << 10) };

/// Bytes that the frames of [`on_stack`] itself may take.
const FRAMES: usize = 64 << 10;

/// Invariant 1.
pub(crate) const fn stack_for(depth: usize) -> usize {
    STACK.0 + depth * STACK.1
}

/// Works on a stack that suits a tree of the given depth.
pub(crate) fn on_stack<T>(depth: usize, work: impl FnOnce() -> T) -> T {
    let bytes = stack_for(depth);
    // A quarter more, so that what asks again further in finds enough.
    stacker::maybe_grow(bytes, bytes + bytes / 4, || {
        let left = stacker::remaining_stack();
        debug_assert!(
            left.is_none_or(|left| left + FRAMES >= bytes),
            "invariant 1: {left:?} of {bytes} bytes are left"
        );
        work()
    })
}

/// A statement's work, polled and dropped on a stack that suits its depth. (Boxed: a statement's future is a big one,
/// and would be copied from frame to frame.)
#[must_use]
pub(crate) struct OnStack<'w, T> {
    depth: usize,
    /// `None`: it is done.
    work: Option<BoxFuture<'w, T>>,
}

pub(crate) fn on_stack_for<T>(depth: usize, work: BoxFuture<'_, T>) -> OnStack<'_, T> {
    OnStack { depth, work: Some(work) }
}

impl<T> Future for OnStack<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        on_stack(self.depth, || {
            let work = self.work.as_mut().expect("nobody polls what is done");
            let polled = work.as_mut().poll(context);
            if polled.is_ready() {
                self.work = None;
            }
            polled
        })
    }
}

impl<T> Drop for OnStack<'_, T> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            on_stack(self.depth, || drop(work));
        }
    }
}

/// Something made of a deep tree, which is dropped on a stack that suits it.
pub(crate) struct Deep<T> {
    depth: usize,
    /// There until it is dropped.
    held: Option<T>,
}

impl<T> Deep<T> {
    pub(crate) fn new(depth: usize, held: T) -> Deep<T> {
        Deep { depth, held: Some(held) }
    }

    pub(crate) fn get(&mut self) -> &mut T {
        self.held.as_mut().expect("it is there until it is dropped")
    }
}

impl<T> Drop for Deep<T> {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            on_stack(self.depth, || drop(held));
        }
    }
}
