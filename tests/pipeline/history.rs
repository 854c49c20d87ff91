//! What a finished run leaves in the history.

use scfoundry::history;

use crate::place::Place;

#[test]
#[ignore = "engine: runs real Nextflow"]
fn engine_a_finished_run_is_in_the_history_without_names_of_data() {
    let place = Place::new();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/cases/a06_csr_int32.h5ad");
    let line = ["embed", "--method", "pca", "--data", data, "--pca_n_comps", "10", "--keep-work"];
    place.run(&line).expect(0);
    let directory = place.join("history");
    let found = history::read(&directory).unwrap();
    assert_eq!((found.entries.len(), found.unreadable.len()), (1, 0));
    let entry = &found.entries[0];
    assert_eq!(entry.inputs[0].cells, 80);
    assert!(entry.inputs[0].stored.unwrap() > 0);
    assert_eq!(entry.options["pca_n_comps"], 10);
    let step = &entry.steps[0];
    assert_eq!((step.process.as_str(), step.input), ("EMBED", Some(0)));
    assert!(step.peak_rss_bytes.unwrap() > 0 && entry.wall_seconds.unwrap() > step.seconds.unwrap());
    let text =
        std::fs::read_to_string(std::fs::read_dir(&directory).unwrap().next().unwrap().unwrap().path());
    let text = text.unwrap();
    assert!(!text.contains("a06_csr") && !text.contains('/'), "{text}");
    std::fs::remove_dir_all(place.join("results")).unwrap();
    let done = place.run(&[&line[..], &["--resume"]].concat());
    assert!(done.expect(0).stderr.contains("cached"), "{}", done.stderr);
    assert_eq!(history::read(&directory).unwrap().entries.len(), 1, "a cached task is not the whole cost");
}

#[test]
#[ignore = "engine: runs real Nextflow"]
fn engine_a_history_that_cannot_be_written_is_a_warning() {
    let place = Place::new();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/cases/a06_csr_int32.h5ad");
    place.write("history", "a file");
    let done = place.run(&["embed", "--method", "pca", "--data", data, "--pca_n_comps", "10"]);
    done.expect(0);
    assert!(done.stderr.contains("warning: what this run cost is not kept"), "{}", done.stderr);
}
