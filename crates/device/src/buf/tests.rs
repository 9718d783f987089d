use super::*;

#[test]
fn buffers_of_all_sizes_are_zeroed_aligned_and_their_own() {
    let sizes = [SECTOR, 3 * SECTOR, MAPPED - SECTOR, MAPPED, MAPPED + SECTOR, HUGE - SECTOR, HUGE, HUGE + 5 * SECTOR];
    for _ in 0..3 {
        let mut buffers: Vec<IoBuf> = sizes.iter().map(|&size| IoBuf::zeroed(size)).collect();
        for (buf, &size) in buffers.iter_mut().zip(&sizes) {
            assert_eq!(buf.len(), size);
            assert!(buf.as_ptr().addr().is_multiple_of(if size >= HUGE { HUGE_PAGE } else { SECTOR }));
            assert!(buf.iter().all(|&byte| byte == 0), "{size} bytes");
            buf.fill(size as u8 | 1);
        }
        // In another order than they came.
        buffers.swap(1, 6);
        while let Some(buf) = buffers.pop() {
            assert!(buf.iter().all(|&byte| byte == buf.len() as u8 | 1));
        }
    }
}
