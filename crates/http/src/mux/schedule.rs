//! The order in which streams send (RFC 9218 §10).

use super::priority::Priority;

/// A stream that can send now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) priority: Priority,
    /// The number of the turn in which the stream sent last; 0 if it has not sent.
    pub(crate) last_turn: u64,
}

/// Returns the index of the stream that sends next. `ready` has the streams in the order of their requests, with
/// `None` for streams that cannot send.
///
/// Strict by urgency. Within an urgency, streams are served in order, except that incremental streams take turns.
pub(crate) fn next(ready: impl Iterator<Item = Option<Ready>>) -> Option<usize> {
    let mut best: Option<(usize, Ready)> = None;
    for (index, stream) in ready.enumerate() {
        let Some(stream) = stream else { continue };
        let wins = best.is_none_or(|(_, best)| {
            let (urgency, best_urgency) = (stream.priority.urgency, best.priority.urgency);
            urgency < best_urgency
                || (urgency == best_urgency
                    && best.priority.incremental
                    && stream.priority.incremental
                    && stream.last_turn < best.last_turn)
        });
        if wins {
            best = Some((index, stream));
        }
    }
    best.map(|(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves streams of `pieces` each, and returns the order of pieces.
    fn order(streams: &[(u8, bool, usize)]) -> Vec<usize> {
        let mut left: Vec<usize> = streams.iter().map(|stream| stream.2).collect();
        let mut turns = vec![0; streams.len()];
        let mut order = Vec::new();
        loop {
            let ready = streams.iter().enumerate().map(|(index, (urgency, incremental, _))| {
                let priority = Priority { urgency: *urgency, incremental: *incremental };
                (left[index] > 0).then_some(Ready { priority, last_turn: turns[index] })
            });
            let Some(index) = next(ready) else { return order };
            left[index] -= 1;
            order.push(index);
            turns[index] = order.len() as u64;
        }
    }

    #[test]
    fn urgent_streams_go_first_and_incremental_streams_take_turns() {
        assert_eq!(order(&[(3, false, 2), (1, false, 2)]), [1, 1, 0, 0]);
        assert_eq!(order(&[(3, false, 2), (3, false, 2)]), [0, 0, 1, 1]);
        assert_eq!(order(&[(3, true, 2), (3, true, 3), (3, true, 1)]), [0, 1, 2, 0, 1, 1]);
        assert_eq!(order(&[(3, false, 2), (3, true, 1), (0, true, 1)]), [2, 0, 0, 1]);
        assert_eq!(order(&[(4, true, 2), (4, false, 1)]), [0, 0, 1]);
    }
}
