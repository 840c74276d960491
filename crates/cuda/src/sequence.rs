//! Which launches of a sequence must wait for which.

use std::collections::HashMap;

use crate::params::Access;

/// Places of limbs in a block.
const PLACES: usize = 64;

/// What happened to a block so far.
struct History {
    /// Words of a limb that places count; others concern all places.
    words: u64,
    /// For each place the launch that wrote it last.
    writers: [Option<usize>; PLACES],
    /// Launches that read since, and the places.
    readers: Vec<(usize, u64)>,
}

/// For each launch those before it that it must wait for: it reads what they write, or writes what they read or write. Those that another
/// of them waits for are left out.
pub(crate) fn dependencies<'a>(launches: impl Iterator<Item = &'a [Access]>) -> Vec<Vec<usize>> {
    let mut blocks: HashMap<u64, History> = HashMap::new();
    let mut out: Vec<Vec<usize>> = Vec::new();
    for (number, accesses) in launches.enumerate() {
        let mut after = Vec::new();
        for access in accesses {
            let block = blocks.entry(access.address).or_insert_with(|| History {
                words: access.words,
                writers: [None; PLACES],
                readers: Vec::new(),
            });
            let places = block.places(access);
            after.extend(set_bits(places).filter_map(|place| block.writers[place]));
            if access.write {
                let readers = block.readers.iter().filter(|reader| reader.1 & places != 0);
                after.extend(readers.map(|reader| reader.0));
            }
        }
        // After all reads: a launch does not wait for itself.
        for access in accesses {
            let Some(block) = blocks.get_mut(&access.address) else {
                continue;
            };
            let places = block.places(access);
            if access.write {
                set_bits(places).for_each(|place| block.writers[place] = Some(number));
                block.readers.retain_mut(|reader| {
                    reader.1 &= !places;
                    reader.1 != 0
                });
            } else {
                block.readers.push((number, places));
            }
        }
        after.sort_unstable();
        after.dedup();
        after.retain(|&earlier| earlier != number);
        let redundant = |earlier: &usize| {
            let others = after.iter().filter(|&other| other > earlier);
            others
                .into_iter()
                .any(|&other| out[other].contains(earlier))
        };
        let needed = after.iter().copied().filter(|earlier| !redundant(earlier));
        let needed = needed.collect();
        out.push(needed);
    }
    out
}

impl History {
    fn places(&self, access: &Access) -> u64 {
        if access.words == self.words {
            access.limbs
        } else {
            u64::MAX
        }
    }
}

fn set_bits(mask: u64) -> impl Iterator<Item = usize> {
    (0..PLACES).filter(move |place| mask >> place & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(address: u64, limbs: u64, write: bool) -> Access {
        Access {
            address,
            limbs,
            words: 16,
            write,
        }
    }

    fn after(launches: &[&[Access]]) -> Vec<Vec<usize>> {
        dependencies(launches.iter().copied())
    }

    #[test]
    fn readers_wait_for_writers_and_writers_for_both() {
        let (write, read) = (access(1, 3, true), access(1, 1, false));
        assert_eq!(
            after(&[&[write], &[read], &[read], &[write], &[read]]),
            [vec![], vec![0], vec![0], vec![1, 2], vec![3]]
        );
    }

    #[test]
    fn other_limbs_and_other_blocks_do_not_wait() {
        let launches = [
            vec![access(1, 0b01, true)],
            vec![access(1, 0b10, true)],
            vec![access(2, 0b11, true), access(1, 0b10, false)],
            vec![access(1, 0b01, false), access(1, 0b01, true)],
        ];
        let slices: Vec<&[Access]> = launches.iter().map(Vec::as_slice).collect();
        assert_eq!(after(&slices), [vec![], vec![], vec![1], vec![0]]);
    }

    #[test]
    fn limbs_of_another_length_concern_the_whole_block() {
        let short = Access {
            words: 8,
            ..access(1, 0b10, false)
        };
        assert_eq!(
            after(&[&[access(1, 1, true)], &[short], &[access(1, 1, true)]]),
            [vec![], vec![0], vec![1]]
        );
    }
}
