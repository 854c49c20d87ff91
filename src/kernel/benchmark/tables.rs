//! The tables of `benchmark`, as CSV text: columns and order as notebooks know them. NA is an empty cell.

use serde_json::{Value, json};

use super::metrics::{Group, METRICS, Metric};
use super::totals::{BIO_WEIGHT, MethodTotal};
use super::{Clustering, MetricScore, Sample, costs};
use crate::error::{Error, Result};

/// One row a score: `sample_id,method,metric,value,note,metric_group,n_cells,n_dims,n_labels,n_batches`.
pub fn long(samples: &[&Sample], group: Group) -> Result<String> {
    let mut table = Csv::new(&[
        "sample_id",
        "method",
        "metric",
        "value",
        "note",
        "metric_group",
        "n_cells",
        "n_dims",
        "n_labels",
        "n_batches",
    ])?;
    for sample in samples {
        for score in scores(sample, group) {
            table.row([
                sample.sample_id.clone(),
                sample.method.clone(),
                score.metric.clone(),
                number(score.value),
                note(sample, score),
                group.name().to_owned(),
                score.n_cells.to_string(),
                sample.n_dims.to_string(),
                score.n_labels.to_string(),
                score.n_batches.map(|count| count.to_string()).unwrap_or_default(),
            ])?;
        }
    }
    table.finish()
}

/// One row a sample: `sample_id,method`, then the group's metrics in the order of their names' bytes.
pub fn wide(samples: &[&Sample], group: Group) -> Result<String> {
    let mut metrics: Vec<&Metric> = group.metrics().collect();
    metrics.sort_by_key(|metric| metric.name);
    let names = metrics.iter().map(|metric| metric.name);
    let mut table = Csv::new(&["sample_id", "method"].into_iter().chain(names).collect::<Vec<_>>())?;
    for sample in samples {
        let value = |metric: &&Metric| number(sample.score(metric.name).and_then(|score| score.value));
        let row = [sample.sample_id.clone(), sample.method.clone()];
        table.row(row.into_iter().chain(metrics.iter().map(value)))?;
    }
    table.finish()
}

/// One row a method, best first: rank, totals, then the mean of every metric over samples.
pub fn ranking(totals: &[MethodTotal]) -> Result<String> {
    let head = ["rank", "method", "n_samples", "overall", "bio_conservation", "batch_mixing"];
    let names = METRICS.iter().map(|metric| metric.name);
    let columns: Vec<&str> = head.into_iter().chain(names).chain(["note"]).collect();
    let mut table = Csv::new(&columns)?;
    for total in totals {
        let head = [
            total.rank.map(|rank| rank.to_string()).unwrap_or_default(),
            total.method.clone(),
            total.n_samples.to_string(),
            number(total.overall),
            number(total.bio),
            number(total.batch),
        ];
        let values = total.metrics.iter().map(|&value| number(value));
        table.row(head.into_iter().chain(values).chain([total.notes.join("; ")]))?;
    }
    table.finish()
}

/// Everything in one document: definitions of the totals, methods in order, and every score with its cost.
pub fn document(clustering: Clustering, totals: &[MethodTotal], samples: &[Sample]) -> Value {
    let counted = |group: Group| {
        group.metrics().filter(|metric| metric.in_total).map(|metric| metric.name).collect::<Vec<_>>()
    };
    let methods: Vec<Value> = totals
        .iter()
        .map(|total| {
            let means: serde_json::Map<String, Value> = METRICS
                .iter()
                .zip(&total.metrics)
                .map(|(metric, value)| (metric.name.to_owned(), json!(value)))
                .collect();
            let mut document = json!(total);
            document["metrics"] = means.into();
            document
        })
        .collect();
    json!({
        "schema": 1,
        "clustering": clustering,
        "totals": {
            "bio_conservation": { "weight": BIO_WEIGHT, "mean_of": counted(Group::BioConservation) },
            "batch_mixing": { "weight": 1.0 - BIO_WEIGHT, "mean_of": counted(Group::BatchMixing) },
            "scale": "0 to 1; ASW counts as (ASW + 1) / 2",
        },
        "methods": methods,
        "samples": samples.iter().map(sample_document).collect::<Vec<_>>(),
    })
}

fn sample_document(sample: &Sample) -> Value {
    let costs = costs(sample);
    let mut document = json!(sample);
    if let Some(scores) = document["scores"].as_array_mut() {
        for (entry, score) in scores.iter_mut().zip(&sample.scores) {
            if let Some(phase) = costs.get(score.metric.as_str()) {
                entry["seconds"] = json!(phase.seconds);
                entry["peak_rss_bytes"] = json!(phase.peak_rss_bytes);
            }
        }
    }
    document
}

fn scores(sample: &Sample, group: Group) -> impl Iterator<Item = &MetricScore> {
    sample.scores.iter().filter(move |score| score.group == group)
}

fn note(sample: &Sample, score: &MetricScore) -> String {
    let notes: Vec<&str> = score.notes.iter().chain(&sample.notes).map(String::as_str).collect();
    notes.join("; ")
}

/// The shortest text that reads back as the same number; nothing for NA.
fn number(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

struct Csv(csv::Writer<Vec<u8>>);

impl Csv {
    fn new(columns: &[&str]) -> Result<Csv> {
        let mut table = Csv(csv::Writer::from_writer(Vec::new()));
        table.row(columns.iter().map(|column| (*column).to_owned()))?;
        Ok(table)
    }

    fn row(&mut self, cells: impl IntoIterator<Item = String>) -> Result<()> {
        self.0.write_record(cells.into_iter().map(String::into_bytes)).map_err(fault)
    }

    fn finish(self) -> Result<String> {
        let bytes = self.0.into_inner().map_err(|error| fault(error.error()))?;
        String::from_utf8(bytes).map_err(fault)
    }
}

fn fault(error: impl std::fmt::Display) -> Error {
    Error::failed("cannot write the scores as CSV").cause(error)
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::super::totals::rank;
    use super::*;

    #[test]
    fn na_is_an_empty_cell_with_its_reason() {
        let sample = sample("pca", "colon", &[("NMI", Some(0.5)), ("ASW", None), ("kBET", Some(1.0))]);
        insta::assert_snapshot!(long(&[&sample], Group::BioConservation).unwrap(), @r"
        sample_id,method,metric,value,note,metric_group,n_cells,n_dims,n_labels,n_batches
        colon,pca,NMI,0.5,,bio_conservation,100,10,3,
        colon,pca,ASW,,one label only,bio_conservation,100,10,3,
        ");
        insta::assert_snapshot!(wide(&[&sample], Group::BioConservation).unwrap(), @r"
        sample_id,method,ARI,ASW,Acc@kNN,COM,FMI,GC,HOM,NMI,cLISI
        colon,pca,,,,,,,,0.5,
        ");
        insta::assert_snapshot!(ranking(&rank(&[sample])).unwrap(), @r#"
        rank,method,n_samples,overall,bio_conservation,batch_mixing,NMI,HOM,COM,FMI,ARI,ASW,cLISI,Acc@kNN,GC,kBET,BRAS,iLISI,CiLISI,note
        1,pca,1,0.7,0.5,1,0.5,,,,,,,,,1,,,,"bio_conservation without ARI, ASW, cLISI, Acc@kNN, GC (NA); batch_mixing without BRAS, iLISI, CiLISI (NA)"
        "#);
    }

    #[test]
    fn the_document_gives_every_score_its_cost() {
        let mut sample =
            sample("pca", "colon", &[("NMI", Some(0.5)), ("HOM", Some(0.4)), ("ASW", Some(0.1))]);
        sample.phases.push(crate::usage::Phase {
            name: "clustering".to_owned(),
            seconds: 2.5,
            peak_rss_bytes: Some(1 << 20),
        });
        let document = document(Clustering::Leiden, &rank(std::slice::from_ref(&sample)), &[sample]);
        let scores = &document["samples"][0]["scores"];
        assert_eq!((&scores[0]["seconds"], &scores[1]["peak_rss_bytes"]), (&json!(2.5), &json!(1 << 20)));
        assert_eq!(scores[2].get("seconds"), None);
        assert_eq!(document["methods"][0]["metrics"]["NMI"], json!(0.5));
    }
}
