//! What genes are called: identifiers of which kind and species, judged by spelling.
//!
//! The vocabularies of the models are not part of this program. Human symbols are written in capitals (but for the `orf`
//! of C1orf112), mouse and rat symbols with a capital and small letters (Cd3e), Ensembl names the species in its prefix.

use serde::Serialize;

use crate::method::Species;

/// A share of the names from which on the rest counts as exceptions: spike-ins, transgenes, clones.
const NEARLY_ALL: f64 = 0.9;

/// What most of the names are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NameKind {
    Symbols,
    /// Ensembl gene identifiers.
    Ensembl,
    /// Ensembl transcripts, proteins or exons.
    EnsemblOther,
    /// Symbols and Ensembl gene identifiers.
    Mixed,
    /// Symbols behind the name of a genome: `GRCh38_CD3E`.
    GenomePrefixed,
    /// Whole numbers: row numbers or Entrez identifiers.
    Numbers,
    /// One word with running numbers: `gene1`, `gene2`, `dim0`.
    Placeholders,
    /// None of these, or no names.
    #[default]
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spelling {
    HumanSymbol,
    /// `human`: whether it spells a human symbol once in capitals, as `Cd3e` and unlike `Gm12345`.
    MouseSymbol {
        human: bool,
    },
    OtherSymbol,
    EnsemblGene {
        species: Species,
        versioned: bool,
    },
    EnsemblOther,
    GenomePrefixed,
    Number,
    Other,
}

/// How many of a set of names are spelt in which way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct GeneNames {
    pub total: usize,
    pub human_symbols: usize,
    pub mouse_symbols: usize,
    pub other_symbols: usize,
    /// Symbols that are spelt like human ones once in capitals.
    pub human_in_capitals: usize,
    pub ensembl_human: usize,
    pub ensembl_mouse: usize,
    pub ensembl_species_other: usize,
    pub versioned: usize,
    pub ensembl_other: usize,
    pub genome_prefixed: usize,
    pub numbers: usize,
    /// All names are 0, 1, 2, … or 1, 2, 3, …
    pub row_numbers: bool,
    /// All names are one word with running numbers.
    pub placeholders: bool,
}

impl GeneNames {
    pub(super) fn of<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> GeneNames {
        let mut found = GeneNames { total: names.len(), ..GeneNames::default() };
        let mut series = Series::default();
        for name in names {
            series.add(name);
            found.add(spelling(name));
        }
        found.row_numbers = series.runs() && series.word.is_empty();
        found.placeholders = series.runs() && !series.word.is_empty() && found.ensembl() == 0;
        found
    }

    fn add(&mut self, spelling: Spelling) {
        match spelling {
            Spelling::HumanSymbol => {
                self.human_symbols += 1;
                self.human_in_capitals += 1;
            }
            Spelling::MouseSymbol { human } => {
                self.mouse_symbols += 1;
                self.human_in_capitals += usize::from(human);
            }
            Spelling::OtherSymbol => self.other_symbols += 1,
            Spelling::EnsemblGene { species, versioned } => {
                match species {
                    Species::Human => self.ensembl_human += 1,
                    Species::Mouse => self.ensembl_mouse += 1,
                    Species::Other => self.ensembl_species_other += 1,
                }
                self.versioned += usize::from(versioned);
            }
            Spelling::EnsemblOther => self.ensembl_other += 1,
            Spelling::GenomePrefixed => self.genome_prefixed += 1,
            Spelling::Number => self.numbers += 1,
            Spelling::Other => {}
        }
    }

    pub(super) fn symbols(&self) -> usize {
        self.human_symbols + self.mouse_symbols + self.other_symbols
    }

    /// Ensembl gene identifiers of any species.
    pub(super) fn ensembl(&self) -> usize {
        self.ensembl_human + self.ensembl_mouse + self.ensembl_species_other
    }

    fn nearly_all(&self, count: usize, of: usize) -> bool {
        of > 0 && count as f64 >= NEARLY_ALL * of as f64
    }

    pub(super) fn kind(&self) -> NameKind {
        let nearly_all = |count| self.nearly_all(count, self.total);
        if self.placeholders {
            NameKind::Placeholders
        } else if nearly_all(self.numbers) {
            NameKind::Numbers
        } else if nearly_all(self.ensembl()) {
            NameKind::Ensembl
        } else if nearly_all(self.ensembl_other) {
            NameKind::EnsemblOther
        } else if nearly_all(self.genome_prefixed) {
            NameKind::GenomePrefixed
        } else if nearly_all(self.symbols()) {
            NameKind::Symbols
        } else if nearly_all(self.symbols() + self.ensembl()) {
            NameKind::Mixed
        } else {
            NameKind::Unknown
        }
    }

    /// The species of nearly all names of the kinds that tell it.
    pub(super) fn species(&self) -> Option<Species> {
        let telling = match self.kind() {
            NameKind::Symbols | NameKind::Ensembl | NameKind::Mixed => self.symbols() + self.ensembl(),
            _ => return None,
        };
        if self.nearly_all(self.human_symbols + self.ensembl_human, telling) {
            Some(Species::Human)
        } else if self.nearly_all(self.mouse_symbols + self.ensembl_mouse, telling) {
            Some(Species::Mouse)
        } else if self.nearly_all(self.ensembl_species_other, telling) {
            Some(Species::Other)
        } else {
            None
        }
    }
}

/// Whether names are one word (or none) with running numbers from 0 or 1.
#[derive(Default)]
struct Series {
    word: String,
    first: Option<u64>,
    names: u64,
    broken: bool,
}

impl Series {
    fn add(&mut self, name: &str) {
        let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let (word, digits) = name.split_at(name.len() - digits);
        let number = digits.parse::<u64>().ok();
        if self.names == 0 {
            self.word = word.to_owned();
            self.first = number.filter(|&first| first <= 1);
        }
        let expected = self.first.map(|first| first + self.names);
        self.broken |= number.is_none() || number != expected || word != self.word;
        self.names += 1;
    }

    /// Fewer than three names in a row can be chance.
    fn runs(&self) -> bool {
        !self.broken && self.names >= 3
    }
}

fn spelling(name: &str) -> Spelling {
    if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()) {
        return Spelling::Number;
    }
    if has_genome_prefix(name) {
        return Spelling::GenomePrefixed;
    }
    ensembl(name).unwrap_or_else(|| symbol(name))
}

fn has_genome_prefix(name: &str) -> bool {
    const GENOMES: [&str; 9] =
        ["GRCh37", "GRCh38", "hg19", "hg38", "GRCm38", "GRCm39", "mm9", "mm10", "mm39"];
    name.split_once('_').is_some_and(|(word, rest)| GENOMES.contains(&word) && !rest.is_empty())
}

/// `ENS`, a species code (none for human, `MUS` for mouse), a letter for the feature, 11 digits, perhaps a version.
fn ensembl(name: &str) -> Option<Spelling> {
    let rest = name.strip_prefix("ENS")?;
    let digits_start = rest.find(|c: char| c.is_ascii_digit())?;
    let (letters, rest) = rest.split_at(digits_start);
    if letters.is_empty() || !letters.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    let (number, version) =
        rest.split_once('.').map_or((rest, None), |(number, version)| (number, Some(version)));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let version_is_sound = version.is_none_or(|version| is_number(version.trim_end_matches("_PAR_Y")));
    if number.len() != 11 || !is_number(number) || !version_is_sound {
        return None;
    }
    let (species, feature) = letters.split_at(letters.len() - 1);
    if feature != "G" {
        return Some(Spelling::EnsemblOther);
    }
    let species = match species {
        "" => Species::Human,
        "MUS" => Species::Mouse,
        _ => Species::Other,
    };
    Some(Spelling::EnsemblGene { species, versioned: version.is_some() })
}

fn symbol(name: &str) -> Spelling {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._/@() ".contains(c);
    let begins = name.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
    let has_letter = name.bytes().any(|byte| byte.is_ascii_alphabetic());
    if !begins || !has_letter || name.len() > 40 || !name.chars().all(allowed) {
        return Spelling::Other;
    }
    if is_human(name) {
        Spelling::HumanSymbol
    } else if is_mouse(name) {
        Spelling::MouseSymbol { human: !is_mouse_only(name) }
    } else {
        Spelling::OtherSymbol
    }
}

/// No small letter, but for `orf` between digits.
fn is_human(name: &str) -> bool {
    let shortened = name.replacen("orf", "", 1);
    let rest = if name.starts_with('C') && name.contains("orf") { &shortened } else { name };
    !rest.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// Begins with a capital and has small letters, no two capitals in a row; or a mitochondrial gene or a RIKEN clone.
fn is_mouse(name: &str) -> bool {
    let letters = name.as_bytes();
    let has_small = letters.iter().any(u8::is_ascii_lowercase);
    let capitals_in_a_row = letters.windows(2).any(|pair| pair.iter().all(u8::is_ascii_uppercase));
    (letters[0].is_ascii_uppercase() && has_small && !capitals_in_a_row)
        || name.starts_with("mt-")
        || name.ends_with("Rik")
}

/// Predicted genes and RIKEN clones have no human namesake.
fn is_mouse_only(name: &str) -> bool {
    let predicted = name
        .strip_prefix("Gm")
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()));
    predicted || name.ends_with("Rik")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> GeneNames {
        GeneNames::of(names.iter().copied())
    }

    #[test]
    fn spellings() {
        let human = Spelling::HumanSymbol;
        for name in ["ACTB", "C1orf112", "CXorf38", "HLA-DRB1", "MT-ND1", "RP11-34P13.7", "7SK", "A1BG"] {
            assert_eq!(spelling(name), human, "{name}");
        }
        for name in ["Actb", "Cd3e", "H2-Ab1", "mt-Nd1", "Tcrg-C1", "Gm12345", "1700001A01Rik"] {
            assert!(matches!(spelling(name), Spelling::MouseSymbol { .. }), "{name}");
        }
        assert_eq!(spelling("Gm12345"), Spelling::MouseSymbol { human: false });
        assert_eq!(spelling("Gmpr"), Spelling::MouseSymbol { human: true });
        assert_eq!(spelling("actb1"), Spelling::OtherSymbol);
        assert_eq!(spelling("GRCh38_CD3E"), Spelling::GenomePrefixed);
        assert_eq!(spelling("mm10___Cd3e"), Spelling::GenomePrefixed);
        for name in ["", "chr1:100-200", "-", "µg"] {
            assert_eq!(spelling(name), Spelling::Other, "{name}");
        }
    }

    #[test]
    fn ensembl_identifiers_tell_species_feature_and_version() {
        let gene = |species, versioned| Spelling::EnsemblGene { species, versioned };
        assert_eq!(spelling("ENSG00000141510"), gene(Species::Human, false));
        assert_eq!(spelling("ENSG00000141510.18"), gene(Species::Human, true));
        assert_eq!(spelling("ENSG00000182378.14_PAR_Y"), gene(Species::Human, true));
        assert_eq!(spelling("ENSMUSG00000059552"), gene(Species::Mouse, false));
        assert_eq!(spelling("ENSDARG00000035559.1"), gene(Species::Other, true));
        assert_eq!(spelling("ENST00000269305.9"), Spelling::EnsemblOther);
        assert_eq!(spelling("ENSMUSP00000104298"), Spelling::EnsemblOther);
        assert_eq!(spelling("ENSA"), Spelling::HumanSymbol);
        assert_eq!(spelling("ENSG0000014151"), Spelling::HumanSymbol);
    }

    #[test]
    fn kinds_follow_nearly_all_names() {
        assert_eq!(names(&["ACTB", "GAPDH", "CD3E"]).kind(), NameKind::Symbols);
        assert_eq!(names(&["ENSG00000141510", "ENSG00000141511"]).kind(), NameKind::Ensembl);
        assert_eq!(names(&["ACTB", "ENSG00000141510"]).kind(), NameKind::Mixed);
        assert_eq!(names(&["ACTB", "ENSG00000141510"]).species(), Some(Species::Human));
        assert_eq!(names(&["ACTB", "Cd3e"]).species(), None);
        assert_eq!(names(&["ENST00000269305", "ENST00000269306"]).kind(), NameKind::EnsemblOther);
        assert_eq!(names(&["chr1:1-2", "chr1:3-4"]).kind(), NameKind::Unknown);
        assert_eq!(names(&[]).kind(), NameKind::Unknown);
    }

    #[test]
    fn numbers_and_placeholders() {
        let rows = names(&["0", "1", "2"]);
        assert_eq!((rows.kind(), rows.row_numbers), (NameKind::Numbers, true));
        let entrez = names(&["7157", "672", "675"]);
        assert_eq!((entrez.kind(), entrez.row_numbers), (NameKind::Numbers, false));
        assert_eq!(names(&["dim0", "dim1", "dim2"]).kind(), NameKind::Placeholders);
        assert_eq!(names(&["GENE1", "GENE2", "GENE3"]).kind(), NameKind::Placeholders);
        assert_eq!(names(&["gene001", "gene002", "gene003"]).kind(), NameKind::Placeholders);
        assert_eq!(names(&["HOXA1", "HOXA2", "HOXA4"]).kind(), NameKind::Symbols);
        assert_eq!(names(&["18446744073709551616", "1", "2"]).kind(), NameKind::Numbers);
    }

    #[test]
    fn capitals_turn_mouse_symbols_into_human_ones() {
        let mouse = names(&["Actb", "Cd3e", "Gm123", "Malat1"]);
        assert_eq!((mouse.human_symbols, mouse.mouse_symbols, mouse.human_in_capitals), (0, 4, 3));
        assert_eq!(mouse.species(), Some(Species::Mouse));
    }
}
