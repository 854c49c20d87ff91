//! What a finished benchmark found, as a short table.

use serde_json::Value;

use crate::error::Result;
use crate::launch::Finished;
use crate::table::{Column, Table};
use crate::ui::Ui;

/// The methods in order, on stderr beside the cost: stdout holds the files.
pub fn print_ranking(finished: &Finished, ui: &Ui) -> Result<()> {
    let document: Option<Value> = super::report::published(finished, "_scores.json")?;
    if let Some(methods) = document.as_ref().and_then(|document| document["methods"].as_array()) {
        ui.note(format_args!("{}\n", table(methods)));
        for (method, note) in notes(methods) {
            ui.note(format_args!("{method}: {note}"));
        }
    }
    Ok(())
}

fn table(methods: &[Value]) -> Table {
    let head = [Column::number("rank"), Column::text("method").trimmed(), Column::number("data sets")];
    let totals = ["bio", "batch", "overall"].map(Column::number);
    let mut table = Table::new(head.into_iter().chain(totals));
    for method in methods {
        let whole = |key: &str| method[key].as_u64().map(|value| value.to_string()).unwrap_or_default();
        let score = |key: &str| method[key].as_f64().map(|value| format!("{value:.3}")).unwrap_or_default();
        table.row([
            whole("rank"),
            method["method"].as_str().unwrap_or_default().to_owned(),
            whole("n_samples"),
            score("bio"),
            score("batch"),
            score("overall"),
        ]);
    }
    table
}

fn notes(methods: &[Value]) -> impl Iterator<Item = (&str, &str)> {
    methods.iter().flat_map(|method| {
        let name = method["method"].as_str().unwrap_or_default();
        let notes = method["notes"].as_array().map(Vec::as_slice).unwrap_or_default();
        notes.iter().filter_map(move |note| Some((name, note.as_str()?)))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_absent_total_is_a_dash() {
        let methods = [
            json!({"rank": 1, "method": "pca", "n_samples": 2, "bio": 0.61234, "batch": null, "overall": null, "notes": []}),
            json!({"rank": null, "method": "uce", "n_samples": 1, "bio": null, "batch": null, "overall": null,
                   "notes": ["not scored on colon"]}),
        ];
        insta::assert_snapshot!(table(&methods).render(None), @r"
        rank  method  data sets    bio  batch  overall
           1  pca             2  0.612      -        -
           -  uce             1      -      -        -
        ");
        assert_eq!(notes(&methods).collect::<Vec<_>>(), [("uce", "not scored on colon")]);
    }
}
