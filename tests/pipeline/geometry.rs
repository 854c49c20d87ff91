//! Geometry through the real engine: an embedding of the demo data, several, one that fails.

use std::path::Path;

use serde_json::Value;

use crate::place::{Place, case, demo, trace};

fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(str::to_owned).collect()
}

#[test]
#[ignore = "engine: embeds and probes the demo data"]
fn engine_geometry_of_the_demo() {
    let place = Place::new();
    let data = demo();
    let data = data.to_str().unwrap();
    place.run(&["embed", "--method", "pca", "--data", data]).expect(0);
    let arguments = ["geometry", "--embedding", "results/embeddings/pca/pbmc_700.h5ad", "--data", data];
    // The batches of the demo have at most 100 cells; the cell cycle's phases have more.
    let arguments = [&arguments[..], &["--batch-key", "phase"]].concat();
    let done = place.run(&arguments);
    done.expect(0);
    let folder = place.join("results/geometry/pca");
    let files = ["pbmc_700.csv", "pbmc_700.json", "pca_geometry.csv"].map(|name| folder.join(name));
    let shown: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(shown, files.each_ref().map(|file| file.to_str().unwrap()));
    assert_eq!(lines(&files[0]), lines(&files[2]), "one embedding: its row is the table");
    let record: Value = serde_json::from_slice(&std::fs::read(&files[1]).unwrap()).unwrap();
    let row = &record["row"];
    assert_eq!((row["n_cells_used"].as_u64(), row["embedding_dim"].as_u64()), (Some(700), Some(50)));
    assert!(row["rnx_mean"].as_f64().unwrap() > 0.2, "{record:#}");
    assert!(row["pr"].as_f64().unwrap() > 1.0 && row["aniso_spec"].as_f64().unwrap() > 0.0);
    for phase in record["phases"].as_array().unwrap() {
        assert!(phase["seconds"].as_f64().unwrap() >= 0.0 && phase["peak_rss_bytes"].as_u64().unwrap() > 0);
    }
    let first = std::fs::read(&files[0]).unwrap();
    place.command(&arguments).arg("--keep-work").env("RAYON_NUM_THREADS", "1").output().unwrap();
    assert_eq!(std::fs::read(&files[0]).unwrap(), first, "another run and one thread give the same bytes");
    // Else there would be nothing to do.
    std::fs::remove_file(&files[2]).unwrap();
    place.run(&[&arguments[..], &["--resume"]].concat()).expect(0);
    assert_eq!(lines(&files[2]), lines(&files[0]));
    let rows = trace(&place.newest().join("trace.txt"));
    assert!(rows.len() == 2 && rows.iter().all(|row| row["status"] == "CACHED"), "{rows:?}");
}

#[test]
#[ignore = "engine: probes one good and one bad embedding"]
fn engine_a_bad_embedding_does_not_stop_the_others() {
    let place = Place::new();
    std::fs::create_dir_all(place.join("embeddings")).unwrap();
    std::fs::create_dir_all(place.join("data")).unwrap();
    for (from, to) in [
        ("b12_embedding_147_shuffled.h5ad", "embeddings/good.h5ad"),
        ("b12_data.h5ad", "data/good.h5ad"),
        ("b07_nan_inf_embedding.h5ad", "embeddings/bad.h5ad"),
        ("b07_nan_inf_embedding.h5ad", "data/bad.h5ad"),
    ] {
        std::fs::copy(case(from), place.join(to)).unwrap();
    }
    let done = place.run(&["geometry", "--method", "model", "--embedding", "embeddings", "--data", "data"]);
    assert_ne!(done.code, Some(0));
    assert!(done.error().contains("3 of 80 cells are not finite, first cell0005"), "{}", done.stderr);
    let table = lines(&place.join("results/geometry/model/model_geometry.csv"));
    assert_eq!(table.len(), 2);
    assert!(table[1].starts_with("good,model,") && table[1].contains(",150,147,10,"), "{table:?}");
}

#[test]
fn an_embedding_without_its_data_is_refused_before_anything_runs() {
    let place = Place::new();
    std::fs::create_dir_all(place.join("embeddings")).unwrap();
    for name in ["b12_data.h5ad", "other.h5ad"] {
        std::fs::copy(case("b12_embedding_147_shuffled.h5ad"), place.join("embeddings").join(name)).unwrap();
    }
    let data = case("b12_data.h5ad");
    let done = place.run(&["geometry", "--embedding", "embeddings", "--data", data.to_str().unwrap()]);
    done.expect(3);
    assert!(done.error().contains("no file after --data is called other.h5ad"), "{}", done.stderr);
    assert!(done.error().contains(data.to_str().unwrap()), "{}", done.stderr);
}
