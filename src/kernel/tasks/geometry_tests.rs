use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::kernel::cases::{self, path as case};

fn quiet() -> Ui {
    Ui { quiet: true, ..Ui::default() }
}

fn probe(embedding: &Path, data: &Path, more: Value) -> Result<Record> {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record.json");
    let mut spec = json!({
        "embedding": embedding,
        "data": data,
        "embedding_file": embedding,
        "dataset": "b12_data",
        "method": "x",
        "label_key": "cell_type",
        "batch_key": "batch_id",
        "max_cells": 20000,
        "seed": 0,
        "table": folder.path().join("table.csv"),
        "record": record,
    });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    geometry(&serde_json::from_value(spec).unwrap(), &quiet())?;
    assert!(folder.path().join("usage.json").is_file());
    Ok(serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap())
}

#[test]
fn b12_cells_are_paired_by_name() {
    let (embedding, data) = (case("b12_embedding_147_shuffled.h5ad"), case("b12_data.h5ad"));
    let Record { row, notes, phases, .. } = probe(&embedding, &data, json!({})).unwrap();
    assert_eq!((row.n_cells_total, row.n_cells_used, row.embedding_dim), (150, 147, 10));
    assert!(
        notes.iter().any(|note| note.starts_with("3 cells are not in the embedding, first ")),
        "{notes:?}"
    );
    let preserved = row.rnx_k15.unwrap();
    assert!((preserved - 0.38).abs() < 0.02, "{preserved}");
    assert!(notes.iter().any(|note| note.contains("eligible genes, fewer than 2000")), "{notes:?}");
    assert!(phases.iter().any(|phase| phase.name == "rnx" && phase.peak_rss_bytes.is_some()));
}

#[test]
fn b12_by_position_there_is_only_chance() {
    let (file, data) = (cases::open("b12_embedding_147_shuffled.h5ad"), cases::open("b12_data.h5ad"));
    let points = embedding::points(&file).unwrap();
    let rows: Vec<Option<u32>> = (0..150).map(|row| (row < 147).then_some(row)).collect();
    let counts = Counts { matrix: data.matrix(&Slot::X).unwrap(), data: &data };
    let candidates = vec![true; data.n_vars()];
    let found = rnx(&points, &counts, &rows, &Groups::single(147), &candidates, &|_| ()).unwrap();
    assert!(found.at[0].value.unwrap().abs() < 0.1, "{found:?}");
}

#[test]
fn files_that_do_not_belong_together_are_refused() {
    let error = probe(&case("b09_four_blobs.h5ad"), &case("b12_data.h5ad"), json!({})).unwrap_err();
    assert!(error.message.contains("are not in") || error.message.contains("no cell in common"), "{error}");
    assert!(error.hints[0].contains("--data"));
    let error = probe(&case("b07_nan_inf_embedding.h5ad"), &case("b07_nan_inf_embedding.h5ad"), json!({}))
        .unwrap_err();
    assert_eq!(error.message, "3 of 80 cells are not finite, first cell0005");
}

#[test]
fn without_raw_counts_only_preservation_is_na() {
    // An embedding is anything but counts.
    let file = case("b09_four_blobs.h5ad");
    let Record { row, notes, .. } = probe(&file, &file, json!({"batch_key": "none"})).unwrap();
    assert_eq!(row.rnx_k15, None);
    let reason = notes.iter().find(|note| note.starts_with("rnx is NA")).unwrap();
    assert!(reason.contains("does not hold raw counts") && reason.contains("gene"), "{reason}");
    assert!(row.pr.is_some() && row.aniso_spec.is_some() && row.id_twonn_raw.is_some());
    let shuffled = case("b09_four_blobs_shuffled.h5ad");
    let Record { row: other, .. } = probe(&shuffled, &shuffled, json!({"batch_key": "none"})).unwrap();
    assert_eq!(
        Row { embedding_file: String::new(), notes: String::new(), ..other },
        Row { embedding_file: String::new(), notes: String::new(), ..row }
    );
}

#[test]
fn a_missing_column_is_said() {
    let (embedding, data) = (case("b12_embedding_147_shuffled.h5ad"), case("b12_data.h5ad"));
    let Record { row, notes, .. } =
        probe(&embedding, &data, json!({"batch_key": "donor", "label_key": "kind"})).unwrap();
    assert_eq!((row.rnx_n_batches, row.partial_eta2_celltype), (1, None));
    assert!(notes.contains(&"obs has no column donor: all cells are one batch".to_owned()), "{notes:?}");
    assert!(notes.contains(&"obs has no column kind: metrics of cell types are NA".to_owned()));
}

#[test]
fn a_draw_is_the_same_for_every_embedding_of_a_data_set() {
    let names: Vec<String> = (0..50).map(|cell| format!("cell{cell:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let drawn = draw(&names, 20, seed(0, "a"));
    assert_eq!(drawn, draw(&names, 20, seed(0, "a")));
    assert!(drawn.is_sorted() && drawn.len() == 20);
    assert_ne!(drawn, draw(&names, 20, seed(1, "a")));
    assert_ne!(drawn, draw(&names, 20, seed(0, "b")));
    let (embedding, data) = (case("b12_embedding_147_shuffled.h5ad"), case("b12_data.h5ad"));
    let Record { row, notes, .. } = probe(&embedding, &data, json!({"max_cells": 60})).unwrap();
    assert!(row.n_cells_used > 50 && row.n_cells_used <= 60 && row.rnx_mean.is_none(), "{row:?}");
    assert!(notes.contains(&"60 of 150 cells drawn, seed 0".to_owned()), "{notes:?}");
}

#[test]
fn tables_hold_empty_fields_for_na() {
    let rows = [Row { method: "b".into(), pr: Some(2.5), ..Row::default() }, Row::default()];
    let text = String::from_utf8(table(&rows).unwrap()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("dataset_id,method,embedding_file,n_cells_total,n_cells_used,embedding_dim,")
    );
    assert!(lines[0].ends_with(",partial_eta2_status,probe_status,failure_reason,notes"));
    assert!(lines[1].contains(",2.5,,") && lines.len() == 3);
}
