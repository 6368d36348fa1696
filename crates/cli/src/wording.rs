//! Numbers the way people read them.

/// `12,345,678`
pub fn count(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 line`, `12 lines`
pub fn plural(number: usize, one: &str, many: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{} {many}", count(number)),
    }
}

/// `1:05`, `1:02:03`
pub fn duration(seconds: f64) -> String {
    // `as` saturates, and turns NaN into 0.
    let whole = seconds.round().max(0.0) as u64;
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// `512 B`, `1.5 MB`
pub fn bytes(number: u64) -> String {
    let mut size = number as f64;
    let mut units = ["kB", "MB", "GB", "TB"].into_iter();
    let mut unit = "B";
    while size >= 999.5 {
        let Some(next) = units.next() else { break };
        (size, unit) = (size / 1000.0, next);
    }
    match unit {
        "B" => format!("{number} B"),
        _ => format!("{size:.1} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(count),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(plural(1, "line", "lines"), "1 line");
        assert_eq!(plural(0, "line", "lines"), "0 lines");
        assert_eq!(
            [0.4, 65.0, 3723.0, f64::NAN].map(duration),
            ["0:00", "1:05", "1:02:03", "0:00"]
        );
        assert_eq!(
            [512, 1500, 1_550_000].map(bytes),
            ["512 B", "1.5 kB", "1.6 MB"]
        );
    }
}
