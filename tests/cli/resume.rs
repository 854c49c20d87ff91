//! `--resume` of a run that has done it all computes nothing; anything that differs is named, and then it is computed.

use std::path::PathBuf;

use serde_json::json;

use crate::works::Works;
use crate::world::{Ended, record};

/// The only warning.
fn warning(ended: &Ended) -> &str {
    let warnings: Vec<&str> =
        ended.stderr.lines().filter_map(|line| line.strip_prefix("warning: ")).collect();
    assert_eq!(warnings.len(), 1, "{ended:#?}");
    warnings[0]
}

fn names(works: &Works) -> Vec<String> {
    works.world.runs().iter().map(|run| run.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_run_that_has_done_it_all_is_not_done_again() {
    let works = Works::new();
    let first = works.run("one", &[]).succeeded();
    let completion = &record(&works.directory("one"))["completion"];
    assert_eq!(completion["decisions"].as_str().unwrap().len(), 64);
    assert_eq!(completion["inputs"][0]["bytes"], json!(works.data.metadata().unwrap().len()));
    assert_eq!(completion["outputs"][0]["bytes"], json!("embedded\n".len()));
    let before = works.world.listing();
    let no_report = ["--resume", "--", "-with-report", "report.html", "-ansi-log", "false"];
    for more in [&["--resume"][..], &["--resume", "one"], &["--resume", "--gpu", "none"], &no_report] {
        let ended = works.run("two", more).succeeded();
        assert_eq!(ended.stdout, first.stdout);
        assert_eq!(
            ended.stderr, "nothing to do: run one made these results, and nothing has changed since\n",
            "{more:?}"
        );
    }
    let document = works.run("two", &["--resume", "--json"]).document();
    assert_eq!((&document["computed"], &document["status"]), (&json!(false), &json!("ok")));
    assert_eq!((&document["run"], &document["exit_code"]), (&json!(works.directory("one")), &json!(0)));
    assert_eq!((&document["outputs"], &document["cost"]), (&json!([works.result()]), &json!(null)));
    let plan = works.run("two", &["--resume", "--dry-run"]).succeeded().stdout;
    assert!(plan.contains("Done by     ") && plan.contains("/one: nothing to do"), "{plan}");
    assert_eq!(works.world.listing(), before);
    let link = works.world.root().join("link");
    std::os::unix::fs::symlink(works.world.here(), &link).unwrap();
    let by_link = works.run("two", &["--resume", "--workspace", link.to_str().unwrap()]).succeeded();
    assert!(by_link.stderr.starts_with("nothing to do: run one made"), "{by_link:?}");

    // Without --resume it is.
    let document = works.run("two", &["--json"]).document();
    assert_eq!((&document["computed"], names(&works).len()), (&json!(true), 2));
}

/// A change, further arguments, and what is said of it.
type Case<'a> = (&'a dyn Fn(), &'a [&'a str], &'a str);

#[test]
fn what_differs_is_named_and_all_is_done() {
    let works = Works::new();
    works.run("one", &[]).succeeded();
    let path = works.result();
    let other = works.world.root().join("other");
    let touch = || {
        let file = std::fs::File::options().append(true).open(&works.data).unwrap();
        file.set_modified(std::time::SystemTime::now()).unwrap();
    };
    let nothing = || {};
    let cases: [Case; 8] = [
        (&|| std::fs::write(&path, "embeddee\n").unwrap(), &[], "a06_csr_int32.h5ad has changed"),
        (&|| std::fs::write(&path, "embedded").unwrap(), &[], "its result "),
        (&|| std::fs::remove_file(&path).unwrap(), &[], "a06_csr_int32.h5ad is missing"),
        (&touch, &[], "the input "),
        (&nothing, &["--pca_n_comps", "30"], "pca_n_comps was 50 and is 30"),
        (&nothing, &["--mystery", "30"], "pca_n_comps was 30 and is 50"),
        (&nothing, &["--", "--pca_n_comps", "20"], "mystery was 30 and is not set"),
        // Not the newest is told of, but the one that was asked for the same.
        (
            &nothing,
            &["--outdir", other.to_str().unwrap()],
            "run run3 cannot stand for this one, since its results are in ",
        ),
    ];
    for (number, (change, more, words)) in cases.into_iter().enumerate() {
        change();
        let name = format!("run{number}");
        let ended = works.run(&name, &[&["--resume"], more].concat()).succeeded();
        let said: String =
            ended.stderr.lines().filter(|line| line.contains("cannot stand for this one, since")).collect();
        assert!(said.contains(words) && said.ends_with(": all is done from the start"), "{said}");
        assert!(works.directory(&name).is_dir(), "{name}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "embedded\n");
    }
    let ended = works.run("last", &["--resume"]).succeeded();
    assert!(ended.stderr.starts_with("nothing to do: run run3 made"), "{ended:?}");
}

#[test]
fn a_configuration_file_counts_by_what_it_holds() {
    let works = Works::new();
    let settings = works.world.root().join("more.config");
    let with_settings = ["--resume", "--config", settings.to_str().unwrap()];
    works.run("one", &[]).succeeded();
    for (name, text) in [("two", "process.time = '1 h'"), ("three", "process.time = '2 h'")] {
        std::fs::write(&settings, text).unwrap();
        let ended = works.run(name, &with_settings).succeeded();
        assert!(ended.stderr.contains("`--config` or the arguments after `--` were others"), "{ended:?}");
        let ended = works.run("again", &with_settings).succeeded();
        assert!(ended.stderr.starts_with(&format!("nothing to do: run {name} made")), "{ended:?}");
    }
}

#[test]
fn what_differs_is_done_with_the_work_that_is_there() {
    let works = Works::new();
    works.run("one", &["--keep-work"]).succeeded();
    let ended = works.run("two", &["--resume", "--pca_n_comps", "30"]).succeeded();
    assert!(warning(&ended).ends_with("the tasks that it has in common with run one are reused"));
    let two = record(&works.directory("two"));
    assert_eq!((&two["origin"], &two["keep_work"]), (&json!(works.directory("one")), &json!(true)));
    // A place of its own for the results is a difference as well.
    let ended = works.run("three", &["--resume", "one", "--outdir", "elsewhere"]).succeeded();
    assert!(warning(&ended).contains("its results are in "), "{ended:?}");
}

/// The names are in the order of the runs: of those that started in the same second the last by name is the newest.
#[test]
fn a_run_that_failed_is_resumed_unless_another_made_it_good() {
    let works = Works::new();
    works.fail("a_bad", &[]);
    let ended = works.run("b_good", &["--resume"]).succeeded();
    assert!(!ended.stderr.contains("warning"), "{ended:?}");
    let resumed = |more: &[&str]| works.run("next", more).succeeded();
    for more in [&["--resume"][..], &["--resume", "a_bad"]] {
        assert!(resumed(more).stderr.starts_with("nothing to do: run b_good made"), "{more:?}");
    }
    // Something else fails: that is what to go on with.
    works.fail("c_worse", &["--pca_n_comps", "30"]);
    assert!(resumed(&["--resume"]).stderr.starts_with("nothing to do: run b_good made"));
    let ended = works.run("d_better", &["--resume", "--pca_n_comps", "30"]).succeeded();
    assert!(!ended.stderr.contains("warning"), "{ended:?}");
    assert_eq!(record(&works.directory("d_better"))["origin"], json!(works.directory("c_worse")));

    std::fs::remove_file(works.result()).unwrap();
    works.fail("e_last", &[]);
    works.world.run(&["clean", "--work"]).succeeded();
    for more in [&["--resume"][..], &["--resume", "e_last"]] {
        let ended = works.run("f_anew", more).succeeded();
        assert_eq!(warning(&ended), "run e_last left no work to go on from: all is done from the start");
        std::fs::remove_dir_all(works.directory("f_anew")).unwrap();
        std::fs::remove_file(works.result()).unwrap();
    }
}

#[test]
fn a_rehearsal_or_a_run_without_record_stands_for_none() {
    let works = Works::new();
    works.run("a_stub", &["--", "-stub-run"]).succeeded();
    works.run("b_plain", &["--keep-work"]).succeeded();
    assert_eq!(record(&works.directory("a_stub"))["completion"], json!(null));
    let run: PathBuf = works.directory("b_plain");
    let mut changed = record(&run);
    changed.as_object_mut().unwrap().remove("completion");
    std::fs::write(run.join("run.json"), changed.to_string()).unwrap();
    let ended = works.run("next", &["--resume"]).succeeded();
    assert!(!ended.stderr.contains("nothing to do") && !ended.stderr.contains("warning"), "{ended:?}");
    assert_eq!(record(&works.directory("next"))["origin"], json!(run));
}
