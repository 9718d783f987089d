//! Which transfers continue others: long ones need no cache, for a disk does them well.
//!
//! 1. The ends of the last 128 streams are known, each for five seconds. A transfer that begins at one continues it.

const STREAMS: usize = 128;
const REMEMBERED: u64 = 5_000_000_000;

struct Stream {
    end: u64,
    bytes: u64,
    until: u64,
}

/// The last to have been used is at the end.
#[derive(Default)]
pub(super) struct Sequential {
    streams: Vec<Stream>,
}

impl Sequential {
    /// Bytes of the stream that a transfer is part of, its own included. `now` in nanoseconds.
    pub(super) fn note(&mut self, offset: u64, length: u64, now: u64) -> u64 {
        let known = self.streams.iter().rposition(|stream| stream.end == offset && stream.until > now);
        let before = match known {
            Some(at) => self.streams.remove(at).bytes,
            None => {
                if self.streams.len() == STREAMS {
                    self.streams.remove(0);
                }
                0
            }
        };
        let bytes = before + length;
        self.streams.push(Stream { end: offset + length, bytes, until: now + REMEMBERED });
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_told_apart() {
        let mut sequential = Sequential::default();
        assert_eq!(sequential.note(0, 100, 0), 100);
        assert_eq!(sequential.note(5000, 10, 0), 10, "another stream");
        assert_eq!(sequential.note(100, 100, 0), 200);
        assert_eq!(sequential.note(100, 100, 0), 100, "the same again continues nothing");
        assert_eq!(sequential.note(5010, 10, REMEMBERED), 10, "forgotten after a while");
        for at in 0..STREAMS as u64 {
            sequential.note(1_000_000 + 10 * at, 1, 0);
        }
        assert_eq!(sequential.note(200, 1, 0), 1, "so many streams are known");
    }
}
