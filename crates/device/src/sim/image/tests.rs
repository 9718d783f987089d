use super::*;
use proptest::prelude::*;

/// A naive model: all bytes in one vector.
#[derive(Default)]
struct Flat(Vec<u8>);

impl Flat {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        self.0.resize(self.0.len().max(end), 0);
        self.0[offset..end].copy_from_slice(bytes);
    }
}

proptest! {
    #[test]
    fn behaves_like_a_vector(
        steps in prop::collection::vec((0..3u8, 0..40_000usize, 1..20_000usize, any::<u8>()), 1..40),
    ) {
        let (mut image, mut flat) = (Image::new(), Flat::default());
        let mut older: Vec<(Image, Vec<u8>)> = Vec::new();
        for (step, offset, len, byte) in steps {
            match step {
                0 => {
                    image.write(offset as u64, &vec![byte; len]);
                    flat.write(offset, &vec![byte; len]);
                }
                1 => {
                    image.clear(offset as u64, len as u64);
                    let end = (offset + len).min(flat.0.len());
                    if offset < end {
                        flat.0[offset..end].fill(0);
                    }
                }
                _ => older.push((image.clone(), flat.0.clone())),
            }
        }
        older.push((image, flat.0));
        for (image, flat) in older {
            prop_assert_eq!(image.size(), flat.len() as u64);
            let mut read = vec![1; flat.len() + 10];
            image.read(0, &mut read);
            prop_assert_eq!(&read[..flat.len()], &flat[..]);
            prop_assert!(read[flat.len()..].iter().all(|b| *b == 0));
        }
    }
}

#[test]
fn differences_are_found() {
    let mut a = Image::new();
    a.write(0, &[7; 30_000]);
    let mut b = a.clone();
    assert_eq!(a, b);
    b.flip(20_001, 4);
    assert_eq!(a.first_difference(&b), Some(20_001));
    b.flip(20_001, 4);
    b.grow(40_000);
    assert_eq!(a.first_difference(&b), Some(30_000));
}
