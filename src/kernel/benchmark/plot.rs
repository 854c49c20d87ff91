//! The score table as a picture: methods x metrics, shaded cells, totals as bars. One SVG file that needs nothing else.
//!
//! It brings its own ground, light or dark as the viewer prefers, so that it can be read on any page.

use std::fmt::Write;

use super::Clustering;
use super::metrics::{Group, METRICS, Metric};
use super::totals::MethodTotal;

const CELL_WIDTH: f64 = 62.0;
const ROW_HEIGHT: f64 = 30.0;
const MARGIN: f64 = 20.0;
/// Between groups of columns.
const GAP: f64 = 14.0;
const TOTAL_WIDTH: f64 = 92.0;
/// Title, group names and metric names.
const HEAD: f64 = 92.0;
const FOOT: f64 = 82.0;
/// Average width of a character of method names.
const CHARACTER: f64 = 7.6;
/// The notes below the table have to fit.
const NARROWEST: f64 = 760.0;

type Rgb = [f64; 3];

/// Lightest and darkest shade.
const BIO: [Rgb; 2] = [[232.0, 241.0, 250.0], [8.0, 69.0, 136.0]];
const BATCH: [Rgb; 2] = [[253.0, 238.0, 222.0], [152.0, 52.0, 4.0]];

/// Luminance at which dark and light ink have the same contrast.
const EQUAL_CONTRAST: f64 = 0.19;

const STYLE: &str = "\
text{font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;font-size:12px;fill:#1c2126}\
.ground{fill:#ffffff}.title{font-size:15px;font-weight:600}.quiet{fill:#59636e}.line{stroke:#c5ccd3;stroke-width:1}\
.na{fill:#e9ecef}.bar{fill:#6b7682}.track{fill:#eceff2}.mid{text-anchor:middle}.end{text-anchor:end}\
.best{font-weight:700}.group{font-weight:600}\
@media (prefers-color-scheme:dark){text{fill:#e6eaee}.ground{fill:#14181c}.quiet{fill:#a3adb8}.line{stroke:#3d454d}\
.na{fill:#2b3137}.bar{fill:#8f9aa6}.track{fill:#262c32}}\
.ink-dark{fill:#10151a}.ink-light{fill:#ffffff}";

/// The picture of ranked methods. `samples` is the number of data sets that the means are taken over.
pub fn svg(totals: &[MethodTotal], clustering: Clustering, samples: usize) -> String {
    let groups: Vec<Columns> =
        Group::ALL.into_iter().filter_map(|group| Columns::of(group, totals)).collect();
    let longest = totals.iter().map(|total| total.method.chars().count()).max().unwrap_or(0).max(6);
    let first = MARGIN + 28.0 + longest as f64 * CHARACTER + 12.0;
    let cells: f64 = groups.iter().map(|columns| columns.metrics.len() as f64 * CELL_WIDTH + GAP).sum();
    let bars = Bar::shown(totals);
    let width = (first + cells + bars.len() as f64 * TOTAL_WIDTH + MARGIN).max(NARROWEST);
    let height = HEAD + totals.len() as f64 * ROW_HEIGHT + FOOT;
    let mut picture = Picture(String::new());
    picture.open(width, height);
    picture.text(MARGIN, 28.0, "title", &title(totals.len(), samples));
    let mut left = first;
    for columns in &groups {
        picture.columns(columns, totals, left);
        left += columns.metrics.len() as f64 * CELL_WIDTH + GAP;
    }
    picture.totals(&bars, totals, left);
    picture.methods(totals, first);
    picture.legend(height, clustering);
    picture.0.push_str("</svg>\n");
    picture.0
}

fn title(methods: usize, samples: usize) -> String {
    let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let over = if samples > 1 { format!(", mean of {}", plural(samples, "data set")) } else { String::new() };
    format!("Scores of {}{over}", plural(methods, "embedding method"))
}

/// The metrics of a group that were asked for.
struct Columns {
    group: Group,
    metrics: Vec<(usize, &'static Metric)>,
}

impl Columns {
    fn of(group: Group, totals: &[MethodTotal]) -> Option<Columns> {
        let metrics = METRICS.iter().enumerate().filter(|(_, metric)| metric.group == group);
        let shown = totals.iter().any(|total| match group {
            Group::BioConservation => total.bio.is_some(),
            Group::BatchMixing => total.batch.is_some(),
        });
        shown.then(|| Columns { group, metrics: metrics.collect() })
    }

    fn title(&self) -> &'static str {
        match self.group {
            Group::BioConservation => "Bio conservation",
            Group::BatchMixing => "Batch mixing",
        }
    }

    fn shades(&self) -> [Rgb; 2] {
        match self.group {
            Group::BioConservation => BIO,
            Group::BatchMixing => BATCH,
        }
    }
}

/// A column of totals.
struct Bar {
    name: &'static str,
    value: fn(&MethodTotal) -> Option<f64>,
}

impl Bar {
    /// Those that any method has.
    fn shown(totals: &[MethodTotal]) -> Vec<Bar> {
        let bars = [
            Bar { name: "bio", value: |total| total.bio },
            Bar { name: "batch", value: |total| total.batch },
            Bar { name: "overall", value: |total| total.overall },
        ];
        bars.into_iter().filter(|bar| totals.iter().any(|total| (bar.value)(total).is_some())).collect()
    }
}

struct Picture(String);

impl Picture {
    fn open(&mut self, width: f64, height: f64) {
        self.put(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"Benchmark scores\">\n\
             <style>{STYLE}</style>\n<rect class=\"ground\" width=\"100%\" height=\"100%\" rx=\"8\"/>\n"
        ));
    }

    fn columns(&mut self, columns: &Columns, totals: &[MethodTotal], left: f64) {
        let width = columns.metrics.len() as f64 * CELL_WIDTH;
        self.text(left + width / 2.0, 56.0, "mid group", columns.title());
        self.line(left, 64.0, left + width);
        for (position, (index, metric)) in columns.metrics.iter().enumerate() {
            let x = left + position as f64 * CELL_WIDTH;
            self.put(format_args!("<g><title>{}</title>", escape(metric.title)));
            self.text(x + CELL_WIDTH / 2.0, 82.0, "mid quiet", metric.name);
            self.put(format_args!("</g>\n"));
            let best =
                totals.iter().filter_map(|total| total.metrics[*index]).fold(f64::NEG_INFINITY, f64::max);
            for (row, total) in totals.iter().enumerate() {
                let best = totals.len() > 1 && total.metrics[*index] == Some(best);
                self.cell(x, top(row), metric, total.metrics[*index], columns.shades(), best);
            }
        }
    }

    fn cell(&mut self, x: f64, y: f64, metric: &Metric, value: Option<f64>, shades: [Rgb; 2], best: bool) {
        let (class, fill, ink, text) = match value {
            None => (" class=\"na\"", String::new(), "quiet", "NA".to_owned()),
            Some(value) => {
                let colour = mix(shades, metric.scaled(value));
                let ink = if luminance(colour) > EQUAL_CONTRAST { "ink-dark" } else { "ink-light" };
                let [red, green, blue] = colour;
                ("", format!(" fill=\"rgb({red:.0},{green:.0},{blue:.0})\""), ink, format!("{value:.3}"))
            }
        };
        self.put(format_args!(
            "<rect{class}{fill} x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"3\"/>\n",
            x + 1.0,
            CELL_WIDTH - 2.0,
            ROW_HEIGHT - 2.0
        ));
        let weight = if best { " best" } else { "" };
        self.text(x + CELL_WIDTH / 2.0, y + 18.5, &format!("mid {ink}{weight}"), &text);
    }

    fn totals(&mut self, bars: &[Bar], totals: &[MethodTotal], left: f64) {
        let width = bars.len() as f64 * TOTAL_WIDTH;
        self.text(left + width / 2.0, 56.0, "mid group", "Totals");
        self.line(left, 64.0, left + width);
        for (position, bar) in bars.iter().enumerate() {
            let x = left + position as f64 * TOTAL_WIDTH;
            self.text(x + 4.0, 82.0, "quiet", bar.name);
            for (row, total) in totals.iter().enumerate() {
                self.bar(x, top(row), (bar.value)(total), position + 1 == bars.len());
            }
        }
    }

    fn bar(&mut self, x: f64, y: f64, value: Option<f64>, strong: bool) {
        let full = TOTAL_WIDTH - 46.0;
        let weight = if strong { "best" } else { "" };
        let Some(value) = value else {
            self.text(x + 4.0, y + 18.5, "quiet", "–");
            return;
        };
        for (class, width) in [("track", full), ("bar", full * value.clamp(0.0, 1.0))] {
            self.put(format_args!(
                "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"8\" rx=\"2\"/>\n",
                x + 4.0,
                y + 10.0
            ));
        }
        self.text(x + full + 8.0, y + 18.5, weight, &format!("{value:.3}"));
    }

    fn methods(&mut self, totals: &[MethodTotal], right: f64) {
        self.text(right - 10.0, 82.0, "end quiet", "method");
        for (row, total) in totals.iter().enumerate() {
            let rank = total.rank.map_or("–".to_owned(), |rank| rank.to_string());
            self.text(MARGIN + 14.0, top(row) + 18.5, "end quiet", &rank);
            self.text(right - 10.0, top(row) + 18.5, "end", &total.method);
        }
    }

    fn legend(&mut self, height: f64, clustering: Clustering) {
        let y = height - FOOT + 20.0;
        for (position, shades) in [BIO, BATCH].into_iter().enumerate() {
            for step in 0..20 {
                let [red, green, blue] = mix(shades, f64::from(step) / 19.0);
                self.put(format_args!(
                    "<rect fill=\"rgb({red:.0},{green:.0},{blue:.0})\" x=\"{:.1}\" y=\"{:.1}\" width=\"6.2\" height=\"7\"/>\n",
                    MARGIN + 14.0 + f64::from(step) * 6.0,
                    y + 8.0 * position as f64
                ));
            }
        }
        self.text(MARGIN + 8.0, y + 12.0, "end quiet", "0");
        self.text(
            MARGIN + 140.0,
            y + 12.0,
            "quiet",
            "1   shade of the score; ASW from −1 to 1; bold: best of its column",
        );
        let clusters = match clustering {
            Clustering::Leiden => "Leiden clusters, as many as labels or nearest to it",
            Clustering::Kmeans => "k-means clusters, as many as labels",
        };
        self.text(MARGIN, y + 34.0, "quiet", &format!("NMI, HOM, COM, FMI, ARI: {clusters}."));
        let totals = "bio: mean of NMI, ARI, (ASW + 1) / 2, cLISI, Acc@kNN, GC; batch: mean of its metrics; overall: 0.6 bio + 0.4 batch";
        self.text(MARGIN, y + 51.0, "quiet", totals);
    }

    fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        self.put(format_args!("<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{}</text>\n", escape(text)));
    }

    fn line(&mut self, left: f64, y: f64, right: f64) {
        self.put(format_args!(
            "<line class=\"line\" x1=\"{left:.1}\" y1=\"{y:.1}\" x2=\"{right:.1}\" y2=\"{y:.1}\"/>\n"
        ));
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.0.write_fmt(text);
    }
}

fn top(row: usize) -> f64 {
    HEAD + row as f64 * ROW_HEIGHT
}

fn mix([light, dark]: [Rgb; 2], share: f64) -> Rgb {
    std::array::from_fn(|channel| light[channel] + (dark[channel] - light[channel]) * share)
}

/// Relative luminance of sRGB, 0 to 1 (WCAG 2).
fn luminance(colour: Rgb) -> f64 {
    let linear = colour.map(|channel| {
        let channel = channel / 255.0;
        if channel <= 0.04045 { channel / 12.92 } else { ((channel + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
}

fn escape(text: &str) -> String {
    let legal = |c: &char| !c.is_control();
    let text: String = text.chars().filter(legal).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::super::totals::rank;
    use super::*;

    #[test]
    fn names_cannot_break_the_picture() {
        let totals = rank(&[sample("a<b>&\"c", "colon", &[("NMI", Some(0.5)), ("ASW", None)])]);
        let picture = svg(&totals, Clustering::Leiden, 1);
        assert!(
            picture.contains("a&lt;b&gt;&amp;&quot;c")
                && picture.contains(">NA<")
                && picture.contains("0.500")
        );
        assert!(!picture.contains("Batch mixing"), "no batch metric was asked for");
        assert_eq!(picture.matches("<g>").count(), picture.matches("</g>").count());
    }

    #[test]
    fn text_on_a_shade_has_contrast() {
        for shades in [BIO, BATCH] {
            for step in 0..=100 {
                let ground = luminance(mix(shades, f64::from(step) / 100.0));
                let ink = if ground > EQUAL_CONTRAST { luminance([16.0, 21.0, 26.0]) } else { 1.0 };
                let contrast = (ground.max(ink) + 0.05) / (ground.min(ink) + 0.05);
                assert!(contrast > 3.9, "{step}: {contrast}");
            }
        }
    }
}
