//! How numbers and names are written in findings.

/// `1 cell`, `2 cells`.
pub(super) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}{}", plural_ending(noun)) }
}

fn plural_ending(noun: &str) -> &'static str {
    if noun.ends_with("class") || noun.ends_with("batch") { "es" } else { "s" }
}

/// Whole numbers whole, others with two decimals, tiny ones as a power of ten.
pub(super) fn number(value: f64) -> String {
    if value.trunc() == value && value.abs() < 1e15 {
        format!("{value:.0}")
    } else if !value.is_finite() || (0.005..1e15).contains(&value.abs()) {
        format!("{value:.2}")
    } else {
        format!("{value:.2e}")
    }
}

/// A double-quoted string as Python and JSON write it.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The first `shown` of `items`, comma-separated, with how many more there are.
pub(super) fn listed(items: &[String], shown: usize) -> String {
    let mut text = items[..items.len().min(shown)].join(", ");
    if items.len() > shown {
        text.push_str(&format!(" and {} more", items.len() - shown));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_what_matters() {
        assert_eq!(number(3097.0), "3097");
        assert_eq!(number(7.5245), "7.52");
        assert_eq!(number(-1.1743), "-1.17");
        assert_eq!(number(0.0001), "1.00e-4");
        assert_eq!(number(1e300), "1.00e300");
        assert_eq!(number(f64::NAN), "NaN");
    }

    #[test]
    fn plurals_and_lists() {
        assert_eq!(counted(1, "class"), "1 class");
        assert_eq!(counted(2, "class"), "2 classes");
        assert_eq!(counted(0, "cell"), "0 cells");
        let items = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
        assert_eq!(listed(&items, 2), "a, b and 1 more");
        assert_eq!(listed(&items, 3), "a, b, c");
        assert_eq!(quoted("a\"b"), "\"a\\\"b\"");
    }
}
