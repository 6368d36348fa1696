//! What processes tell each other about a round of batches: its numbers, and what they vote for.
//!
//! One small message to each while the backward pass goes on. Votes are therefore counted a round later.

use super::{Communicator, Exchange, Outgoing, Tag};

/// The numbers of one process's batch.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Report {
    /// Of the batch, summed over its targets.
    pub loss: f64,
    /// Predictions that the loss sums over.
    pub targets: f64,
    /// Examples in the batch.
    pub examples: f64,
    /// Seconds that the batch of the round before took.
    pub seconds: f64,
    /// What the process would do.
    pub votes: Votes,
}

/// What any single process can decide for all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Votes {
    /// Somebody asked it to stop.
    pub stop: bool,
    /// The time that the recipe allows has passed.
    pub late: bool,
    /// A checkpoint is due.
    pub save: bool,
}

impl Votes {
    /// What any of two wants.
    pub fn or(self, other: Self) -> Self {
        Self {
            stop: self.stop || other.stop,
            late: self.late || other.late,
            save: self.save || other.save,
        }
    }
}

/// Reports on their way.
pub struct Reports {
    own: Report,
    rank: usize,
    exchange: Box<dyn Exchange>,
}

/// Tells the others, and begins to hear of them.
pub fn report(communicator: &dyn Communicator, own: Report) -> Reports {
    let size = communicator.size();
    Reports {
        own,
        rank: communicator.rank(),
        exchange: communicator.start(Tag::Round, Outgoing::ToAll(own.encode()), vec![BYTES; size]),
    }
}

impl Reports {
    /// Those of all processes, in their order.
    pub fn wait(self) -> Vec<Report> {
        let all = self.exchange.wait();
        let each = all.iter().enumerate().map(|(rank, bytes)| {
            if rank == self.rank {
                self.own
            } else {
                Report::decode(bytes)
            }
        });
        each.collect()
    }
}

const BYTES: usize = 4 * 8 + 3;

impl Report {
    fn encode(&self) -> Vec<u8> {
        let numbers = [self.loss, self.targets, self.examples, self.seconds];
        let votes = [self.votes.stop, self.votes.late, self.votes.save];
        let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
        numbers.chain(votes.map(u8::from)).collect()
    }

    fn decode(bytes: &[u8]) -> Self {
        let number = |index: usize| {
            let bytes = bytes.get(8 * index..).and_then(|bytes| bytes.first_chunk());
            bytes.map_or(f64::NAN, |bytes| f64::from_le_bytes(*bytes))
        };
        let vote = |index: usize| bytes.get(32 + index) == Some(&1);
        Self {
            loss: number(0),
            targets: number(1),
            examples: number(2),
            seconds: number(3),
            votes: Votes {
                stop: vote(0),
                late: vote(1),
                save: vote(2),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_come_back() {
        let report = Report {
            loss: -1.5e300,
            targets: 4096.0,
            examples: 7.0,
            seconds: 0.25,
            votes: Votes {
                stop: false,
                late: true,
                save: false,
            },
        };
        assert_eq!(report.encode().len(), BYTES);
        assert_eq!(Report::decode(&report.encode()), report);
    }
}
