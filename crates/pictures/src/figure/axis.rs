//! Axes: from the data to round numbers, and from numbers to places.

/// The numbers along one side of a panel.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The smallest number shown.
    pub from: f64,
    /// The largest.
    pub to: f64,
    /// Round numbers in between, with their text.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis for these numbers with about `count` ticks.
    pub fn around(numbers: impl Iterator<Item = f64>, count: usize) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for number in numbers.filter(|number| number.is_finite()) {
            (low, high) = (low.min(number), high.max(number));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        // What is nearly at zero starts there: lengths then mean something.
        if (low > 0.0 && low < 0.5 * high) || low.abs() < 1e-9 * high {
            low = 0.0;
        }
        if high - low < f64::EPSILON * high.abs().max(low.abs()).max(1.0) * 8.0 {
            let room = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
            (low, high) = (low - room, high + room);
        }
        let step = round_step((high - low) / count.max(1) as f64);
        // What exceeds a round number by rounding alone is that number.
        let from = (low / step + 1e-9).floor() * step;
        let to = (high / step - 1e-9).ceil() * step;
        Self::with_step(from, to, step)
    }

    /// An axis from and to exactly these numbers.
    pub fn exactly(from: f64, to: f64, count: usize) -> Self {
        let mut axis = Self::with_step(from, to, round_step((to - from) / count.max(1) as f64));
        axis.ticks
            .retain(|(number, _)| (from..=to).contains(number));
        axis
    }

    fn with_step(from: f64, to: f64, step: f64) -> Self {
        let first = (from / step - 1e-6).ceil();
        let count = ((to - from) / step + 1e-6).floor() as usize;
        let ticks = (0..=count)
            .map(|i| (first + i as f64) * step)
            .map(|number| (number, number_text(number, step)))
            .collect();
        Self { from, to, ticks }
    }

    /// Where a number is: 0 at the start of the axis, 1 at its end.
    pub fn place(&self, number: f64) -> f64 {
        (number - self.from) / (self.to - self.from)
    }
}

/// 1, 2 or 5 times a power of ten, at least as large.
fn round_step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    let fits = steps.into_iter().find(|step| step * power >= rough * 0.999);
    fits.unwrap_or(10.0) * power
}

/// A number with as many decimals as its step has, thousands apart.
fn number_text(number: f64, step: f64) -> String {
    if number.abs() < step / 1e6 {
        return "0".to_owned();
    }
    if number.abs() >= 1e7 || step < 1e-5 {
        return format!("{number:.1e}");
    }
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    let text = format!("{number:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let digits = whole.trim_start_matches('-').len();
    let mut grouped = String::new();
    for (i, character) in whole.chars().enumerate() {
        let left = whole.len() - i;
        if i > whole.len() - digits && left % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(character);
    }
    grouped + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn ticks_are_round() {
        let axis = Axis::around([3.0, 18_000.0].into_iter(), 5);
        assert_eq!(texts(&axis), ["0", "5,000", "10,000", "15,000", "20,000"]);
        let axis = Axis::around([0.0, 0.0014].into_iter(), 4);
        assert_eq!(texts(&axis), ["0", "0.0005", "0.0010", "0.0015"]);
        let axis = Axis::around([0.0, 100.000_000_000_01].into_iter(), 5);
        assert_eq!(axis.to, 100.0);
        let axis = Axis::around([-1.0, 1.0].into_iter(), 4);
        assert_eq!(texts(&axis), ["-1.0", "-0.5", "0", "0.5", "1.0"]);
    }

    #[test]
    fn exact_axes_keep_their_ends() {
        let axis = Axis::exactly(1.0, 99.0, 5);
        assert_eq!((axis.from, axis.to), (1.0, 99.0));
        assert_eq!(texts(&axis), ["20", "40", "60", "80"]);
    }

    proptest! {
        #[test]
        fn every_number_has_its_place_between_the_ends(
            numbers in proptest::collection::vec(-1e6f64..1e6, 0..20), count in 1usize..10,
        ) {
            let axis = Axis::around(numbers.iter().copied(), count);
            prop_assert!(axis.to > axis.from);
            prop_assert!((1..=2 * count + 3).contains(&axis.ticks.len()), "{axis:?}");
            for number in numbers {
                prop_assert!((-1e-8..=1.0 + 1e-8).contains(&axis.place(number)), "{number} {axis:?}");
            }
        }
    }
}
