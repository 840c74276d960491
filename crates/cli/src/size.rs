//! Sizes of memory on the command line: `12GB`, `12GiB`, `500 MB`, or bytes.

/// Units by their names, the longest first: decimal with B alone, binary with iB.
const UNITS: [(&str, u64); 9] = [
    ("KIB", 1 << 10),
    ("MIB", 1 << 20),
    ("GIB", 1 << 30),
    ("TIB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

/// The bytes that a size stands for; the error says what is accepted.
pub fn bytes(text: &str) -> Result<u64, String> {
    let expected = || "expected a size as 12GB, 12GiB, 500MB or a number of bytes".to_owned();
    let upper = text.trim().to_ascii_uppercase();
    let unit = UNITS.iter().find(|(name, _)| upper.ends_with(name));
    let (number, factor) = match unit {
        Some(&(name, factor)) => (upper[..upper.len() - name.len()].trim_end(), factor),
        None => (upper.as_str(), 1),
    };
    // Whole numbers exactly; a fraction only of a unit.
    if let Ok(whole) = number.parse::<u64>() {
        return whole
            .checked_mul(factor)
            .ok_or_else(|| format!("expected at most {} bytes", u64::MAX));
    }
    let digits = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    match number.parse::<f64>() {
        Ok(fraction) if digits && factor > 1 && fraction * (factor as f64) < u64::MAX as f64 => {
            Ok((fraction * factor as f64) as u64)
        }
        _ => Err(expected()),
    }
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn units_and_fractions() {
        for (text, expected) in [
            ("0", 0),
            ("1000000000", 1_000_000_000),
            ("17B", 17),
            ("12GB", 12_000_000_000),
            ("12GiB", 12 << 30),
            ("12 gib", 12 << 30),
            ("500MB", 500_000_000),
            ("500mb", 500_000_000),
            ("1.5GiB", 3 << 29),
            ("0.5kB", 500),
            (" 2TB ", 2_000_000_000_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "",
            "GB",
            "12G",
            "twelve",
            "-1",
            "-1GB",
            "1.5",
            "1e9",
            "1e3GB",
            "infGB",
            "nanGB",
            "1.2.3GB",
            "0x10",
            "18446744073709551616",
            "99999999999999TB",
        ] {
            let message = bytes(text).expect_err(text);
            assert!(message.contains("expected"), "{text}: {message}");
        }
    }
}
