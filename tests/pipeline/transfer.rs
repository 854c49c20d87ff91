//! A transfer with the real engine: every classifier on the demo pair, and a fitted one on a query alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::place::{Place, demo, embedding, trace};

fn beside_the_demo(name: &str) -> String {
    demo().with_file_name(name).to_str().unwrap().to_owned()
}

/// A transfer of the demo pair.
fn words(extra: &[&str]) -> Vec<String> {
    let (reference, query) =
        (beside_the_demo("pbmc_reference_500.h5ad"), beside_the_demo("pbmc_query_200.h5ad"));
    let mut words = ["transfer", "--method", "pca", "--reference", &reference, "--query", &query]
        .map(str::to_owned)
        .to_vec();
    words.extend(extra.iter().map(|&word| word.to_owned()));
    words
}

/// The status of each task of the newest run, by process.
fn statuses(place: &Place) -> BTreeMap<String, String> {
    let rows = trace(&place.newest().join("trace.txt"));
    rows.iter().map(|row| (row["process"].clone(), row["status"].clone())).collect()
}

fn outputs(document: &Value) -> Vec<PathBuf> {
    document["outputs"].as_array().unwrap().iter().map(|path| path.as_str().unwrap().into()).collect()
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
#[ignore = "engine: transfers the demo pair with every classifier"]
fn engine_transfer_with_every_classifier_and_a_fitted_one() {
    let place = Place::new();
    let mut labels = BTreeMap::new();
    for (number, classifier) in ["logreg", "prototype", "knn", "mlp"].into_iter().enumerate() {
        let mut extra = vec!["--classifier", classifier, "--keep-work"];
        if number > 0 {
            extra.push("--resume");
        }
        let document = place.json(&words(&extra));
        let predictions = format!("results/transfer/predictions/pca/{classifier}");
        let model = format!("results/transfer/models/pca/{classifier}/pbmc_reference_500");
        let expected = [
            "results/embeddings/pca/pbmc_reference_500.h5ad".to_owned(),
            "results/embeddings/pca/pbmc_query_200.h5ad".to_owned(),
            model.clone(),
            format!("{predictions}/pbmc_query_200_predicted_labels.tsv"),
            format!("{predictions}/pbmc_query_200_predicted_probs.tsv"),
            format!("{predictions}/pbmc_query_200_report.json"),
        ]
        .map(|path| place.join(path));
        assert_eq!(outputs(&document), expected);
        let accuracy = document["report"]["scores"]["accuracy"]["value"].as_f64().unwrap();
        assert!(accuracy > 0.6, "{classifier}: {accuracy}");
        let found = statuses(&place);
        let status = if number > 0 { "CACHED" } else { "COMPLETED" };
        assert_eq!((found["FIT"].as_str(), found["PROJECT"].as_str()), (status, status), "{found:?}");
        assert_eq!((found["CLASSIFY"].as_str(), found.len()), ("COMPLETED", 3));
        assert!(files(&place.join(&model)).contains(&"meta.json".to_owned()));
        assert_eq!(files(&place.join(&model).join("projection")), ["pca.json"]);
        let text = std::fs::read_to_string(&expected[3]).unwrap();
        assert!(text.starts_with("\tpredicted_label\n") && text.lines().count() == 201);
        labels.insert(classifier, (text, std::fs::read(&expected[4]).unwrap()));
    }
    assert_eq!(embedding(&place.join("results/embeddings/pca/pbmc_query_200.h5ad")).1.len(), 200 * 50);

    let query = beside_the_demo("pbmc_query_200.h5ad");
    for classifier in ["logreg", "knn"] {
        let model = place.join(format!("results/transfer/models/pca/{classifier}/pbmc_reference_500"));
        let predictions = place.join(format!("results/transfer/predictions/pca/{classifier}"));
        std::fs::remove_dir_all(&predictions).unwrap();
        let done = place.run(&["transfer", "--fitted", model.to_str().unwrap(), "--query", &query]);
        done.expect(0);
        assert!(done.stderr.contains("of 200 cells judged by cell_type: accuracy 0."), "{}", done.stderr);
        assert!(
            done.stderr.contains("taken for") && done.stderr.contains("genes of the reference matched"),
            "{}",
            done.stderr
        );
        assert_eq!(done.stdout.lines().count(), 4, "{}", done.stdout);
        let found = statuses(&place);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["CLASSIFY", "PROJECT"]);
        let read = |name: &str| {
            std::fs::read(predictions.join(format!("pbmc_query_200_predicted_{name}.tsv"))).unwrap()
        };
        assert_eq!(read("labels"), labels[classifier].0.as_bytes(), "{classifier}");
        assert_eq!(read("probs"), labels[classifier].1, "{classifier}");
    }
}

#[test]
#[ignore = "engine: a query that shares no gene with the reference, one class, hostile names"]
fn engine_transfer_tells_what_is_wrong_with_its_input() {
    let place = Place::new();
    let reference = beside_the_demo("pbmc_reference_500.h5ad");
    // The file has gene names of its own: no counts of the reference's genes.
    let strange = crate::place::case("a06_csr_int32.h5ad");
    let line =
        ["transfer", "--method", "pca", "--reference", &reference, "--query", strange.to_str().unwrap()];
    let done = place.run(&line);
    done.expect(3);
    assert!(done.error().contains("too few to project its cells"), "{}", done.stderr);

    let folder = place.join("it's a [dir] $x");
    std::fs::create_dir(&folder).unwrap();
    let (mine, other) = (folder.join("x.h5ad"), place.join("x.h5ad"));
    std::fs::copy(beside_the_demo("pbmc_query_200.h5ad"), &mine).unwrap();
    std::fs::copy(&reference, &other).unwrap();
    let (mine, other) = (mine.to_str().unwrap().to_owned(), other.to_str().unwrap().to_owned());
    let outdir = place.join("out it's [1]");
    let line = ["transfer", "--method", "pca", "--reference", &other, "--query", &mine, "--outdir"];
    let mut line: Vec<&str> = line.to_vec();
    line.extend([outdir.to_str().unwrap(), "--classifier", "prototype"]);
    place.run(&line).expect(0);
    let model = outdir.join("transfer/models/pca/prototype/x");
    let done =
        place.run(&["transfer", "--fitted", model.to_str().unwrap(), "--query", &mine, "--outdir", "again"]);
    done.expect(0);
    let read = |path: PathBuf| std::fs::read(path).unwrap();
    assert_eq!(
        read(place.join("again/transfer/predictions/pca/prototype/x_predicted_probs.tsv")),
        read(outdir.join("transfer/predictions/pca/prototype/x_query_predicted_probs.tsv"))
    );
}

#[test]
#[ignore = "engine: transfers with a method that embeds reference and query side by side"]
fn engine_transfer_embeds_side_by_side_what_is_not_fitted() {
    let place = Place::new();
    // A method of the user's own that says it fits nothing: the kernel behind it does, so accuracy means nothing here.
    let own =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/methods/pca.toml"));
    let own = own.unwrap().replace("name = \"pca\"\ndescription", "name = \"mine\"\ndescription");
    place.run(&["init", "."]).expect(0);
    place.write("methods/mine.toml", &own.replace("fits_input = true\n", ""));
    let mut line = words(&["--classifier", "prototype"]);
    line[2] = "mine".to_owned();
    let document = place.json(&line);
    assert_eq!(outputs(&document).len(), 6);
    let names = || {
        let rows = trace(&place.newest().join("trace.txt"));
        let mut names: Vec<String> = rows.iter().map(|row| row["name"].clone()).collect();
        names.sort();
        names
    };
    assert_eq!(
        names(),
        ["CLASSIFY (pbmc_query_200)", "EMBED (pbmc_query_200)", "EMBED (pbmc_reference_500)"]
    );
    let model = place.join("results/transfer/models/mine/prototype/pbmc_reference_500");
    assert_eq!(files(&model), ["meta.json", "prototypes.npy"]);
    let query = beside_the_demo("pbmc_query_200.h5ad");
    let again = place.json(&["transfer", "--fitted", model.to_str().unwrap(), "--query", &query]);
    assert_eq!(names(), ["CLASSIFY (pbmc_query_200)", "EMBED (pbmc_query_200)"]);
    assert_eq!(again["report"], document["report"]);
}

#[test]
#[ignore = "engine: transfers the demo pair, and again when a byte of the model has changed"]
fn engine_transfer_that_is_done_is_not_done_again() {
    let place = Place::new();
    let line = words(&["--classifier", "prototype", "--resume"]);
    let first = place.json(&line[..line.len() - 1]);
    let run = place.newest();
    for part in ["work", "outputs", ".nextflow/cache"] {
        assert!(!run.join(part).exists(), "{part} is of no use any more");
    }
    let again = place.json(&line);
    assert_eq!((&again["computed"], &again["outputs"]), (&Value::Bool(false), &first["outputs"]));
    assert_eq!((&again["report"], &again["run"]), (&first["report"], &first["run"]));
    assert_eq!(place.runs().len(), 1);

    let model = place.join("results/transfer/models/pca/prototype/pbmc_reference_500");
    let prototypes = model.join("prototypes.npy");
    let whole = std::fs::read(&prototypes).unwrap();
    let mut changed = whole.clone();
    *changed.last_mut().unwrap() ^= 1;
    std::fs::write(&prototypes, changed).unwrap();
    let done = place.run(&line);
    done.expect(0);
    let words = format!("its result {} has changed: all is done from the start", model.display());
    assert!(done.stderr.contains(&words), "{}", done.stderr);
    assert!(statuses(&place).values().all(|status| status == "COMPLETED"));
    assert_eq!(std::fs::read(&prototypes).unwrap(), whole);
    assert_eq!(place.json(&line)["run"], place.newest().to_str().unwrap());
}
