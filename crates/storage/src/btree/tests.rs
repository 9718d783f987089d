use super::*;

/// Every operation can be part of a task that moves between threads.
#[allow(dead_code)]
fn futures_are_send(st: &Store, tree: &BTree, cursor: &mut Cursor, heap: &crate::heap::Heap) {
    fn send(_: impl Send) {}
    send(tree.insert(st, b""));
    send(tree.remove(st, b""));
    send(tree.first_with_prefix(st, b""));
    send(tree.bulk_load(st, std::iter::empty()));
    send(tree.check(st));
    send(cursor.next_batch(st, tree));
    send(heap.write_chain(st, b""));
    send(heap.read_chain(st, b""));
    send(heap.free_chain(st, b""));
    send(heap.find_room(st, 0, 0));
    send(heap.check(st));
    send(st.space(DATA).free_object(st, ObjectId(1)));
    send(st.space(DATA).check(st));
}
