//! The note that names the labels a metric left out.

/// Names written out; of more, only the number is said.
const NAMED: usize = 5;

/// Says which labels were left out, and why: `2 labels left out (only one batch): B cell, T cell`.
///
/// `None` where none was left out.
pub(super) fn omission<T: AsRef<str>>(names: &[T], why: &str) -> Option<String> {
    let plural = match names.len() {
        0 => return None,
        1 => "",
        _ => "s",
    };
    let named: Vec<&str> = names.iter().take(NAMED).map(AsRef::as_ref).collect();
    let mut note = format!("{} label{plural} left out ({why}): {}", names.len(), named.join(", "));
    if names.len() > NAMED {
        note.push_str(&format!(" and {} more", names.len() - NAMED));
    }
    Some(note)
}

#[cfg(test)]
mod tests {
    use super::omission;

    #[test]
    fn five_are_named_and_the_others_counted() {
        assert_eq!(omission::<&str>(&[], "only one batch"), None);
        assert_eq!(omission(&["A"], "only one batch").unwrap(), "1 label left out (only one batch): A");
        let many = ["a", "b", "c", "d", "e", "f", "g"];
        assert_eq!(omission(&many[..5], "small").unwrap(), "5 labels left out (small): a, b, c, d, e");
        assert_eq!(omission(&many, "small").unwrap(), "7 labels left out (small): a, b, c, d, e and 2 more");
    }
}
