//! Profiles that a workspace adds: sound ones appear, broken ones are named to the line.

use super::*;

const OWN: &str = r#"name = "own"
description = "A method of my own"
category = "zero-shot"
tasks = ["embed"]
image = "me/own:1"
gpu = false
cost_class = 2

[genes]
ids = "symbols"

[input]
counts = true

[runner]
kind = "python"
entry = "own.py"

[embed]
batch = { parameter = "batch_size", default = 32 }

[[parameters]]
name = "own_layers"
default = 4
tasks = ["embed"]
help = "Number of layers"
"#;

fn load(files: &[(&str, &str)]) -> crate::error::Result<Catalogue> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    Catalogue::load(Some(folder.path()))
}

fn rejected(from: &str, to: &str) -> crate::error::Error {
    assert!(OWN.contains(from), "{from}");
    let error = load(&[("own.toml", &OWN.replacen(from, to, 1))]).unwrap_err();
    assert_eq!(error.kind, Kind::Input);
    error
}

/// The message after the folder's name.
fn fault(from: &str, to: &str) -> String {
    let message = rejected(from, to).message;
    assert!(message.starts_with("method profile /"), "{message}");
    message.split_once("/own.toml").unwrap().1.to_owned()
}

#[test]
fn a_method_of_the_workspace_stands_among_the_others() {
    let catalogue = load(&[("own.toml", OWN), (".own.toml", "no"), ("own.py", "")]).unwrap();
    assert_eq!(catalogue.len(), 23);
    assert_eq!(catalogue.get("own").unwrap().batch(Task::Embed), Some(("batch_size", 32)));
    assert!(catalogue.who_honours(Task::Embed, MethodOption::BatchSize).contains(&"own"));
    assert!(matches!(catalogue.origin("own"), Some(Origin::File(path)) if path.ends_with("own.toml")));
    assert_eq!(catalogue.origin("pca"), Some(&Origin::BuiltIn));
    assert!(catalogue.notes().is_empty());
    let position = catalogue.iter().position(|profile| profile.name == "own").unwrap();
    assert_eq!(catalogue.iter().nth(position + 1).unwrap().name, "scbert");
}

#[test]
fn a_file_with_a_built_in_name_takes_its_place_and_says_so() {
    let own_pca = OWN.replace("\"own\"", "\"pca\"");
    let catalogue = load(&[("pca.toml", &own_pca)]).unwrap();
    assert_eq!(catalogue.len(), 22);
    assert_eq!(catalogue.get("pca").unwrap().description, "A method of my own");
    assert_eq!(catalogue.notes().len(), 1);
    assert!(catalogue.notes()[0].starts_with("method \"pca\" is taken from /"), "{:?}", catalogue.notes());
}

#[test]
fn a_folder_that_does_not_exist_adds_nothing() {
    assert_eq!(Catalogue::load(Some(Path::new("/no/such/folder"))).unwrap().len(), 22);
    assert_eq!(Catalogue::load(None).unwrap().len(), 22);
}

#[test]
fn a_folder_that_is_a_file_is_an_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = Catalogue::load(Some(file.path())).unwrap_err();
    assert!(error.message.starts_with("cannot read "), "{}", error.message);
}

#[test]
fn an_unknown_key_is_named_with_file_and_line() {
    let error = rejected("gpu = false", "gpus = false");
    assert!(
        error.message.ends_with("/own.toml, line 6, key \"gpus\": unknown field `gpus`"),
        "{}",
        error.message
    );
    assert!(error.causes[0].contains("6 | gpus = false\n  | ^^^^"), "{}", error.causes[0]);
    assert_eq!(error.hints, ["correct own.toml, or move it out of the folder", "did you mean \"gpu\"?"]);
}

#[test]
fn a_value_of_another_type_is_named_with_line_and_key() {
    assert_eq!(
        fault("gpu = false", "gpu = \"no\""),
        ", line 6, key \"gpu\": invalid type: string \"no\", expected a boolean"
    );
    assert!(
        fault("\"zero-shot\"", "\"other\"")
            .starts_with(", line 3, key \"category\": unknown variant `other`")
    );
    assert!(fault("ids = \"symbols\"", "ids = 3").starts_with(", line 10, key \"ids\": "));
}

#[test]
fn a_missing_key_and_broken_toml_are_errors() {
    assert_eq!(fault("cost_class = 2\n", ""), ", line 1: missing field `cost_class`");
    assert!(fault("[genes]", "[genes").starts_with(", line 9"));
}

#[test]
fn values_out_of_range_are_named_with_line_and_key() {
    for (from, to, message) in [
        (
            "name = \"own\"",
            "name = \"Own\"",
            ", line 1: key \"name\" \"Own\" is not a lower-case letter followed by such letters, digits and _",
        ),
        (
            "name = \"own\"",
            "name = \"owns\"",
            ", line 1: key \"name\" \"owns\" is not the name of the file (\"own\")",
        ),
        ("cost_class = 2", "cost_class = 6", ", line 7: key \"cost_class\" 6 is not 1 to 5"),
        ("[\"embed\"]", "[]", ", line 4: key \"tasks\" is empty"),
        (
            "[\"embed\"]",
            "[\"embed\", \"check\"]",
            ", line 4: key \"tasks\" has \"check\", which no method does itself (embed, transfer, finetune)",
        ),
        (
            "[\"embed\"]",
            "[\"embed\", \"finetune\"]",
            ", line 4: key \"tasks\" has \"finetune\", but there is no section [finetune]",
        ),
        ("[\"embed\"]", "[\"embed\", \"embed\"]", ", line 4: key \"tasks\" has \"embed\" twice"),
        (
            "[embed]",
            "[finetune]\nepochs = 3\n[embed]",
            ", line 19: key \"finetune\" is a section, but \"finetune\" is not among the tasks",
        ),
        (
            "image = \"me/own:1\"\n",
            "",
            ", line 15: key \"kind\" needs a container, but there is no key \"image\"",
        ),
        (
            "image = \"me/own:1\"",
            "image = \"me own\"",
            ", line 5: key \"image\" \"me own\" is not the name of an image",
        ),
        (
            "\"own.py\"",
            "\"../own.py\"",
            ", line 17: key \"entry\" \"../own.py\" is not a plain file name that ends in .py",
        ),
        ("default = 32", "default = 0", ", line 20: key \"default\" is 0"),
        (
            "\"batch_size\"",
            "\"bs\"",
            ", line 20: key \"parameter\" \"bs\" is not batch_size or integration_batch_size",
        ),
        (
            "\"own_layers\"",
            "\"batch_size\"",
            ", line 23: key \"name\" \"batch_size\" is an option of the program",
        ),
        (
            "ids = \"symbols\"",
            "ids = \"symbols\"\nminimum_matched = 1.5",
            ", line 11: key \"minimum_matched\" 1.5 is not between 0 and 1",
        ),
    ] {
        assert_eq!(fault(from, to), message);
    }
}

#[test]
fn weight_files_stay_below_the_weights_directory() {
    let with = |lines: &str| {
        let text = format!("{OWN}\n[[models]]\nname = \"Own/1\"\n\n[[models.files]]\n{lines}\n");
        load(&[("own.toml", &text)])
            .map_err(|error| error.message.split_once("/own.toml").unwrap().1.to_owned())
    };
    let digest = "a".repeat(64);
    with(&format!("path = \"Own/1/w.pt\"\nsource = \"hub me/own\"\nsha256 = \"{digest}\"")).unwrap();
    assert_eq!(
        with("path = \"../w.pt\"\nsource = \"hub me/own\"").unwrap_err(),
        ", line 32: key \"path\" \"../w.pt\" is not a path below the weights directory"
    );
    assert_eq!(
        with("path = \"Own/w\"\nsource = \"hub me/own\"\nsha256 = \"abc\"").unwrap_err(),
        ", line 34: key \"sha256\" \"abc\" is not 64 lower-case hexadecimal digits"
    );
    assert_eq!(
        with("path = \"Own/w/\"\nsource = \"hub me/own\"\nsha256 = \"abc\"").unwrap_err(),
        ", line 34: key \"sha256\" is given for a folder, which has none"
    );
}

#[test]
fn two_parameters_of_one_name_are_an_error() {
    let again = "\n[[parameters]]\nname = \"own_layers\"\ntasks = [\"embed\"]\nhelp = \"Again\"\n";
    let error = load(&[("own.toml", &format!("{OWN}{again}"))]).unwrap_err();
    assert!(
        error.message.ends_with("line 29: key \"name\" \"own_layers\" is there twice"),
        "{}",
        error.message
    );
}
