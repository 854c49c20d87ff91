//! Samples of real files, drawn for real plans; the runs are in `tests/pipeline/probe.rs`.

use std::path::PathBuf;

use super::*;
use crate::h5ad::{EmbeddingRef, Extent, H5ad, Slot, write_embedding};
use crate::matrix::RowBlocks;
use crate::method::{Catalogue, Task};
use crate::plan::{Given, Role, Source, Typed};
use crate::settings::Flags;
use crate::workspace::Workspace;

fn demo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/pbmc_700.h5ad")
}

fn request(task: Task, inputs: Vec<(Role, PathBuf)>) -> Request {
    Request {
        task,
        method: (task != Task::Geometry).then(|| "pca".to_owned()),
        inputs,
        given: Vec::new(),
        strict: false,
        run_name: None,
        resume: None,
        configs: Vec::new(),
        profile: None,
        nextflow_args: Vec::new(),
        typed: Typed::default(),
    }
}

/// Calls `test` with what a command in a new directory finds around it.
fn around<T>(folder: &Path, test: impl FnOnce(&Context<'_>) -> T) -> T {
    let workspace = Workspace::at(folder).unwrap();
    test(&Context {
        workspace: &workspace,
        settings: &Settings::gather(&Flags::default(), &workspace).unwrap(),
        catalogue: &Catalogue::load(Some(&folder.join("methods"))).unwrap(),
        stamp: "20261203-060000",
        variable: &|_| None,
    })
}

fn samples(request: &Request, label: Option<&str>, cells: usize, folder: &Path) -> Vec<H5ad> {
    let plan = around(folder, |context| Plan::make(request, context).unwrap());
    let share = (cells, plan.inputs.iter().map(|input| input.cells).max().unwrap());
    let sampler = Sampler { plan: &plan, label, share, folder: folder.join("samples") };
    let written = sampler.write().unwrap();
    for ((role, path), input) in written.iter().zip(&plan.inputs) {
        assert_eq!((*role, path.file_name()), (input.role, input.path.file_name()));
    }
    written.iter().map(|(_, path)| H5ad::open(path).unwrap()).collect()
}

#[test]
fn as_many_cells_as_there_are_are_no_sample() {
    let folder = tempfile::tempdir().unwrap();
    let request = request(Task::Embed, vec![(Role::Data, demo())]);
    for cells in [700, 5000, 0] {
        let error = around(folder.path(), |context| measure(&request, context, cells, &Ui::default()));
        let error = error.unwrap_err();
        assert!(error.kind == Kind::Usage && error.message.contains("probe"), "{error}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn every_label_is_in_the_sample() {
    let folder = tempfile::tempdir().unwrap();
    let data = H5ad::open(&demo()).unwrap();
    let label = "cell_type";
    let classes = |file: &H5ad| file.obs().column(label).unwrap().labels().classes;
    let request = request(Task::Embed, vec![(Role::Data, demo())]);
    let sample = &samples(&request, Some(label), 30, folder.path())[0];
    assert_eq!((sample.n_obs(), sample.n_vars()), (30, data.n_vars()));
    assert_eq!(classes(sample), classes(&data));
}

#[test]
fn an_embedding_has_the_cells_of_its_data() {
    let folder = tempfile::tempdir().unwrap();
    let data = H5ad::open(&demo()).unwrap();
    let embedding = folder.path().join("pca/pbmc_700.h5ad");
    std::fs::create_dir(embedding.parent().unwrap()).unwrap();
    let values = vec![1.0; data.n_obs() * 2];
    write_embedding(&embedding, EmbeddingRef { values: &values, dims: 2, uns: &[] }, &data).unwrap();
    let inputs = vec![(Role::Embedding, embedding), (Role::Data, demo())];
    let samples = samples(&request(Task::Geometry, inputs), None, 50, folder.path());
    let [embedding, data] = samples.as_slice() else { panic!("{} samples", samples.len()) };
    assert_eq!((embedding.n_obs(), embedding.n_vars()), (50, 2));
    assert_eq!(embedding.obs().index(), data.obs().index());
    assert_eq!(embedding.path().parent().unwrap().file_name().unwrap(), "pca");
}

#[test]
fn reference_and_query_stay_in_proportion() {
    let folder = tempfile::tempdir().unwrap();
    let query = folder.path().join("query.h5ad");
    let cells: Vec<usize> = (0..700).step_by(2).collect();
    crate::h5ad::write_cells(&query, &H5ad::open(&demo()).unwrap(), &cells, Extent::Usual, &|| Ok(()))
        .unwrap();
    let mut request = request(Task::Transfer, vec![(Role::Reference, demo()), (Role::Query, query)]);
    let value = "cell_type".into();
    request.given.push(Given { name: "label_key".to_owned(), value, source: Source::Option });
    let samples = samples(&request, Some("cell_type"), 100, folder.path());
    assert_eq!(samples.iter().map(H5ad::n_obs).collect::<Vec<_>>(), [100, 50]);
}

/// The values of the rows, one map from column to value each.
fn values(file: &H5ad, slot: &Slot, rows: &[usize]) -> Vec<Vec<(u32, f64)>> {
    let mut all = Vec::new();
    let matrix = file.matrix(slot).unwrap();
    let read = matrix.for_each_block(&mut |block| {
        all.extend((0..block.rows()).map(|row| {
            let (columns, values) = block.row(row);
            let pairs = columns.iter().copied().zip(values.iter().copied());
            pairs.filter(|(_, value)| *value != 0.0).collect::<Vec<_>>()
        }));
        Ok(())
    });
    read.unwrap();
    rows.iter().map(|&row| all[row].clone()).collect()
}

#[test]
fn counts_outside_of_x_are_in_the_sample_of_a_task_that_looks_for_them() {
    for name in ["a14_lognorm_counts_in_layer.h5ad", "a14_scaled_counts_in_raw.h5ad"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cases").join(name);
        let data = H5ad::open(&path).unwrap();
        let sample = |task| {
            let folder = tempfile::tempdir().unwrap();
            let request = request(task, vec![(Role::Data, path.clone())]);
            let sample = samples(&request, None, 20, folder.path()).remove(0);
            (folder, sample)
        };
        let (_folder, checked) = sample(Task::Check);
        assert!(data.slots().len() > 1 && checked.slots() == data.slots(), "{name}: {:?}", checked.slots());
        assert_eq!(checked.obsm_keys(), data.obsm_keys(), "{name}");
        let all = data.obs().index();
        let rows: Vec<usize> = checked
            .obs()
            .index()
            .iter()
            .map(|cell| all.iter().position(|one| one == cell).unwrap())
            .collect();
        let own: Vec<usize> = (0..rows.len()).collect();
        for slot in data.slots() {
            assert_eq!(values(&checked, &slot, &own), values(&data, &slot, &rows), "{name} {slot}");
        }
        // Those that read X alone are spared the rest.
        let (_folder, embedded) = sample(Task::Embed);
        assert_eq!(embedded.slots(), [Slot::X], "{name}");
    }
}

#[test]
fn a_script_of_ones_own_finds_all_that_it_may_read() {
    let folder = tempfile::tempdir().unwrap();
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cases/a14_lognorm_counts_in_layer.h5ad");
    std::fs::create_dir(folder.path().join("methods")).unwrap();
    std::fs::write(folder.path().join("methods/mine.py"), "").unwrap();
    let profile = "name = \"mine\"\ndescription = \"d\"\ncategory = \"zero-shot\"\ntasks = [\"embed\"]\nimage = \"i\"\n\
        gpu = false\ncost_class = 1\n[genes]\nids = \"any\"\n[input]\ncounts = false\n[runner]\nkind = \"python\"\n\
        entry = \"mine.py\"\n[embed]\n";
    std::fs::write(folder.path().join("methods/mine.toml"), profile).unwrap();
    let mut request = request(Task::Embed, vec![(Role::Data, path)]);
    request.method = Some("mine".to_owned());
    let sample = &samples(&request, None, 20, folder.path())[0];
    assert_eq!(sample.slots().len(), 2);
}
