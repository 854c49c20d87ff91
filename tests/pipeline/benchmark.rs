//! Scores through the real engine: several methods, a file that cannot be scored, the same bytes again.

use std::path::Path;

use crate::place::{Place, case};

const KINDS: [&str; 2] = ["bio_conservation", "batch_mixing"];

/// Embeds two data sets, and lays the four blobs out as a second method.
fn place() -> Place {
    let place = Place::new();
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo");
    for data in ["pbmc_700.h5ad", "pbmc_query_200.h5ad"] {
        let data = demo.join(data);
        place.run(&["embed", "--method", "pca", "--data", data.to_str().unwrap()]).expect(0);
    }
    std::fs::create_dir_all(place.join("results/embeddings/first_pcs")).unwrap();
    for name in ["pbmc_700.h5ad", "pbmc_query_200.h5ad"] {
        let from = place.join("results/embeddings/pca").join(name);
        std::fs::copy(from, place.join("results/embeddings/first_pcs").join(name)).unwrap();
    }
    place
}

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(str::to_owned).collect()
}

#[test]
#[ignore = "engine: embeds and scores the demo data"]
fn engine_methods_are_scored_ranked_and_drawn() {
    let place = place();
    let arguments = ["benchmark", "--embedding", "results/embeddings/pca", "results/embeddings/first_pcs"];
    let batches = ["--batch-key", "batch_id", "--plot"];
    let done = place.run(&[&arguments[..], &batches].concat());
    done.expect(0);
    let folder = place.join("results/benchmark");
    assert!(done.stdout.starts_with(folder.join("first_pcs+1_leiden_ranking.csv").to_str().unwrap()));
    for path in done.stdout.lines() {
        assert!(Path::new(path).is_file(), "{path}");
    }
    assert!(done.stderr.contains("overall"), "{}", done.stderr);

    let ranking = lines(&folder.join("first_pcs+1_leiden_ranking.csv"));
    assert!(
        ranking[1].starts_with("1,first_pcs,2,0.") && ranking[2].starts_with("1,pca,2,0."),
        "{ranking:?}"
    );
    let long = lines(&folder.join("pca_bio_conservation_leiden_metrics_long.csv"));
    assert_eq!(long[0], "sample_id,method,metric,value,note,metric_group,n_cells,n_dims,n_labels,n_batches");
    assert_eq!(long.len(), 1 + 2 * 9);
    assert!(long.iter().any(|line| line.starts_with("pbmc_700,pca,ASW,0.")), "{long:#?}");
    let wide = lines(&folder.join("pca_batch_mixing_leiden_metrics_wide.csv"));
    assert_eq!(wide[0], "sample_id,method,BRAS,CiLISI,iLISI,kBET");
    let clusters =
        lines(&folder.join("bio_conservation_leiden_predictions/pca/pbmc_query_200_leiden_labels.tsv"));
    assert_eq!(clusters[0], "sample_id\tmethod\tbarcode\ttrue_label\tleiden_label");
    assert!(clusters[1].starts_with("pbmc_query_200\tpca\tAAATTCGATGCACA-1\tDendritic\t"), "{}", clusters[1]);
    assert_eq!(clusters.len(), 201);
    assert!(
        std::fs::read_to_string(folder.join("first_pcs+1_leiden_scores.svg")).unwrap().starts_with("<svg")
    );
    let document: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("first_pcs+1_leiden_scores.json")).unwrap())
            .unwrap();
    for score in document["samples"][0]["scores"].as_array().unwrap() {
        assert!(score["seconds"].as_f64().unwrap() >= 0.0 && score["peak_rss_bytes"].as_u64().unwrap() > 0);
    }

    let tables = |place: &Place| {
        KINDS
            .map(|kind| {
                std::fs::read(place.join(format!("results/benchmark/pca_{kind}_leiden_metrics_long.csv")))
            })
            .map(Result::unwrap)
    };
    let first = tables(&place);
    let mut single = place.command(&[&arguments[..], &batches].concat());
    single.env("RAYON_NUM_THREADS", "1").output().unwrap();
    assert_eq!(tables(&place), first, "another run and one thread give the same bytes");
}

#[test]
#[ignore = "engine: scores one good and one bad embedding"]
fn engine_a_bad_embedding_does_not_stop_the_others() {
    let place = Place::new();
    let [good, bad] = ["b09_four_blobs.h5ad", "b07_nan_inf_embedding.h5ad"].map(case);
    let done = place.run(&[
        "benchmark",
        "--method",
        "blobs",
        "--embedding",
        good.to_str().unwrap(),
        bad.to_str().unwrap(),
    ]);
    assert_ne!(done.code, Some(0));
    assert!(done.error().contains("3 of 80 cells are not finite, first cell0005"), "{}", done.stderr);
    let long = lines(&place.join("results/benchmark/blobs_bio_conservation_leiden_metrics_long.csv"));
    assert!(long.iter().any(|line| line.starts_with("b09_four_blobs,blobs,NMI,1,")), "{long:#?}");
    assert_eq!(long.len(), 10);
}
