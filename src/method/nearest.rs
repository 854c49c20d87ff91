//! "Did you mean": the known words nearest to one that is unknown.

use strsim::damerau_levenshtein;

/// At most this many suggestions.
const MOST: usize = 3;

/// A beginning of at least this many letters stands for what it may become.
const BEGINNING: usize = 3;

/// The candidates that a mistyped `word` may have meant: those with the fewest letters changed, dropped, added or
/// swapped, at most one in three; case, `-` and `_` do not count, and a word left unfinished is one mistake. Empty when
/// none is near.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let word = plain(word);
    let length = word.chars().count();
    let mut near: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter_map(|candidate| {
            let known = plain(candidate);
            let distance = damerau_levenshtein(&word, &known);
            if length >= BEGINNING && known.starts_with(&word) {
                return Some((distance.min(1), candidate));
            }
            (distance * 3 <= length.max(known.chars().count())).then_some((distance, candidate))
        })
        .collect();
    near.sort_by_key(|(distance, _)| *distance);
    let fewest = near.first().map_or(0, |(distance, _)| *distance);
    near.iter().take_while(|(distance, _)| *distance == fewest).take(MOST).map(|(_, name)| *name).collect()
}

fn plain(word: &str) -> String {
    word.chars().filter(|letter| !matches!(letter, '-' | '_' | ' ')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    const WORDS: [&str; 6] = ["scgpt", "scgpt_integrated", "seurat_cca", "seurat_rpca", "uce", "pca"];

    #[test]
    fn finds_swapped_missing_and_cased_letters() {
        assert_eq!(nearest("scgtp", WORDS), ["scgpt"]);
        assert_eq!(nearest("scGPT", WORDS), ["scgpt"]);
        assert_eq!(nearest("scgpt-integrated", WORDS), ["scgpt_integrated"]);
        assert_eq!(nearest("seurat_rcpa", WORDS), ["seurat_rpca"]);
    }

    #[test]
    fn completes_a_beginning() {
        assert_eq!(nearest("seurat", WORDS), ["seurat_cca", "seurat_rpca"]);
    }

    #[test]
    fn suggests_nothing_when_nothing_is_near() {
        assert!(nearest("transformer", WORDS).is_empty());
        assert!(nearest("", WORDS).is_empty());
    }
}
