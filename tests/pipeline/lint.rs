//! The strict parser of Nextflow 25.04 finds nothing to say about what we write.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::place::{Place, case, demo, path_with};

#[test]
#[ignore = "engine: runs the linter of Nextflow 25.04, which tests/engines.sh brings"]
fn engine_lint_finds_nothing_in_pipelines_and_configurations() {
    let linter = std::env::var_os("SCFOUNDRY_TEST_LINT")
        .expect("set SCFOUNDRY_TEST_LINT to a Nextflow of at least 25.04, as tests/engines.sh prints it");
    let place = Place::named("it's");
    let mut files: Vec<PathBuf> = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/pipeline")];
    for runtime in ["docker", "podman", "apptainer", "singularity", "none"] {
        place.run(&["init", ".", "--runtime", runtime, "--force"]).expect(0);
        let workspace = std::fs::read_to_string(place.join("nextflow.config")).unwrap();
        files.push(place.write(&format!("{runtime}.config"), &workspace));
        for method in ["scgpt", "pca"] {
            let plan =
                place.json(&["embed", "--method", method, "--dry-run", "--data", demo().to_str().unwrap()]);
            let text = plan["nextflow_config"].as_str().unwrap();
            files.push(place.write(&format!("{runtime}-{method}.config"), text));
        }
    }
    // Requests that grow with the cells, for a cluster.
    place.script("bin/sbatch", "#!/bin/sh\n");
    let mut plan =
        place.command(&["embed", "--method=scgpt", "--profile=slurm", "--dry-run", "--json", "--data"]);
    let output = plan
        .arg(demo())
        .arg(case("a06_dense.h5ad"))
        .env("PATH", path_with(&place.join("bin")))
        .output()
        .unwrap();
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = plan["nextflow_config"].as_str().unwrap();
    assert!(text.contains("[task.tag]"), "{text}");
    files.push(place.write("slurm.config", text));
    let lint = |files: &[PathBuf]| {
        let mut command = Command::new(&linter);
        let output = command.arg("lint").args(files).current_dir(place.root()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.success(), said.into_owned())
    };
    let (good, said) = lint(&files);
    // 18 files of pipelines, 5 runtimes with 3 configurations each, and that of a cluster.
    assert!(good && said.contains("34 files had no errors"), "{said}");
    assert!(!said.to_lowercase().contains("warn"), "{said}");

    // What a warning looks like to this test: this version of the linter fails over a file that has one.
    let doubtful = place.write("doubtful.nf", "process P {\n    script:\n    \"echo ${params.x}\"\n}\n");
    assert!(!lint(&[doubtful]).0);
}
