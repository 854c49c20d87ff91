//! The built-in profiles against the facts they stand for, and the catalogue with a user's own files.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::error::Kind;

mod user_files;

/// Default model, and batch size of embed with the parameter that carries it.
type EmbedFacts = (&'static str, Option<&'static str>, Option<(&'static str, u32)>);

/// The known command's table of models and batch sizes.
const EMBED: [EmbedFacts; 22] = [
    ("c2s", Some("C2S/C2S-Pythia-410m-cell-type-prediction"), Some(("batch_size", 8))),
    ("cellama", Some("CELLama/all-MiniLM-L6-v2"), None),
    ("cellfm", Some("CellFM/CellFM_80M_weight.ckpt"), Some(("batch_size", 64))),
    ("cellplm", Some("CellPLM/20231027_85M.best.ckpt"), Some(("batch_size", 1024))),
    ("geneformer", Some("Geneformer/Geneformer-V2-316M"), Some(("batch_size", 64))),
    ("genept", Some("GenePT/ada-002"), None),
    ("langcell", Some("LangCell"), Some(("batch_size", 64))),
    ("scbert", Some("scBERT/panglao_pretrain.pth"), Some(("batch_size", 64))),
    ("sccello", Some("scCello/scCello-zeroshot"), Some(("batch_size", 64))),
    ("scfoundation", Some("scFoundation/models.ckpt"), None),
    ("scgpt", Some("scGPT/scGPT_human"), Some(("batch_size", 64))),
    ("scimilarity", Some("SCimilarity/model_v1.1"), Some(("batch_size", 2048))),
    ("scprint", Some("scPRINT/medium-v1.5.ckpt"), Some(("batch_size", 64))),
    ("uce", Some("UCE/33l_8ep_1024t_1280.torch"), Some(("batch_size", 16))),
    ("scvi", Some("scVI/Census2024-07-01-HomoSapiens"), Some(("batch_size", 1024))),
    ("novae", Some("Novae/novae-human-0"), None),
    ("pca", None, None),
    ("scgpt_integrated", Some("scGPT/scGPT_human"), Some(("integration_batch_size", 64))),
    ("scvi_denovo", None, None),
    ("harmony", None, None),
    ("seurat_cca", None, None),
    ("seurat_rpca", None, None),
];

/// Epochs, training batch, prediction batch.
const FINETUNE: [(&str, u32, Option<u32>, Option<u32>); 9] = [
    ("cellama", 20, Some(32), None),
    ("cellfm", 30, Some(8), Some(64)),
    ("cellplm", 2000, None, None),
    ("geneformer", 1, Some(4), Some(16)),
    ("langcell", 20, Some(16), Some(16)),
    ("scbert", 100, Some(8), Some(32)),
    ("sccello", 20, Some(24), Some(64)),
    ("scfoundation", 20, Some(32), Some(64)),
    ("scgpt", 10, Some(32), Some(64)),
];

/// Further parameters with their defaults; `-` is none.
const PARAMETERS: [(&str, &[(&str, &str)]); 18] = [
    // Ours: the known command reads 200.
    ("c2s", &[("n_genes", "200")]),
    ("cellama", &[("top_k", "30"), ("cellama_finetuned_top_k", "30")]),
    ("geneformer", &[("geneformer_nproc", "1")]),
    ("scbert", &[("bin_num", "5")]),
    ("sccello", &[("sccello_tokenize_num_proc", "1")]),
    (
        "scfoundation",
        &[
            ("scfoundation_pool_type", "all"),
            ("scfoundation_lr", "0.0001"),
            ("scfoundation_scheduler", "warmup_cosine"),
            ("scfoundation_grad_clip", "0"),
        ],
    ),
    ("scimilarity", &[("scimilarity_use_gpu", "true")]),
    // Ours: the known command draws anew in each run.
    ("scgpt", &[("scgpt_seed", "0")]),
    ("scprint", &[("max_len", "4000"), ("how", "random expr"), ("scprint_num_workers", "0")]),
    ("uce", &[("nlayers", "33")]),
    ("scvi", &[("scvi_use_gpu", "true")]),
    (
        "novae",
        &[
            ("novae_technology", "visium"),
            ("novae_prototypes", "32"),
            ("novae_radius", "-"),
            ("novae_coord_type", "-"),
            ("novae_n_neighs", "-"),
            ("novae_delaunay", "-"),
        ],
    ),
    ("pca", &[("pca_n_top_genes", "2000"), ("pca_n_comps", "50")]),
    ("scgpt_integrated", &[("integration_epoch", "15"), ("integration_n_hvg", "1200")]),
    ("scvi_denovo", &[("scvi_n_latent", "30"), ("scvi_max_epochs", "auto"), ("integration_n_hvg", "2000")]),
    ("harmony", &[("seurat_n_hvg", "2000"), ("seurat_n_pcs", "30")]),
    ("seurat_cca", &[("seurat_n_hvg", "2000"), ("seurat_n_pcs", "30")]),
    ("seurat_rpca", &[("seurat_n_hvg", "2000"), ("seurat_n_pcs", "30")]),
];

/// Category, image, GPU, and dimensions of the default model. PCA is native here.
const PLACE: [(&str, Category, Option<&str>, bool, u32); 22] = [
    ("c2s", Category::ZeroShot, Some("housy17/c2s:latest"), true, 1024),
    ("cellama", Category::ZeroShot, Some("housy17/cellama:latest"), true, 384),
    ("cellfm", Category::ZeroShot, Some("housy17/cellfm:latest"), true, 1536),
    ("cellplm", Category::ZeroShot, Some("housy17/cellplm:latest"), true, 512),
    ("geneformer", Category::ZeroShot, Some("housy17/geneformer:latest"), true, 1152),
    ("langcell", Category::ZeroShot, Some("housy17/langcell:latest"), true, 256),
    ("scbert", Category::ZeroShot, Some("housy17/scbert:latest"), true, 200),
    ("sccello", Category::ZeroShot, Some("housy17/sccello:latest"), true, 256),
    ("scfoundation", Category::ZeroShot, Some("housy17/scfoundation:latest"), true, 3072),
    ("scprint", Category::ZeroShot, Some("housy17/scprint:latest"), true, 256),
    ("uce", Category::ZeroShot, Some("housy17/uce:latest"), true, 1280),
    ("scimilarity", Category::ZeroShot, Some("housy17/scimilarity:latest"), true, 128),
    ("genept", Category::ZeroShot, None, false, 1536),
    ("scgpt", Category::ZeroShot, Some("housy17/scgpt:0.2.4"), true, 512),
    ("scgpt_integrated", Category::Integration, Some("housy17/scgpt:0.2.4"), true, 512),
    ("novae", Category::ZeroShot, Some("housy17/novae:1.0.0"), true, 64),
    ("scvi", Category::Reference, Some("scverse/scvi-tools:py3.11-cu12-runtime-stable"), true, 50),
    ("scvi_denovo", Category::Integration, Some("scverse/scvi-tools:py3.11-cu12-runtime-stable"), true, 30),
    ("pca", Category::Reference, None, false, 50),
    ("harmony", Category::Integration, None, false, 30),
    ("seurat_cca", Category::Integration, Some("satijalab/seurat:5.5.0"), false, 30),
    ("seurat_rpca", Category::Integration, Some("satijalab/seurat:5.5.0"), false, 30),
];

const NO_TRANSFER: [&str; 4] = ["harmony", "scgpt_integrated", "seurat_cca", "seurat_rpca"];

fn builtin() -> Catalogue {
    Catalogue::builtin().unwrap()
}

fn names<'a>(profiles: impl Iterator<Item = &'a Profile>) -> BTreeSet<&'a str> {
    profiles.map(|profile| profile.name.as_str()).collect()
}

#[test]
fn every_file_of_the_folder_is_built_in() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/methods");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let catalogue = builtin();
    assert_eq!(names(catalogue.iter()), files.iter().map(String::as_str).collect());
    assert_eq!(catalogue.len(), 22);
}

#[test]
fn the_order_is_by_category_then_name() {
    let catalogue = builtin();
    let order: Vec<&str> = catalogue.iter().map(|profile| profile.name.as_str()).collect();
    assert_eq!(order[..2], ["c2s", "cellama"]);
    assert_eq!(
        order[14..],
        ["uce", "pca", "scvi", "harmony", "scgpt_integrated", "scvi_denovo", "seurat_cca", "seurat_rpca"]
    );
}

#[test]
fn models_and_batch_sizes_are_those_of_the_known_command() {
    let catalogue = builtin();
    for (name, model, batch) in EMBED {
        let profile = catalogue.get(name).unwrap();
        assert_eq!(profile.default_model().map(|model| model.name.as_str()), model, "{name}");
        assert_eq!(profile.batch(Task::Embed), batch, "{name}");
        assert_eq!(profile.honours(Task::Embed, MethodOption::BatchSize), batch.is_some(), "{name}");
        assert_eq!(profile.honours(Task::Embed, MethodOption::Model), model.is_some(), "{name}");
    }
    assert_eq!(names(catalogue.iter()), EMBED.iter().map(|(name, ..)| *name).collect());
}

#[test]
fn finetune_defaults_are_those_of_the_known_command() {
    let catalogue = builtin();
    for (name, epochs, batch, predict_batch) in FINETUNE {
        let profile = catalogue.get(name).unwrap();
        let finetune = profile.finetune.as_ref().unwrap();
        assert_eq!(
            (finetune.epochs, finetune.batch, finetune.predict_batch),
            (epochs, batch, predict_batch),
            "{name}"
        );
        assert_eq!(finetune.eval_size, 0.2, "{name}");
        assert_eq!(profile.honours(Task::Finetune, MethodOption::BatchSize), batch.is_some(), "{name}");
        assert_eq!(
            profile.honours(Task::Finetune, MethodOption::PredictBatchSize),
            predict_batch.is_some(),
            "{name}"
        );
    }
    assert_eq!(names(catalogue.for_task(Task::Finetune)), FINETUNE.iter().map(|(name, ..)| *name).collect());
    assert_eq!(catalogue.get("scbert").unwrap().finetune.as_ref().unwrap().patience, Some(10));
}

#[test]
fn parameters_are_those_of_the_known_command() {
    let catalogue = builtin();
    for profile in catalogue.iter() {
        let listed =
            PARAMETERS.iter().find(|(name, _)| *name == profile.name).map_or(&[][..], |(_, list)| list);
        let found: Vec<(&str, String)> = profile
            .parameters
            .iter()
            .map(|parameter| {
                let default = parameter.default.as_ref().map_or("-".to_owned(), Value::to_string);
                (parameter.name.as_str(), default)
            })
            .collect();
        let found: Vec<(&str, &str)> =
            found.iter().map(|(name, default)| (*name, default.as_str())).collect();
        assert_eq!(found, listed, "{}", profile.name);
    }
}

#[test]
fn category_image_gpu_and_dimension_are_those_of_the_known_command() {
    let catalogue = builtin();
    for (name, category, image, gpu, dimension) in PLACE {
        let profile = catalogue.get(name).unwrap();
        assert_eq!(profile.category, category, "{name}");
        assert_eq!(profile.image.as_deref(), image, "{name}");
        assert_eq!(profile.gpu, gpu, "{name}");
        assert_eq!(profile.dimension, Some(dimension), "{name}");
    }
}

#[test]
fn transfer_takes_what_can_embed_a_query() {
    let catalogue = builtin();
    let transfer = names(catalogue.for_task(Task::Transfer));
    let embed = names(catalogue.for_task(Task::Embed));
    assert_eq!(embed.len(), 22);
    assert_eq!(&embed - &transfer, NO_TRANSFER.into());
    let fitted =
        names(catalogue.iter().filter(|profile| profile.fits_input && profile.supports(Task::Transfer)));
    assert_eq!(fitted, ["pca", "scvi_denovo"].into());
    assert_eq!(names(catalogue.for_task(Task::Check)).len(), 22);
}

#[test]
fn batch_keys_belong_to_the_integration_methods() {
    let catalogue = builtin();
    for profile in catalogue.iter() {
        let integrates = profile.category == Category::Integration;
        assert_eq!(profile.honours(Task::Embed, MethodOption::BatchKey), integrates, "{}", profile.name);
    }
}

#[test]
fn inputs_and_batch_dependence_are_stated() {
    let catalogue = builtin();
    let dependent =
        catalogue.iter().filter(|profile| profile.embed.as_ref().is_some_and(|embed| embed.batch_dependent));
    assert_eq!(names(dependent), ["cellplm", "uce"].into());
    assert_eq!(names(catalogue.iter().filter(|profile| !profile.input.obsm.is_empty())), ["novae"].into());
    let minimum = catalogue.iter().filter(|profile| profile.input.minimum_batch_cells == Some(31));
    assert_eq!(names(minimum), ["seurat_cca", "seurat_rpca"].into());
    assert!(catalogue.iter().all(|profile| profile.input.counts));
    let restricted = catalogue.iter().filter(|profile| profile.non_commercial);
    assert_eq!(names(restricted), ["c2s", "cellfm", "scfoundation"].into());
}

#[test]
fn every_model_has_files_with_public_sources() {
    let places = ["hub ", "github ", "zenodo ", "figshare ", "google drive ", "dropbox folder ", "s3 "];
    for profile in builtin().iter() {
        for model in &profile.models {
            assert!(!model.files.is_empty(), "{}", model.name);
            for file in &model.files {
                for source in std::iter::once(&file.source).chain(&file.mirrors) {
                    assert!(places.iter().any(|place| source.starts_with(place)), "{source}");
                    assert!(!source.contains("//") && !source.contains(".com"), "{source}");
                }
            }
        }
    }
}

#[test]
fn a_model_is_found_by_its_last_part_and_may_change_defaults() {
    let catalogue = builtin();
    let uce = catalogue.get("uce").unwrap();
    let small = uce.model("4layer_model.torch").unwrap();
    assert_eq!(small.name, "UCE/4layer_model.torch");
    assert_eq!(uce.parameter_default("nlayers", Some(small)), Some(&Value::Int(4)));
    assert_eq!(uce.parameter_default("nlayers", uce.default_model()), Some(&Value::Int(33)));
    assert!(uce.model("layer_model.torch").is_none());
}

#[test]
fn an_unknown_method_is_an_error_with_the_nearest_name() {
    let catalogue = builtin();
    let error = catalogue.get("scgtp").unwrap_err();
    assert_eq!(error.kind, Kind::Usage);
    assert_eq!(error.message, "method \"scgtp\" is unknown");
    assert_eq!(error.hints, ["did you mean \"scgpt\"? \"scfoundry list methods\" lists all 22"]);
    let error = catalogue.get("seurat").unwrap_err();
    assert_eq!(
        error.hints,
        ["did you mean \"seurat_cca\" or \"seurat_rpca\"? \"scfoundry list methods\" lists all 22"]
    );
    let error = catalogue.get("resnet50").unwrap_err();
    assert_eq!(error.hints, ["\"scfoundry list methods\" lists all 22"]);
}

#[test]
fn a_method_that_cannot_do_a_task_is_an_error_with_those_that_can() {
    let catalogue = builtin();
    let error = catalogue.get_for("harmony", Task::Transfer).unwrap_err();
    assert_eq!(error.message, "method \"harmony\" cannot do transfer");
    assert!(error.hints[0].starts_with("methods that can: c2s, cellama, "), "{:?}", error.hints);
    assert_eq!(catalogue.get_for("harmony", Task::Benchmark).unwrap().name, "harmony");
}

#[test]
fn an_unused_option_is_named_with_the_methods_that_have_it() {
    let catalogue = builtin();
    let pca = catalogue.get("pca").unwrap();
    let cellplm = catalogue.get("cellplm").unwrap();
    let warning = catalogue.unused_option(pca, Task::Embed, MethodOption::BatchSize).unwrap();
    assert_eq!(
        warning,
        "pca has no batch size; --batch-size is not used (methods that have one: c2s, cellfm, cellplm, geneformer, \
         langcell, scbert, sccello, scgpt, scimilarity, scprint, uce, scvi, scgpt_integrated)"
    );
    let warning = catalogue.unused_option(cellplm, Task::Finetune, MethodOption::PredictBatchSize).unwrap();
    assert_eq!(
        warning,
        "cellplm has no batch size for prediction in finetune; --predict_batch_size is not used (methods that have \
         one: cellfm, geneformer, langcell, scbert, sccello, scfoundation, scgpt)"
    );
    assert_eq!(catalogue.unused_option(cellplm, Task::Embed, MethodOption::BatchSize), None);
    assert_eq!(
        catalogue.unused_parameter(pca, Task::Embed, "integration_n_hvg").unwrap(),
        "pca does not read integration_n_hvg; --integration_n_hvg is not used (methods that do: scgpt_integrated, scvi_denovo)"
    );
    assert_eq!(catalogue.unused_parameter(pca, Task::Embed, "pca_n_comps"), None);
    assert_eq!(catalogue.unused_parameter(pca, Task::Embed, "no_such_parameter"), None);
}

#[test]
fn a_profile_is_the_same_after_json() {
    for profile in builtin().iter() {
        let text = serde_json::to_string(profile).unwrap();
        assert_eq!(&serde_json::from_str::<Profile>(&text).unwrap(), profile);
    }
}

#[test]
fn no_text_breaks_a_line_or_ends_like_a_paragraph() {
    for profile in builtin().iter() {
        let helps = profile.parameters.iter().map(|parameter| &parameter.help);
        for text in std::iter::once(&profile.description).chain(helps).chain(&profile.notes) {
            assert!(!text.ends_with('.') && !text.contains('\n'), "{}: {text}", profile.name);
        }
    }
}

#[test]
fn a_profile_made_in_memory_can_be_checked() {
    let catalogue = builtin();
    let mut pca = catalogue.get("pca").unwrap().clone();
    pca.check().unwrap();
    pca.parameters[1].tasks.push(Task::Finetune);
    let error = pca.check().unwrap_err();
    assert_eq!(
        error.message,
        "method \"pca\": key \"tasks\" has \"finetune\", which is not among the tasks of the method"
    );
}
