//! Ranks that are slower than the others: everybody waits for them, so they are named.

/// How much longer than the median rank one must take to be named.
const SLOW: f64 = 1.3;

/// Seconds of computing of the median rank before anything is said: short times say nothing.
const FEWEST_SECONDS: f64 = 2.0;

/// The time that every rank has computed.
#[derive(Debug, Clone)]
pub struct Pace {
    hosts: Vec<String>,
    seconds: Vec<f64>,
    targets: Vec<f64>,
    named: Vec<usize>,
}

impl Pace {
    /// Of ranks on these machines.
    pub fn new(hosts: Vec<String>) -> Self {
        Self {
            seconds: vec![0.0; hosts.len()],
            targets: vec![0.0; hosts.len()],
            named: Vec::new(),
            hosts,
        }
    }

    /// How many ranks on which machines, in words.
    pub fn ranks(&self) -> String {
        let mut hosts = self.hosts.clone();
        hosts.dedup();
        format!("{} on {}", self.hosts.len(), hosts.join(", "))
    }

    /// A rank has computed a batch of so many targets.
    pub fn add(&mut self, rank: usize, targets: f64, seconds: f64) {
        self.seconds[rank] += seconds;
        self.targets[rank] += targets;
    }

    /// Looks at the time since the last look: a sentence for each rank that has become slow, by the target.
    pub fn look(&mut self) -> Vec<String> {
        let each = self.seconds.iter().zip(&self.targets);
        let each: Vec<f64> = each
            .map(|(seconds, targets)| seconds / targets.max(1.0))
            .collect();
        let (median, seconds) = (median(&each), median(&self.seconds));
        if self.seconds.len() < 2 || seconds < FEWEST_SECONDS {
            return Vec::new();
        }
        let slow: Vec<usize> = (0..each.len())
            .filter(|rank| each[*rank] > SLOW * median)
            .collect();
        let new = slow.iter().filter(|rank| !self.named.contains(rank));
        let messages = new.map(|rank| {
            format!(
                "rank {rank} on {} takes {:.1} times as long for a token as the median rank, and all wait for it",
                self.hosts[*rank],
                each[*rank] / median
            )
        });
        let messages = messages.collect();
        self.named = slow;
        self.seconds.fill(0.0);
        self.targets.fill(0.0);
        messages
    }
}

/// The lower of the two in the middle, so that of two ranks the slower can be told.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
        .get(sorted.len().saturating_sub(1) / 2)
        .copied()
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_rank_is_named_once_and_short_times_say_nothing() {
        let hosts = ["a", "b", "c"].map(str::to_owned).to_vec();
        let mut pace = Pace::new(hosts);
        pace.add(0, 1000.0, 1.0);
        pace.add(1, 1000.0, 1.9);
        pace.add(2, 2000.0, 2.0);
        assert_eq!(pace.look().len(), 0, "too soon");
        let mut said = Vec::new();
        for _ in 0..2 {
            for _ in 0..3 {
                pace.add(0, 1000.0, 1.0);
                pace.add(1, 1000.0, 1.9);
                pace.add(2, 2000.0, 2.0);
            }
            said.extend(pace.look());
        }
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].starts_with("rank 1 on b takes 1.9 times"),
            "{said:?}"
        );
        let mut two = Pace::new(vec!["a".to_owned(), "b".to_owned()]);
        two.add(0, 10.0, 3.0);
        two.add(1, 10.0, 6.0);
        assert!(two.look()[0].starts_with("rank 1"), "the slower of two");
    }
}
