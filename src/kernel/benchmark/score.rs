//! All scores of one embedding, each measured.

use super::draw::{self, stratified};
use super::metrics::Group;
use super::{Clustering, MetricScore, Metrics};
use crate::kernel::agreement::Agreement;
use crate::kernel::graph::Graph;
use crate::kernel::measure::Meter;
use crate::kernel::neighbours::{Neighbours, nearest};
use crate::kernel::points::{Classes, Points};
use crate::kernel::score::Score;
use crate::kernel::sweep::match_labels;
use crate::kernel::{accuracy, bras, graph, kbet, kmeans, lisi, silhouette};

/// Perplexity of the LISI family.
const PERPLEXITY: f64 = 30.0;

/// Neighbours of kBET: 50, the cell itself counted.
const KBET_NEIGHBOURS: usize = 49;

/// Neighbours of the Leiden graph: 15, the cell itself counted.
const LEIDEN_NEIGHBOURS: usize = 14;

/// Starts of k-means, of which the tightest clustering counts.
const KMEANS_STARTS: usize = 10;

const LEIDEN_SEED: u64 = 0;
const KMEANS_SEED: u64 = 1;
const FOLD_SEED: u64 = 42;

/// What to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    pub metrics: Metrics,
    pub clustering: Clustering,
    /// Most cells for the batch metrics; 0 takes all.
    pub batch_max_cells: usize,
}

/// The scores of an embedding.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    pub scores: Vec<MetricScore>,
    /// The cluster of each cell, where bio conservation was asked for.
    pub clusters: Option<Vec<u32>>,
}

/// Called with the part of the work and how far it has come, from 0 to 1.
pub type Say<'a> = &'a (dyn Fn(&str, f64) + Sync);

/// Scores an embedding against its labels and batches, one of each per cell.
///
/// Cells should come sorted by name: then no score depends on the order of a file.
pub fn score(
    points: &Points,
    labels: &Classes,
    batches: Option<&Classes>,
    params: Params,
    meter: &mut Meter,
    say: Say<'_>,
) -> Scores {
    let mut scores = Vec::new();
    let mut clusters = None;
    let whole = Part { points, labels, batches, meter, say };
    let neighbours = if params.metrics.include(Group::BioConservation) {
        let (found, bio, neighbours) = whole.bio(params.clustering);
        scores.extend(bio);
        clusters = Some(found);
        Some(neighbours)
    } else {
        None
    };
    if params.metrics.include(Group::BatchMixing) {
        scores.extend(batch_scores(points, labels, batches, params, neighbours, meter, say));
    }
    Scores { scores, clusters }
}

fn batch_scores(
    points: &Points,
    labels: &Classes,
    batches: Option<&Classes>,
    params: Params,
    neighbours: Option<Neighbours>,
    meter: &mut Meter,
    say: Say<'_>,
) -> Vec<MetricScore> {
    let Some(batches) = batches else { return Vec::new() };
    let drawn = stratified(labels, batches, params.batch_max_cells, draw::SEED);
    if drawn.len() == points.len() {
        return Part { points, labels, batches: Some(batches), meter, say }.batch(batches, neighbours, None);
    }
    let note = format!(
        "on {} of {} cells, drawn within every combination of label and batch",
        drawn.len(),
        points.len()
    );
    let (points, labels, batches) = (points.select(&drawn), labels.select(&drawn), batches.select(&drawn));
    let part = Part { points: &points, labels: &labels, batches: Some(&batches), meter, say };
    part.batch(&batches, None, Some(&note))
}

/// The cells of a group of metrics.
struct Part<'a> {
    points: &'a Points,
    labels: &'a Classes,
    batches: Option<&'a Classes>,
    meter: &'a mut Meter,
    say: Say<'a>,
}

impl Part<'_> {
    /// Does one part of the work, measured and announced.
    fn run<T>(&mut self, name: &str, work: impl FnOnce(&Points, &Classes, &(dyn Fn(f64) + Sync)) -> T) -> T {
        let say = self.say;
        let tick = |done: f64| say(name, done);
        tick(0.0);
        let (points, labels) = (self.points, self.labels);
        self.meter.run(name, || work(points, labels, &tick))
    }

    fn neighbours(&mut self, name: &str) -> Neighbours {
        self.run(name, |points, _, tick| nearest(points, lisi::neighbours_for(PERPLEXITY), tick))
    }

    fn bio(mut self, clustering: Clustering) -> (Vec<u32>, Vec<MetricScore>, Neighbours) {
        let neighbours = self.neighbours("neighbours");
        let near = neighbours.search.note();
        let (clusters, agreement, note) = self.run("clustering", |points, labels, tick| match clustering {
            Clustering::Leiden => leiden(&neighbours, labels, tick),
            Clustering::Kmeans => k_means(points, labels, tick),
        });
        let agreements = [
            ("NMI", agreement.nmi),
            ("HOM", agreement.homogeneity),
            ("COM", agreement.completeness),
            ("FMI", agreement.fowlkes_mallows),
            ("ARI", agreement.adjusted_rand),
        ];
        let mut scores: Vec<(&str, Score)> = agreements
            .into_iter()
            .map(|(name, value)| {
                let score = Score::number(value).note(note.clone());
                (name, if clustering == Clustering::Leiden { with(score, &near) } else { score })
            })
            .collect();
        let silhouette = self.run("ASW", |points, labels, tick| silhouette::asw(points, labels, tick));
        let clisi = self.run("cLISI", |_, labels, _| lisi::clisi(&neighbours, labels, PERPLEXITY));
        let accuracy = self.run("Acc@kNN", |points, labels, _| {
            accuracy::knn_accuracy(points, &neighbours, labels, FOLD_SEED)
        });
        let connectivity = self.run("GC", |_, labels, _| graph::graph_connectivity(&neighbours, labels));
        scores.push(("ASW", silhouette));
        scores.push(("cLISI", with(clisi, &near)));
        scores.push(("Acc@kNN", with(accuracy, &near)));
        scores.push(("GC", with(connectivity, &near)));
        (clusters, self.records(Group::BioConservation, scores), neighbours)
    }

    fn batch(
        mut self,
        batches: &Classes,
        neighbours: Option<Neighbours>,
        note: Option<&str>,
    ) -> Vec<MetricScore> {
        if batches.len() < 2 {
            let one = || Score::missing("all cells are of one batch: nothing can mix");
            let scores = Group::BatchMixing.metrics().map(|metric| (metric.name, one())).collect();
            return self.records(Group::BatchMixing, scores);
        }
        let neighbours = match neighbours {
            Some(neighbours) => neighbours,
            None => self.neighbours("batch neighbours"),
        };
        let near = neighbours.search.note();
        let kbet = self.run("kBET", |_, labels, tick| {
            let graph = Graph::connectivities_within(&neighbours, KBET_NEIGHBOURS);
            kbet::kbet(&graph, labels, batches, tick)
        });
        let bras = self.run("BRAS", |points, labels, _| bras::bras(points, labels, batches));
        let ilisi = self.run("iLISI", |_, _, _| lisi::ilisi(&neighbours, batches, PERPLEXITY));
        drop(neighbours);
        let cilisi = self
            .run("CiLISI", |points, labels, tick| lisi::cilisi(points, labels, batches, PERPLEXITY, tick));
        let scores = vec![
            ("kBET", with(kbet, &near)),
            ("BRAS", bras),
            ("iLISI", with(ilisi, &near)),
            ("CiLISI", cilisi),
        ];
        let scores = scores.into_iter().map(|(name, score)| (name, with(score, &note.map(str::to_owned))));
        self.records(Group::BatchMixing, scores.collect())
    }

    fn records(&self, group: Group, scores: Vec<(&str, Score)>) -> Vec<MetricScore> {
        let record = |(metric, score): (&str, Score)| MetricScore {
            metric: metric.to_owned(),
            group,
            value: score.value,
            notes: score.notes,
            n_cells: self.points.len(),
            n_labels: self.labels.len(),
            n_batches: self.batches.map(Classes::len),
        };
        scores.into_iter().map(record).collect()
    }
}

fn leiden(
    neighbours: &Neighbours,
    labels: &Classes,
    tick: &(dyn Fn(f64) + Sync),
) -> (Vec<u32>, Agreement, String) {
    let graph = Graph::connectivities_within(neighbours, LEIDEN_NEIGHBOURS);
    let found = match_labels(&graph, labels, LEIDEN_SEED, tick);
    let note = format!(
        "Leiden at resolution {:.1}: {} clusters for {} labels, {} resolutions tried",
        found.resolution,
        found.clusters,
        labels.len(),
        found.tried
    );
    (found.labels, found.agreement, note)
}

fn k_means(points: &Points, labels: &Classes, tick: &(dyn Fn(f64) + Sync)) -> (Vec<u32>, Agreement, String) {
    let found = kmeans::kmeans(points, labels.len(), KMEANS_STARTS, KMEANS_SEED, tick);
    let agreement = Agreement::of(&labels.codes, &found.labels);
    (
        found.labels,
        agreement,
        format!("k-means with {} clusters, best of {KMEANS_STARTS} starts", labels.len()),
    )
}

fn with(score: Score, note: &Option<String>) -> Score {
    match note {
        Some(note) => score.note(note.clone()),
        None => score,
    }
}
