//! How long ago something was, as people write it.

use std::fmt;
use std::str::FromStr;

const HOUR: u64 = 3600;

/// The letters of the units and their seconds.
const UNITS: [(char, u64); 3] = [('h', HOUR), ('d', 24 * HOUR), ('w', 7 * 24 * HOUR)];

/// An age, written `12h`, `30d` or `4w`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age {
    seconds: u64,
}

impl Age {
    pub fn of_seconds(seconds: u64) -> Age {
        Age { seconds }
    }

    pub fn seconds(self) -> u64 {
        self.seconds
    }
}

impl FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Age, String> {
        let parsed = || {
            let (letter, seconds) = UNITS.into_iter().find(|(letter, _)| text.ends_with(*letter))?;
            let number = text.strip_suffix(letter)?;
            // `parse` alone would take a sign.
            let plain = number.bytes().all(|byte| byte.is_ascii_digit());
            number.parse::<u64>().ok().filter(|_| plain)?.checked_mul(seconds)
        };
        parsed()
            .map(Age::of_seconds)
            .ok_or_else(|| "write a whole number and a unit, h, d or w: 12h, 30d, 4w".to_owned())
    }
}

/// In whole days, below two days in hours.
impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seconds / HOUR {
            0 => write!(f, "{}m", self.seconds / 60),
            hours if hours < 48 => write!(f, "{hours}h"),
            hours => write!(f, "{}d", hours / 24),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_hours_days_and_weeks() {
        for (text, seconds) in [("0h", 0), ("12h", 43_200), ("30d", 2_592_000), ("2w", 1_209_600)] {
            assert_eq!(text.parse(), Ok(Age { seconds }), "{text}");
        }
        for text in [
            "",
            "d",
            "30",
            "30 d",
            "-1d",
            "+1d",
            "1.5d",
            "30m",
            "1d2h",
            "99999999999999999999w",
            "9999999999999999w",
        ] {
            assert!(text.parse::<Age>().unwrap_err().contains("12h, 30d, 4w"), "{text}");
        }
    }

    #[test]
    fn is_written_in_its_largest_useful_unit() {
        for (seconds, text) in [(59, "0m"), (3_599, "59m"), (3_600, "1h"), (172_799, "47h"), (172_800, "2d")]
        {
            assert_eq!(Age { seconds }.to_string(), text);
        }
    }
}
