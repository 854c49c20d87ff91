//! What is wrong is said once, by name, before anything is written.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::world::{Ended, World, case, data, stand_in};

#[test]
fn wrong_command_lines() {
    let world = World::with_workspace("docker");
    let data = data();
    let embed = ["embed", "--method", "pca", "--data", &data];
    let with = |more: &[&'static str]| [&embed[..], more].concat();
    world.refuses(&["embde"], 2, &["embde", "embed"]);
    world.refuses(&["embed", "--method", "pca"], 2, &["--data"]);
    world.refuses(&["embed", "--data", &data], 2, &["--method"]);
    world.refuses(&with(&["--batch_size", "8"]), 2, &["--batch_size", "did you mean --batch-size?"]);
    world.refuses(&with(&["--Batch-Size=8"]), 2, &["did you mean --batch-size?"]);
    world.refuses(&with(&["--dryrun"]), 2, &["did you mean --dry-run?"]);
    world.refuses(&with(&["--run-name", ""]), 2, &["--run-name"]);
    world.refuses(&with(&["--pca_n_comps", "--quiet"]), 2, &["--pca_n_comps needs a value", "at least 1"]);
    world.refuses(&with(&["--gpu", "0;x"]), 2, &["--gpu", "\"0;x\"", "--gpu 0,1"]);
    world.refuses(&with(&["--gpu", "0,0"]), 2, &["--gpu", "0 stands there twice"]);
    world.refuses(&with(&["--gpu", "-1"]), 2, &["--gpu", "\"-1\""]);
    world.refuses(&with(&["--quiet", "--verbose"]), 2, &["--quiet", "--verbose"]);
    world.refuses(&["check", "--data", &data, "--role", "judge"], 2, &["judge", "reference", "query"]);
    world.refuses(&["runs", "--task", "embde"], 2, &["embde", "embed"]);
    world.refuses(&["cost", "--csv", "--json"], 2, &["--csv", "--json"]);
    world.refuses(&["init", "--gpu-id", "one"], 2, &["--gpu-id", "\"one\""]);
    world.refuses(&["kernel", "nope", "--spec", "nextflow.config"], 2, &["nope", "pca", "check"]);
}

#[test]
fn methods_that_are_unknown_or_not_able() {
    let world = World::new();
    let data = data();
    world.refuses(
        &["embed", "--method", "scgtp", "--data", &data],
        2,
        &["method \"scgtp\" is unknown", "did you mean \"scgpt\"?"],
    );
    world.refuses(&["check", "--method", "scgtp", "--data", &data], 2, &["did you mean \"scgpt\"?"]);
    world.refuses(
        &["finetune", "--method", "pca", "--reference", &data],
        2,
        &["pca cannot finetune", "scgpt", "geneformer"],
    );
    world.refuses(
        &["transfer", "--method", "harmony", "--reference", &data, "--query", &data],
        2,
        &["harmony cannot transfer"],
    );
    world.refuses(
        &["embed", "--method", "scgpt", "--data", &data, "--model", "scGTP_human"],
        2,
        &["scgpt has no model \"scGTP_human\"", "did you mean scGPT_human?"],
    );
    world.refuses(&["download", "--method", "scgpt", "--model", "q"], 2, &["has no model", "scGPT/scGPT_CP"]);
    world.refuses(&["download", "--method", "pca"], 2, &["pca has no weights"]);
}

#[test]
fn a_method_without_a_runner_is_said_in_one_sentence() {
    let world = World::with_workspace("docker");
    let data = data();
    for method in ["scgpt_integrated", "scprint", "uce"] {
        let line = ["embed", "--method", method, "--data", &data, "--nextflow", &stand_in()];
        let words = format!("error: this build has no runner that can embed with {method} yet\n");
        world.refuses(&line, 4, &[&words, "--dry-run"]);
    }
    world.refuses(&["download", "--method", "scgpt"], 4, &["cannot download weights yet", "--dry-run"]);
}

#[test]
fn values_of_the_wrong_kind() {
    let world = World::new();
    let data = data();
    let refuses = |method: &str, option: &str, value: &str, words: &[&str]| {
        world.refuses(&["embed", "--method", method, "--data", &data, option, value], 2, words);
    };
    refuses("pca", "--pca_n_comps", "0", &["--pca_n_comps", "at least 1"]);
    refuses("pca", "--pca_n_comps", "many", &["--pca_n_comps", "\"many\""]);
    refuses("pca", "--pca_n_comps", "2.5", &["--pca_n_comps", "whole number"]);
    refuses("scvi", "--scvi_use_gpu", "perhaps", &["--scvi_use_gpu", "true or false"]);
    world.refuses(
        &["transfer", "--method", "pca", "--reference", &data, "--query", &data, "--knn-k", "0"],
        2,
        &["--knn-k", "at least 1"],
    );
    world.refuses(
        &["finetune", "--method", "scgpt", "--reference", &data, "--epochs", "-3"],
        2,
        &["--epochs", "at least 1"],
    );
}

#[test]
fn files_that_are_not_there_or_not_sound() {
    let world = World::new();
    world.write("here/file", "");
    std::fs::create_dir(world.here().join("empty")).unwrap();
    let refuses = |path: &str, words: &[&str]| {
        world.refuses(&["embed", "--method", "pca", "--data", path], 3, words);
        world.refuses(&["check", "--data", path], 3, words);
        world.refuses(&["embed", "--method", "scgpt", "--data", &data(), path, "--dry-run"], 3, words);
    };
    refuses("none.h5ad", &["none.h5ad", "No such file"]);
    refuses("file/x.h5ad", &["file/x.h5ad", "Not a directory"]);
    refuses("empty", &["no .h5ad file in empty", "--data"]);
    refuses("*.h5ad", &["no file matches *.h5ad"]);
    refuses("file", &["file is empty (0 bytes)"]);
    refuses(&case("a08_truncated.h5ad"), &["a08_truncated.h5ad", "truncated", "53918", "89864"]);
    refuses(&case("a08_empty.h5ad"), &["a08_empty.h5ad", "empty"]);
    refuses(&case("a08_not_hdf5.h5ad"), &["a08_not_hdf5.h5ad", "not an HDF5 file", "web page"]);
    world.refuses(
        &["embed", "--method", "pca", "--data", &data(), "file", &case("a06_dense.h5ad")],
        3,
        &["file is empty"],
    );
    let twice = case("a06_dense.h5ad");
    world.refuses(
        &["embed", "--method", "pca", "--data", &twice, &data(), &twice],
        2,
        &["the same file is named twice", "--data"],
    );
}

#[test]
fn columns_that_are_not_there() {
    let world = World::new();
    let data = data();
    let embedding = case("b09_four_blobs.h5ad");
    let pair = ["--reference", &data, "--query", &data, "--label-key", "cell_typ"];
    for command in [["transfer", "--method", "scgpt"], ["finetune", "--method", "scgpt"]] {
        let line = [&command[..], &pair, &["--dry-run"]].concat();
        world.refuses(&line, 3, &["cell_typ", "a06_csr_int32.h5ad", "cell_type", "--label-key"]);
    }
    let benchmark = ["benchmark", "--embedding", &embedding];
    for option in ["--label-key", "--batch-key"] {
        world.refuses(&[&benchmark[..], &[option, "nope"]].concat(), 3, &["nope", "b09_four_blobs", option]);
    }
}

/// The program as a user who may not look into `closed`; root may look everywhere.
fn unprivileged(world: &World, arguments: &[&str]) -> Ended {
    if !rustix::process::geteuid().is_root() {
        return world.run(arguments);
    }
    let readable = std::fs::Permissions::from_mode(0o755);
    let program = world.root().join("scfoundry");
    // By another process: what this one has open for writing, a child of another test could hold when it is to be run.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_scfoundry")).arg(&program).status().unwrap();
    assert!(copied.success());
    std::fs::set_permissions(world.root(), readable).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(program).args(arguments);
    command.current_dir(world.here()).env("HOME", world.home());
    Ended::of(command)
}

#[test]
fn places_that_may_not_be_read() {
    let world = World::new();
    let closed = world.here().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::copy(data(), closed.join("x.h5ad")).unwrap();
    let mode = |mode| std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o000);
    for path in ["closed", "closed/x.h5ad"] {
        let ended = unprivileged(&world, &["embed", "--method", "pca", "--data", path, "--dry-run"]);
        ended.refused(3, &["closed", "Permission denied"]);
    }
    mode(0o755);
}

#[test]
fn runs_that_cannot_be_resumed() {
    let world = World::with_workspace("docker");
    let data = data();
    let nextflow = stand_in();
    let embed = ["embed", "--method", "pca", "--data", &data, "--nextflow", &nextflow];
    world.refuses(&[&embed[..], &["--resume"]].concat(), 3, &["no earlier run", "scfoundry runs"]);
    world.refuses(
        &[&embed[..], &["--resume", "20200101-000000_pca_x"]].concat(),
        3,
        &["20200101-000000_pca_x", "not a run", "scfoundry runs"],
    );
    // The stand-in begins no session, so there is nothing that Nextflow could go on from.
    world.run(&embed).succeeded();
    let name = world.only_run().file_name().unwrap().to_str().unwrap().to_owned();
    world.refuses(&[&embed[..], &["--resume", &name]].concat(), 3, &[&name, "cannot be resumed"]);
    assert_eq!(world.runs().len(), 1);
    // Without a name it is done from the start: a loop that always resumes goes on.
    let ended = world.run(&[&embed[..], &["--resume"]].concat()).succeeded();
    assert!(ended.stderr.contains(&format!("run {name} left no work to go on from")), "{}", ended.stderr);
    assert_eq!(world.runs().len(), 2);
}

#[test]
fn places_that_are_no_workspace_and_settings_that_are_wrong() {
    let world = World::new();
    let data = data();
    let embed = ["embed", "--method", "pca", "--data", &data];
    let with = |more: &[&'static str]| [&embed[..], more].concat();
    world.write("here/file", "text");
    std::fs::create_dir(world.here().join("plain")).unwrap();
    world.refuses(
        &with(&["--workspace", "plain"]),
        3,
        &["plain is not a workspace", ".scfoundry.json", "scfoundry init plain"],
    );
    for command in ["runs", "cost"] {
        world.refuses(&[command], 3, &["no workspace", "scfoundry init"]);
    }
    world.refuses(&["init", "file"], 3, &["file"]);
    world.refuses(&with(&["--config", "none.config"]), 3, &["none.config", "--config"]);
    world.refuses(&with(&["--outdir", "file/results"]), 3, &["file is not a directory", "--outdir"]);

    world.run(&["init", "--runtime", "docker"]).succeeded();
    world.write("here/scfoundry.toml", "weight_dir = \"/x\"\n");
    for line in [&with(&[])[..], &["info"], &["list", "methods"]] {
        world.refuses(line, 3, &["scfoundry.toml", "weight_dir", "weights_dir"]);
    }
    world.write("here/scfoundry.toml", "outdir = 5\n");
    world.refuses(&["info"], 3, &["scfoundry.toml", "outdir"]);
    world.write("here/scfoundry.toml", "");
    world.write("home/.config/scfoundry/scfoundry.toml", "[rates\n");
    world.refuses(&["info"], 3, &[".config/scfoundry/scfoundry.toml"]);
    std::fs::remove_dir_all(world.home().join(".config")).unwrap();

    world.write("here/nextflow.config", "params.gpu_id = 'all'\n");
    world.refuses(&with(&["--dry-run"]), 2, &["params.gpu_id in nextflow.config", "\"all\""]);
}

#[test]
fn methods_of_ones_own_with_a_fault() {
    let world = World::with_workspace("docker");
    for (text, words) in [
        ("name = 1\nfoo = 2\n", &["mine.toml", "key \"foo\""][..]),
        ("name = \"mine\n", &["mine.toml", "line 1"]),
        ("name = \"mine\"\n", &["mine.toml", "description"]),
    ] {
        world.write("here/methods/mine.toml", text);
        world.refuses(&["list", "methods"], 3, words);
        world.refuses(&["embed", "--method", "pca", "--data", &data(), "--dry-run"], 3, words);
    }
}
