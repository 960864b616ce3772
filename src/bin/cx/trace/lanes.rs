//! Assigns overlapping calls to lanes.

use std::time::Duration;

use cx::TracedCall;

/// Assigns each call a lane without another call at the same time. Returns the lanes and their number. A call begins
/// when the script makes it.
pub(crate) fn assign(calls: &[TracedCall]) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..calls.len()).collect();
    order.sort_by_key(|&position| calls[position].requested);
    let mut free_from: Vec<Duration> = Vec::new();
    let mut lanes = vec![0; calls.len()];
    for position in order {
        let call = &calls[position];
        let lane = free_from.iter().position(|free| *free <= call.requested).unwrap_or_else(|| {
            free_from.push(Duration::ZERO);
            free_from.len() - 1
        });
        free_from[lane] = call.ended;
        lanes[position] = lane;
    }
    (lanes, free_from.len())
}
