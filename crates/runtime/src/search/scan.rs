//! Looking through a row of log-probabilities for the few tokens that matter.
//!
//! A vocabulary has thousands of tokens, and all but a handful are far below what search keeps. So a
//! block of them is compared with the bound at once, which compilers turn into vector
//! instructions, and only a block that holds something is looked at token by token.

/// Calls `look(token, log_prob)` for every value above `floor`, lower ids first; `look` returns the
/// floor for what follows. NaN is above nothing. Values next to the floor may be shown although they
/// are not above it: whoever needs to know compares again.
pub(crate) fn each_above(row: &[f32], floor: f64, mut look: impl FnMut(u32, f32) -> f64) {
    let mut floor = rounded_down(floor);
    let mut first = 0;
    for block in row.chunks(BLOCK) {
        if any_above(block, floor) {
            for (token, &log_prob) in (first..).zip(block) {
                if log_prob > floor {
                    floor = rounded_down(look(token, log_prob));
                }
            }
        }
        first += BLOCK as u32;
    }
}

const BLOCK: usize = 64;

/// No early way out: that is what lets the whole block be compared at once.
fn any_above(block: &[f32], floor: f32) -> bool {
    let above = |any, &value: &f32| any | (value > floor);
    block.iter().fold(false, above)
}

/// Somewhat below, so that no rounding hides a value that is above.
fn rounded_down(floor: f64) -> f32 {
    (floor - 1e-6 * floor.abs() - 1e-6) as f32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nothing_above_the_floor_is_passed_over(
            mut row in prop::collection::vec(-30.0..0.0f32, 0..300),
            floor in -40.0..1.0f64,
            holes in prop::collection::vec(0usize..300, 0..5),
        ) {
            for hole in holes {
                if let Some(value) = row.get_mut(hole) {
                    *value = f32::NAN;
                }
            }
            let mut seen = Vec::new();
            each_above(&row, floor, |token, log_prob| {
                seen.push((token, log_prob));
                floor
            });
            seen.retain(|&(_, log_prob)| f64::from(log_prob) > floor);
            let expected: Vec<_> =
                (0..).zip(row).filter(|&(_, log_prob)| f64::from(log_prob) > floor).collect();
            prop_assert_eq!(seen, expected);
        }
    }

    #[test]
    fn a_rising_floor_holds_for_what_follows() {
        let row = [-3.0, -5.0, -2.0, -2.5, -1.0];
        let mut seen = Vec::new();
        each_above(&row, f64::NEG_INFINITY, |token, log_prob| {
            seen.push(token);
            f64::from(log_prob)
        });
        assert_eq!(seen, [0, 2, 4]);
    }

    #[test]
    fn infinities_are_bounds_like_others() {
        let row = [f32::NEG_INFINITY, -1.0, f32::NAN, f32::INFINITY];
        let mut seen = Vec::new();
        each_above(&row, f64::NEG_INFINITY, |token, _| {
            seen.push(token);
            f64::NEG_INFINITY
        });
        assert_eq!(seen, [1, 3]);
    }
}
