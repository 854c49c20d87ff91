//! What the runners make of the demo data.

use crate::place::{Place, demo, embedding};
use crate::world::{MODELS, python, run, weights, workspace};

#[test]
#[ignore = "models: every runner against its model in plain steps, and with another batch size"]
fn models_embed_as_their_model_does_cell_by_cell() {
    let place = workspace();
    let data = demo();
    let data = data.to_str().unwrap();
    for (method, model) in MODELS {
        let mut found = Vec::new();
        for (folder, size) in [("one", "1"), ("auto", "auto")] {
            let line = ["embed", "--method", method, "--data", data, "--model", model, "--batch-size", size];
            run(&place, &[&line[..], &["--outdir", folder]].concat()).expect(0);
            let result = place.join(format!("{folder}/embeddings/{method}/pbmc_700.h5ad"));
            found.push(embedding(&result).1);
        }
        let one = place.join(format!("one/embeddings/{method}/pbmc_700.h5ad"));
        let words = [method, data, weights(), one.to_str().unwrap(), model];
        let difference: f64 = python("judge.py", &words).trim().parse().unwrap();
        assert!(difference < 2e-5, "{method} {model}: {difference}");
        let largest = |other: &[f64]| {
            found[0].iter().zip(other).map(|(one, other)| (one - other).abs()).fold(0.0, f64::max)
        };
        assert!(largest(&found[1]) < 2e-5, "{method} depends on its batches");
        let (asked, usual) = match method {
            "c2s" => (None, 8),
            "scfoundation" => (Some(8), 8),
            "scimilarity" => (None, 2048),
            "scvi" => (None, 1024),
            _ => (None, 64),
        };
        assert_usage(&place, method, asked, usual);
    }
}

#[test]
#[ignore = "models: the official scbert embeds cells drawn at random in place of those that are asked for"]
fn models_give_each_cell_its_own_row() {
    let place = workspace();
    let data = demo().with_file_name("pbmc_query_200.h5ad").display().to_string();
    let reversed = place.join("reversed.h5ad").display().to_string();
    python("variants.py", &["reversed", &data, &reversed]);
    for file in [&data, &reversed] {
        run(&place, &["embed", "--method", "scbert", "--data", file]).expect(0);
    }
    let rows = |name: &str| embedding(&place.join(format!("results/embeddings/scbert/{name}.h5ad")));
    let (dimensions, forward) = rows("pbmc_query_200");
    let backward = rows("reversed").1;
    let pairs = forward.chunks(dimensions).zip(backward.rchunks(dimensions));
    let largest = pairs
        .flat_map(|(one, other)| one.iter().zip(other).map(|(one, other)| (one - other).abs()))
        .fold(0.0, f64::max);
    assert!(forward.len() == 200 * dimensions && largest < 2e-5, "{largest}");
}

/// The cost of the newest run knows what only the runner can have told; `asked` is the batch size of a method that has no option
/// for it, `usual` that where there is no GPU to try on.
fn assert_usage(place: &Place, method: &str, asked: Option<u32>, usual: u32) {
    let cost = place.json(&["cost"]);
    let task = &cost["tasks"][0];
    assert_eq!((&task["cells"], &task["genes"]), (&700.into(), &765.into()), "{method}");
    assert_eq!(
        (&task["batch_size_asked"], &task["batch_size_used"]),
        (&asked.into(), &usual.into()),
        "{method}"
    );
    assert_eq!((&task["halvings"], &task["device"]), (&0.into(), &"cpu".into()), "{method}");
}

#[test]
#[ignore = "models: published weights of a sentence model"]
fn models_embed_with_published_weights() {
    let place = workspace();
    let data = demo().with_file_name("pbmc_query_200.h5ad");
    let data = data.to_str().unwrap();
    let done = run(&place, &["embed", "--method", "cellama", "--data", data]);
    done.expect(0);
    let result = place.join("results/embeddings/cellama/pbmc_query_200.h5ad");
    let words = ["cellama", data, weights(), result.to_str().unwrap(), "all-MiniLM-L6-v2"];
    let difference: f64 = python("judge.py", &words).trim().parse().unwrap();
    assert!(difference < 2e-5, "{difference}");
    assert_eq!(embedding(&result).0, 384);
}

#[test]
#[ignore = "models: labels a query by the embedding of a model"]
fn models_transfer_labels() {
    let place = workspace();
    let demo = demo();
    let file = |name: &str| demo.with_file_name(name).display().to_string();
    let (reference, query) = (file("pbmc_reference_500.h5ad"), file("pbmc_query_200.h5ad"));
    let line = ["transfer", "--method", "geneformer", "--reference", &reference, "--query", &query];
    run(&place, &line).expect(0);
    let labels =
        place.join("results/transfer/predictions/geneformer/logreg/pbmc_query_200_predicted_labels.tsv");
    assert_eq!(std::fs::read_to_string(labels).unwrap().lines().count(), 201);
}
