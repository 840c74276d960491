//! What was queued and has not run.

use std::collections::VecDeque;

use taciturn_cuda::Launch;

/// Work on the device.
#[derive(Clone)]
pub enum Queued {
    /// A kernel and its parameters.
    Kernel(Launch, Box<[u64]>),
    /// Zeros to an address, so many bytes.
    Zero(u64, usize),
}

/// Work that waits, in order. Places are numbered from the first work ever queued.
#[derive(Default)]
pub struct Pending {
    waiting: VecDeque<Queued>,
    done: u64,
}

impl Pending {
    pub fn push(&mut self, work: Queued) {
        self.waiting.push_back(work);
    }

    /// The place behind everything.
    pub fn end(&self) -> u64 {
        self.done + self.waiting.len() as u64
    }

    /// Runs what lies before a place.
    pub fn run_to(&mut self, place: u64, run: impl Fn(&Queued)) {
        while self.done < place {
            let Some(work) = self.waiting.pop_front() else {
                return;
            };
            run(&work);
            self.done += 1;
        }
    }
}

/// An order of steps in which each comes after those that it waits for: their own (0), the latest first (1), or shuffled by a seed.
pub fn permitted_order(after: &[&[usize]], order: u32) -> Vec<usize> {
    let mut missing: Vec<usize> = after.iter().map(|after| after.len()).collect();
    let mut followers = vec![Vec::new(); after.len()];
    for (step, after) in after.iter().enumerate() {
        after
            .iter()
            .for_each(|&earlier| followers[earlier].push(step));
    }
    let mut ready: Vec<usize> = (0..after.len())
        .filter(|&step| missing[step] == 0)
        .collect();
    let mut state = u64::from(order);
    let mut out = Vec::with_capacity(after.len());
    while !ready.is_empty() {
        ready.sort_unstable();
        let choice = match order {
            0 => 0,
            1 => ready.len() - 1,
            _ => {
                state = state
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                (state >> 33) as usize % ready.len()
            }
        };
        let step = ready.remove(choice);
        out.push(step);
        for &follower in &followers[step] {
            missing[follower] -= 1;
            if missing[follower] == 0 {
                ready.push(follower);
            }
        }
    }
    assert_eq!(out.len(), after.len(), "steps that wait for each other");
    out
}
