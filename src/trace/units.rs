//! The units of a trace, read and written: durations, memory, percentages, dates.
//!
//! Each value tells by itself whether it is raw (`62000`) or for people (`1m 2s`), so that one reader serves both.
//! Memory units are powers of 1024, as Nextflow means them. A decimal comma is a decimal point.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// The longest duration believed, in milliseconds (about 300 years): anything above is damage.
const LONGEST_MS: f64 = 1e13;

/// The largest memory believed, in bytes: exact in `f64` as well.
const LARGEST_BYTES: f64 = 9_007_199_254_740_992.0;

/// Milliseconds of `1h 2m 3s`, `6ms`, `2.7s`, or of a bare whole number of milliseconds.
pub fn parse_duration(text: &str) -> Option<u64> {
    let text = text.trim();
    if is_whole_number(text) {
        return text.parse().ok().filter(|&milliseconds: &u64| milliseconds as f64 <= LONGEST_MS);
    }
    let mut rest = text;
    let mut total = 0.0;
    while !rest.is_empty() {
        let (number, after) = leading_number(rest)?;
        let after = after.trim_start();
        let end = after.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        total += number * milliseconds_in(unit)?;
        rest = after.trim_start();
    }
    (!text.is_empty() && total <= LONGEST_MS).then(|| total.round() as u64)
}

fn milliseconds_in(unit: &str) -> Option<f64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "ms" | "milli" | "millis" => 1.0,
        "s" | "sec" | "second" | "seconds" => 1e3,
        "m" | "min" | "minute" | "minutes" => 60e3,
        "h" | "hour" | "hours" => 3_600e3,
        "d" | "day" | "days" => 86_400e3,
        _ => return None,
    })
}

/// Bytes of `11.7 GB`, `512 B`, `1,5 TB`, `1.5 GiB`, or of a bare whole number of bytes.
pub fn parse_memory(text: &str) -> Option<u64> {
    let text = text.trim();
    if is_whole_number(text) {
        return text.parse().ok().filter(|&bytes: &u64| bytes as f64 <= LARGEST_BYTES);
    }
    let (number, unit) = leading_number(text)?;
    let power = match unit.trim_start().to_ascii_uppercase().as_str() {
        "B" => 0,
        "K" | "KB" | "KIB" => 1,
        "M" | "MB" | "MIB" => 2,
        "G" | "GB" | "GIB" => 3,
        "T" | "TB" | "TIB" => 4,
        "P" | "PB" | "PIB" => 5,
        _ => return None,
    };
    let bytes = number * 1024_f64.powi(power);
    (bytes <= LARGEST_BYTES).then(|| bytes.round() as u64)
}

/// `187.5` of `187.5%`, `187,5%` or a bare `187.5`.
pub fn parse_percent(text: &str) -> Option<f64> {
    let (number, rest) = leading_number(text.trim())?;
    matches!(rest.trim(), "" | "%").then_some(number)
}

/// Milliseconds since 1970 of `2025-03-04 09:12:36.080` in the local time zone, of an instant with its own zone
/// (`2025-03-04T09:12:36Z`), or of a bare whole number of milliseconds.
pub fn parse_date(text: &str) -> Option<i64> {
    let text = text.trim();
    // Asking for the zone costs more than reading a number.
    match is_whole_number(text) {
        true => text.parse().ok(),
        false => parse_date_in(text, &TimeZone::system()),
    }
}

fn parse_date_in(text: &str, zone: &TimeZone) -> Option<i64> {
    let text = text.trim();
    if is_whole_number(text) {
        return text.parse().ok();
    }
    if let Ok(instant) = text.parse::<jiff::Timestamp>() {
        return Some(instant.as_millisecond());
    }
    let local: DateTime = text.replacen(',', ".", 1).parse().ok()?;
    Some(local.to_zoned(zone.clone()).ok()?.timestamp().as_millisecond())
}

fn is_whole_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The number a text begins with (digits, at most one point or comma) and what follows it.
fn leading_number(text: &str) -> Option<(f64, &str)> {
    let end = text
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.' && letter != ',')
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if !digits.starts_with(|letter: char| letter.is_ascii_digit()) {
        return None;
    }
    let number: f64 = match digits.contains(',') {
        true => digits.replace(',', ".").parse().ok()?,
        false => digits.parse().ok()?,
    };
    number.is_finite().then_some((number, rest))
}

/// Writes milliseconds for people, in three figures or so: `350 ms`, `12.3 s`, `24m 22s`, `1h 02m`, `1d 03h`.
pub fn format_duration(milliseconds: u64) -> String {
    let rounded = |unit: u64| milliseconds.saturating_add(unit / 2) / unit;
    if milliseconds < 1_000 {
        return format!("{milliseconds} ms");
    }
    let tenths = rounded(100);
    if tenths < 600 {
        return format!("{}.{} s", tenths / 10, tenths % 10);
    }
    let seconds = rounded(1_000);
    if seconds < 3_600 {
        return format!("{}m {:02}s", seconds / 60, seconds % 60);
    }
    let minutes = rounded(60_000);
    if minutes < 24 * 60 {
        return format!("{}h {:02}m", minutes / 60, minutes % 60);
    }
    let hours = rounded(3_600_000);
    format!("{}d {:02}h", hours / 24, hours % 24)
}

/// Writes bytes for people, in powers of 1024 and so named: `512 B`, `704.8 KiB`, `1.5 GiB`.
pub fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    // 1023.95 would be written as 1024.0.
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} B"),
        _ => format!("{value:.1} {}", UNITS[unit]),
    }
}

/// Writes a percentage: `187.5%`.
pub fn format_percent(percent: f64) -> String {
    format!("{percent:.1}%")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_of_every_form() {
        let cases = [
            ("6ms", 6),
            ("300ms", 300),
            ("2.7s", 2_700),
            ("2,7s", 2_700),
            ("24m 22s", 1_462_000),
            ("1h 2m 3s", 3_723_000),
            ("1d 2h 59m 58s", 97_198_000),
            ("1h02m", 3_720_000),
            ("350 ms", 350),
            ("0ms", 0),
            ("97198000", 97_198_000),
            ("0", 0),
        ];
        for (text, milliseconds) in cases {
            assert_eq!(parse_duration(text), Some(milliseconds), "{text}");
        }
        for text in
            ["", "-", "h", "1x", "1h 2", "2.7", "-5s", "1.2.3s", "99999999999999999999", "1e9s", "NaN"]
        {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn memory_in_powers_of_1024() {
        let cases = [
            ("0", 0),
            ("512 B", 512),
            ("704.8 KB", 721_715),
            ("1,5 GB", 1_610_612_736),
            ("11.7 GB", 12_562_779_341),
            ("1.5 TB", 1_649_267_441_664),
            ("1.5 TiB", 1_649_267_441_664),
            ("1.5TB", 1_649_267_441_664),
            ("1649267441664", 1_649_267_441_664),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse_memory(text), Some(bytes), "{text}");
        }
        for text in ["", "-", "GB", "1.5", "1.2.3 GB", "1 XB", "-1 B", "99999999 PB", "1 GB 2 MB"] {
            assert_eq!(parse_memory(text), None, "{text}");
        }
    }

    #[test]
    fn percentages_with_and_without_sign() {
        for (text, percent) in
            [("187.5%", 187.5), ("187,5%", 187.5), ("1690.0%", 1690.0), ("95.2", 95.2), ("0", 0.0)]
        {
            assert_eq!(parse_percent(text), Some(percent), "{text}");
        }
        for text in ["", "-", "%", "1%%", "5 kg", "-3%"] {
            assert_eq!(parse_percent(text), None, "{text}");
        }
    }

    #[test]
    fn dates_are_local_unless_they_say_their_zone() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let read = |text| parse_date_in(text, &zone);
        assert_eq!(read("2025-03-04 09:12:36.080"), Some(1_741_072_356_080));
        assert_eq!(read("2025-03-04 09:12:36,080"), Some(1_741_072_356_080));
        assert_eq!(read("2025-03-04T07:12:36.080Z"), Some(1_741_072_356_080));
        assert_eq!(read("1741072356080"), Some(1_741_072_356_080));
        for text in ["", "-", "yesterday", "2025-13-04 09:12:36.080", "99999999999999999999"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn writes_for_people() {
        let durations = [
            (0, "0 ms"),
            (350, "350 ms"),
            (999, "999 ms"),
            (12_345, "12.3 s"),
            (59_949, "59.9 s"),
            (59_950, "1m 00s"),
            (1_462_000, "24m 22s"),
            (3_599_500, "1h 00m"),
            (3_723_000, "1h 02m"),
            (86_399_999, "1d 00h"),
            (97_198_000, "1d 03h"),
        ];
        for (milliseconds, text) in durations {
            assert_eq!(format_duration(milliseconds), text);
        }
        let sizes = [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_024, "1.0 KiB"),
            (1_610_612_736, "1.5 GiB"),
            (1_048_575, "1.0 MiB"),
            (1_649_267_441_664, "1.5 TiB"),
            (u64::MAX, "16384.0 PiB"),
        ];
        for (bytes, text) in sizes {
            assert_eq!(format_bytes(bytes), text);
        }
        assert_eq!(format_percent(187.46), "187.5%");
    }

    proptest! {
        #[test]
        fn no_text_can_make_them_panic(text in any::<String>()) {
            parse_duration(&text);
            parse_memory(&text);
            parse_percent(&text);
            parse_date_in(&text, &TimeZone::UTC);
        }

        #[test]
        fn near_misses_cannot_either(text in "[0-9.,]{0,30}[ -~µ]{0,3}[smhdBKMGTP%: -]{0,4}[0-9.,]{0,20}") {
            parse_duration(&text);
            parse_memory(&text);
            parse_percent(&text);
            parse_date_in(&text, &TimeZone::UTC);
        }

        #[test]
        fn durations_survive_writing_within_half_a_step(milliseconds in 0_u64..10_000_000_000) {
            let step = match milliseconds {
                0..1_000 => 0,
                1_000..60_000 => 100,
                60_000..3_600_000 => 1_000,
                3_600_000..86_400_000 => 60_000,
                _ => 3_600_000,
            };
            let back = parse_duration(&format_duration(milliseconds)).unwrap();
            prop_assert!(back.abs_diff(milliseconds) <= step / 2, "{milliseconds} became {back}");
        }

        #[test]
        fn bytes_survive_writing_within_half_a_step(bytes in 0_u64..9_007_199_254_740_992) {
            let back = parse_memory(&format_bytes(bytes)).unwrap();
            let mut step = 0.1;
            while step * 10.0 * 1023.95 <= bytes as f64 {
                step *= 1024.0;
            }
            prop_assert!(back.abs_diff(bytes) as f64 <= step / 2.0 + 1.0, "{bytes} became {back}");
        }

        #[test]
        fn raw_numbers_are_taken_as_they_are(number in 0_u64..9_000_000_000_000) {
            let text = number.to_string();
            prop_assert_eq!(parse_duration(&text), Some(number));
            prop_assert_eq!(parse_memory(&text), Some(number));
            prop_assert_eq!(parse_date_in(&text, &TimeZone::UTC), Some(number as i64));
        }
    }
}
