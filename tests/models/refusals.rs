//! Data and weights that a model cannot work with.

use crate::place::demo;
use crate::world::{python, run, weights, workspace};

#[test]
#[ignore = "models: data that no model can take"]
fn models_refuse_what_they_cannot_embed() {
    let place = workspace();
    let made = |kind: &str| {
        let path = place.join(format!("{kind}.h5ad")).display().to_string();
        python("variants.py", &[kind, demo().to_str().unwrap(), &path]);
        path
    };
    for (kind, words) in [
        ("unknown", "only 0 of 765 genes of unknown.h5ad are known to the model"),
        ("negative", "holds values that are no counts"),
    ] {
        let done = run(&place, &["embed", "--method", "geneformer", "--data", &made(kind)]);
        done.expect(3);
        assert!(done.error().contains(words), "{}", done.stderr);
    }
}

#[test]
#[ignore = "models: genes by other names, cells without any"]
fn models_find_genes_by_any_column_and_declare_empty_cells() {
    let place = workspace();
    let path = place.join("versioned.h5ad").display().to_string();
    python("variants.py", &["versioned", demo().to_str().unwrap(), &path, weights()]);
    let done = run(&place, &["embed", "--method", "geneformer", "--data", &path]);
    done.expect(0);
    assert!(done.stderr.contains("2 of 700 cells have no gene that the model knows"), "{}", done.stderr);
    let result = place.join("results/embeddings/geneformer/versioned.h5ad");
    let difference =
        python("variants.py", &["compare", demo().to_str().unwrap(), result.to_str().unwrap(), weights()]);
    assert!(difference.trim().parse::<f64>().unwrap() < 2e-5, "{difference}");
}

#[test]
#[ignore = "models: a cell with more genes than a language model reads"]
fn models_tell_which_genes_they_do_not_read() {
    let place = workspace();
    let data = demo().with_file_name("pbmc_query_200.h5ad").display().to_string();
    let line = ["embed", "--method", "c2s", "--data", &data, "--n_genes"];
    let words = "sentences of 300 genes are longer than the 512 tokens that the model reads";
    let done = run(&place, &[&line[..], &["300", "--outdir", "long"]].concat());
    done.expect(0);
    assert!(done.stderr.contains(words), "{}", done.stderr);
    let done = run(&place, &[&line[..], &["9", "--outdir", "short"]].concat());
    done.expect(0);
    assert!(!done.stderr.contains("longer than"), "{}", done.stderr);
}

#[test]
#[ignore = "models: weights that are missing, or of another model"]
fn models_refuse_weights_that_are_not_theirs() {
    let place = workspace();
    let data = demo();
    let data = data.to_str().unwrap();
    let bare = place.run(&["embed", "--method", "sccello", "--data", data]);
    bare.expect(4);
    assert!(bare.error().contains("weights of sccello are missing: "), "{}", bare.stderr);
    assert!(!place.join("runs/embed").exists());
    // Cut short, as by a download that broke off: the genes' order is still found in the folder of the method.
    let whole = std::fs::read(format!("{}/scBERT/panglao_pretrain.pth", weights())).unwrap();
    let cut = place.join("cut.pth");
    std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let done =
        run(&place, &["embed", "--method", "scbert", "--data", data, "--model", cut.to_str().unwrap()]);
    done.expect(3);
    assert!(done.error().contains("cut.pth is not what this model needs"), "{}", done.stderr);
    // A model of the first version with the tokens of the second would give plausible nonsense.
    let other = format!("{}/LangCell/ckpt/cell_bert", weights());
    let done = run(&place, &["embed", "--method", "geneformer", "--data", data, "--model", &other]);
    done.expect(3);
    assert!(done.error().contains("no token dictionary in "), "{}", done.stderr);
}

#[test]
#[ignore = "models: genes by older names, and cells with more genes and counts than CellFM reads"]
fn models_give_each_column_the_gene_of_its_own_name() {
    let place = workspace();
    for kind in ["renamed", "wide"] {
        let path = place.join(format!("{kind}.h5ad")).display().to_string();
        python("variants.py", &[kind, demo().to_str().unwrap(), &path]);
        run(&place, &["embed", "--method", "cellfm", "--data", &path]).expect(0);
        let result = place.join(format!("results/embeddings/cellfm/{kind}.h5ad"));
        let words = ["cellfm", &path, weights(), result.to_str().unwrap(), "CellFM_80M_weight.ckpt"];
        let difference: f64 = python("judge.py", &words).trim().parse().unwrap();
        assert!(difference < 2e-5, "{kind}: {difference}");
    }
}
