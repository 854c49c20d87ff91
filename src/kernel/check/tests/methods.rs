//! What single methods need, on profiles that state it.

use super::*;
use crate::method::Profile;

fn profile(category: &str, genes: &str, input: &str, embed: &str) -> Profile {
    let text = format!(
        "name = \"model\"\ndescription = \"A model\"\ncategory = \"{category}\"\ntasks = [\"embed\", \"transfer\"]\n\
         gpu = true\ncost_class = 2\n[genes]\n{genes}\n[input]\ncounts = true\n{input}\n\
         [runner]\nkind = \"python\"\nentry = \"model.py\"\n[embed]\n{embed}\n"
    );
    toml::from_str(&text).unwrap()
}

const HUMAN_SYMBOLS: &str = "ids = \"symbols\"\nspecies = [\"human\"]";
const HUMAN_ENSEMBL: &str = "ids = \"ensembl\"\nspecies = [\"human\"]";

fn human_symbols() -> Profile {
    profile("zero-shot", HUMAN_SYMBOLS, "", "")
}

fn for_method(draft: &Draft, profile: &Profile) -> Report {
    check(&draft.open().data, &Request { profile: Some(profile), ..Request::default() }).unwrap()
}

fn ensembl_names(count: usize, suffix: &str) -> Vec<String> {
    (0..count).map(|gene| format!("ENSG{:011}{suffix}", gene * 37 + 14)).collect()
}

#[test]
fn e01_mouse_symbols_do_not_pass_for_a_human_model() {
    let profile = human_symbols();
    let report = report("e01_mouse_symbols.h5ad", &Request { profile: Some(&profile), ..Request::default() });
    assert_eq!(report.verdict, Verdict::Fail);
    let said = message(&report, "species");
    assert!(
        said.starts_with(
            "looks like mouse symbols: 0 of 50 genes are written as human symbols are, 50 of 50 when case is ignored"
        ),
        "{said}"
    );
    let both = self::profile("zero-shot", "ids = \"symbols\"\nspecies = [\"human\", \"mouse\"]", "", "");
    let report =
        self::report("e01_mouse_symbols.h5ad", &Request { profile: Some(&both), ..Request::default() });
    assert_eq!(level(&report, "species"), None, "{report}");
    assert_eq!(level(&plain("e01_mouse_symbols.h5ad"), "species"), Some(Level::Info));
}

#[test]
fn e03_fails_a_model_and_warns_a_method_that_takes_any_name() {
    let of = |profile: &Profile| {
        let request = Request { profile: Some(profile), ..Request::default() };
        level(&report("e03_integer_gene_index.h5ad", &request), "gene-index-is-numbers")
    };
    assert_eq!(of(&human_symbols()), Some(Level::Fail));
    assert_eq!(of(&profile("reference", "ids = \"any\"", "", "")), Some(Level::Warn));
}

#[test]
fn the_right_identifiers_in_a_column_soften_the_wrong_index() {
    let mut draft = Draft::new(60, 10);
    let profile = profile("zero-shot", HUMAN_ENSEMBL, "", "");
    let report = for_method(&draft, &profile);
    assert_eq!(level(&report, "other-gene-ids"), Some(Level::Fail), "{report}");
    draft.var.push(("biotype", vec!["protein_coding".into(); 10]));
    draft.var.push(("gene_ids", ensembl_names(10, "")));
    let report = for_method(&draft, &profile);
    assert_eq!(level(&report, "other-gene-ids"), Some(Level::Warn), "{report}");
    assert!(
        message(&report, "other-gene-ids").ends_with("; var['gene_ids'] looks like Ensembl ids"),
        "{report}"
    );
}

#[test]
fn versions_and_foreign_species_of_ensembl_ids_are_told() {
    let mut draft = Draft::new(60, 10);
    draft.genes = ensembl_names(10, ".3");
    let profile = profile("zero-shot", HUMAN_ENSEMBL, "", "");
    let report = for_method(&draft, &profile);
    assert_eq!(level(&report, "gene-ids"), Some(Level::Ok), "{report}");
    assert!(message(&report, "versioned-gene-ids").starts_with("10 of 10 "), "{report}");
    draft.genes.iter_mut().for_each(|name| *name = name.replace("ENSG", "ENSDARG"));
    let report = for_method(&draft, &profile);
    assert_eq!(
        message(&report, "species"),
        "genes are of another species (10 of 10 ids); model knows human genes only"
    );
}

#[test]
fn symbols_of_mixed_spelling_fail_below_the_stated_share() {
    let mut draft = Draft::new(60, 10);
    for gene in 0..6 {
        draft.genes[gene] = format!("Hox{gene}a");
    }
    let stated = format!("{HUMAN_SYMBOLS}\nminimum_matched = 0.5");
    let report = for_method(&draft, &profile("zero-shot", &stated, "", ""));
    assert_eq!(level(&report, "species"), Some(Level::Fail), "{report}");
    let report = for_method(&draft, &human_symbols());
    assert_eq!(level(&report, "species"), Some(Level::Warn), "{report}");
}

#[test]
fn a_small_panel_is_told_where_a_vocabulary_is_known() {
    let stated = format!("{HUMAN_SYMBOLS}\nvocabulary = 60697");
    let report = for_method(&Draft::new(60, 10), &profile("zero-shot", &stated, "", ""));
    assert!(message(&report, "few-genes").starts_with("10 genes in the file; model knows 60697"), "{report}");
}

#[test]
fn one_cell_is_enough_for_a_model_only() {
    let draft = Draft::new(1, 10);
    assert_eq!(level(&for_method(&draft, &human_symbols()), "few-cells"), Some(Level::Warn));
    let fitted = profile("integration", "ids = \"any\"", "", "batch_key = true");
    assert_eq!(level(&for_method(&draft, &fitted), "few-cells"), Some(Level::Fail));
}

#[test]
fn integration_wants_batches_that_are_large_enough() {
    let integration = profile("integration", "ids = \"any\"", "minimum_batch_cells = 31", "batch_key = true");
    let draft = Draft::new(60, 10);
    assert_eq!(level(&for_method(&draft, &integration), "no-batches"), Some(Level::Warn));
    assert_eq!(level(&for_method(&draft, &human_symbols()), "no-batches"), Some(Level::Info));
    let one = Draft::new(60, 10).obs("batch_id", &["b0"]);
    assert_eq!(level(&for_method(&one, &integration), "one-batch"), Some(Level::Warn));
    let two = Draft::new(60, 10).obs("batch_id", &["b0", "b0", "b1"]);
    let report = for_method(&two, &integration);
    assert_eq!(message(&report, "small-batches"), "1 batch of fewer than 31 cells: b1 20");
    assert_eq!(report.verdict, Verdict::Fail);
}

#[test]
fn annotation_that_a_method_needs() {
    let spatial = profile("zero-shot", HUMAN_SYMBOLS, "obs = [\"slide\"]\nobsm = [\"spatial\"]", "");
    let mut draft = Draft::new(60, 10);
    draft.obsm.push("X_pca");
    let report = for_method(&draft, &spatial);
    assert_eq!(report.findings.iter().filter(|finding| finding.code == "missing-annotation").count(), 2);
    draft.obsm.push("spatial");
    let report = for_method(&draft.obs("slide", &["s1"]), &spatial);
    assert_eq!(level(&report, "missing-annotation"), None, "{report}");
    assert_eq!(report.verdict, Verdict::Pass, "{report}");
}
