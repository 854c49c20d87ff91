use super::*;
use crate::error::Kind;
use crate::matrix::{Csr, RowBlock};

/// Counts with a few cell types, from a fixed generator.
fn counts(cells: usize, genes: usize, seed: u64) -> Csr {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let rates: Vec<f64> = (0..genes).map(|_| 2.0 * uniform().powi(3)).collect();
    let mut matrix = Csr { columns: genes, indptr: vec![0], ..Csr::default() };
    for cell in 0..cells {
        let depth = 0.5 + uniform();
        for (gene, rate) in rates.iter().enumerate() {
            let marker = if gene % 7 == cell % 5 { 4.0 } else { 1.0 };
            let count = (-uniform().ln() * rate * depth * marker).floor();
            if count > 0.0 {
                matrix.indices.push(gene as u32);
                matrix.values.push(count);
            }
        }
        matrix.indptr.push(matrix.indices.len());
    }
    matrix
}

fn from_dense(rows: &[&[f64]]) -> Csr {
    let mut matrix = Csr { columns: rows[0].len(), indptr: vec![0], ..Csr::default() };
    for row in rows {
        for (gene, &count) in (0u32..).zip(*row).filter(|(_, count)| **count != 0.0) {
            matrix.indices.push(gene);
            matrix.values.push(count);
        }
        matrix.indptr.push(matrix.indices.len());
    }
    matrix
}

fn select_rows(matrix: &Csr, rows: &[usize]) -> Csr {
    let mut selected = Csr { columns: matrix.columns, indptr: vec![0], ..Csr::default() };
    for &row in rows {
        let range = matrix.indptr[row]..matrix.indptr[row + 1];
        selected.indices.extend(&matrix.indices[range.clone()]);
        selected.values.extend(&matrix.values[range]);
        selected.indptr.push(selected.indices.len());
    }
    selected
}

/// The same matrix in blocks of a few rows.
struct Cut(Csr, usize);

impl RowBlocks for Cut {
    fn shape(&self) -> (usize, usize) {
        self.0.shape()
    }

    fn for_each_block(&self, visit: &mut dyn FnMut(RowBlock<'_>) -> Result<()>) -> Result<()> {
        let cells = self.0.shape().0;
        for first_row in (0..cells).step_by(self.1) {
            let rows: Vec<usize> = (first_row..cells.min(first_row + self.1)).collect();
            let part = select_rows(&self.0, &rows);
            visit(RowBlock {
                first_row,
                indptr: &part.indptr,
                indices: &part.indices,
                values: &part.values,
            })?;
        }
        Ok(())
    }
}

fn quiet(_: Progress) {}

fn params(n_top_genes: usize, n_comps: usize) -> Params {
    Params { n_top_genes, n_comps, ..Params::default() }
}

/// The recipe by the book: a dense matrix of centred scaled values, cell by cell.
fn scaled_dense(matrix: &Csr, genes: &[u32], params: &Params) -> Vec<Vec<f64>> {
    let (cells, columns) = matrix.shape();
    let mut dense = vec![vec![0.0; columns]; cells];
    matrix
        .for_each_block(&mut |block| {
            for (row, logs) in dense.iter_mut().enumerate() {
                let (indices, values) = block.row(row);
                let total: f64 = values.iter().sum();
                for (&gene, value) in indices.iter().zip(values) {
                    logs[gene as usize] = (value / total * params.target_sum).ln_1p();
                }
            }
            Ok(())
        })
        .unwrap();
    let mut kept: Vec<Vec<f64>> =
        dense.iter().map(|row| genes.iter().map(|&gene| row[gene as usize]).collect()).collect();
    for gene in 0..genes.len() {
        let mean = |rows: &[Vec<f64>]| rows.iter().map(|row| row[gene]).sum::<f64>() / cells as f64;
        let centre = mean(&kept);
        let variance =
            kept.iter().map(|row| (row[gene] - centre).powi(2)).sum::<f64>() / (cells as f64 - 1.0);
        let sd = if params.scale && variance > 1e-20 { variance.sqrt() } else { 1.0 };
        let most = params.max_value.filter(|_| params.scale).unwrap_or(f64::INFINITY);
        kept.iter_mut().for_each(|row| row[gene] = ((row[gene] - centre) / sd).clamp(-most, most));
        let centre = mean(&kept);
        kept.iter_mut().for_each(|row| row[gene] -= centre);
    }
    kept
}

/// Checks by definition that a model is the PCA of its data, to a tolerance relative to the first eigenvalue.
fn assert_is_pca(matrix: &Csr, params: &Params, model: &Model, scores: &[f32], tolerance: f64) {
    let scaled = scaled_dense(matrix, &model.genes, params);
    let freedom = scaled.len() as f64 - 1.0;
    let total: f64 = scaled.iter().flatten().map(|value| value * value).sum::<f64>() / freedom;
    assert!((model.total_variance / total - 1.0).abs() < tolerance);
    let (width, genes) = (model.n_comps(), model.genes.len());
    let largest = model.eigenvalues[0];
    for (index, component) in model.components.chunks_exact(genes).enumerate() {
        let projected: Vec<f64> = scaled
            .iter()
            .map(|row| row.iter().zip(component).map(|(value, weight)| value * weight).sum())
            .collect();
        for gene in 0..genes {
            let product: f64 =
                scaled.iter().zip(&projected).map(|(row, score)| row[gene] * score).sum::<f64>() / freedom;
            let residual = product - model.eigenvalues[index] * component[gene];
            assert!(residual.abs() < tolerance * largest, "component {index}, gene {gene}: {residual}");
        }
        for (cell, score) in projected.iter().enumerate() {
            let given = f64::from(scores[cell * width + index]);
            assert!((given - score).abs() < tolerance.max(1e-6) * largest.sqrt() * 10.0, "{given} {score}");
        }
        for (other, weights) in model.components.chunks_exact(genes).enumerate() {
            let product: f64 = component.iter().zip(weights).map(|(a, b)| a * b).sum();
            let expected = if other == index { 1.0 } else { 0.0 };
            assert!((product - expected).abs() < 1e-8, "components {index} and {other}: {product}");
        }
        let top =
            component.iter().fold(0.0f64, |top, value| if value.abs() > top.abs() { *value } else { top });
        assert!(top > 0.0, "component {index} has its largest loading at {top}");
        assert!((model.variance_ratio[index] - model.eigenvalues[index] / total).abs() < tolerance);
    }
    assert!(model.eigenvalues.is_sorted_by(|a, b| a >= b));
}

#[test]
fn components_are_eigenvectors_of_the_covariance() {
    for (cells, genes) in [(150, 40), (90, 200)] {
        let matrix = counts(cells, genes, 3);
        for params in [
            params(0, 12),
            params(25, 12),
            Params { max_value: Some(0.4), ..params(0, 12) },
            Params { max_value: None, ..params(0, 12) },
            Params { scale: false, ..params(0, 12) },
        ] {
            let (fit, scores) = fit_transform(&matrix, &params, &quiet).unwrap();
            assert_eq!(fit.notes, []);
            assert_is_pca(&matrix, &params, &fit.model, &scores, 1e-9);
        }
    }
}

/// Decomposes all genes of a matrix in one of the three ways.
fn decomposed(
    matrix: &Csr,
    params: &Params,
    way: impl Fn(&dyn RowBlocks, &Scaling, usize, &mut Phases) -> Result<Decomposition>,
) -> Model {
    let statistics = Statistics::collect(matrix, params.target_sum, &|_| ()).unwrap();
    let genes = (0..matrix.columns as u32).collect();
    let scaling = Scaling::new(&statistics, genes, params);
    let (cells, columns) = matrix.shape();
    let parts = way(matrix, &scaling, params.n_comps, &mut Phases::new(cells, &quiet)).unwrap();
    Model::new(columns, cells, scaling, parts)
}

#[test]
fn single_precision_products_and_the_dual_way_give_the_same() {
    let matrix = counts(1300, 60, 5);
    let recipe = params(0, 10);
    let double = decomposed(&matrix, &recipe, decompose::<f64>);
    let single = decomposed(&matrix, &recipe, decompose::<f32>);
    let scores = single.transform(&matrix, &|_| ()).unwrap();
    assert_is_pca(&matrix, &recipe, &single, &scores, 1e-5);
    let close = |a: &Model, b: &Model, tolerance: f64| {
        a.variance_ratio.iter().zip(&b.variance_ratio).all(|(a, b)| (a - b).abs() < tolerance)
    };
    assert!(close(&double, &single, 1e-6));

    let few = counts(50, 60, 6);
    let (double, dual) =
        (decomposed(&few, &recipe, decompose::<f64>), decomposed(&few, &recipe, dual::decompose));
    assert!(close(&double, &dual, 1e-12));
    let difference = double.components.iter().zip(&dual.components).map(|(a, b)| (a - b).abs());
    assert!(difference.fold(0.0, f64::max) < 1e-9);
}

#[test]
fn threads_and_blocks_do_not_change_a_bit() {
    // Larger than a tile, than a block and than what the eigensolver does in one piece.
    for (cells, genes, keep) in [(1100, 560, 0), (300, 900, 600)] {
        let matrix = counts(cells, genes, 11);
        let recipe = params(keep, 20);
        let run = |threads: usize, matrix: &dyn RowBlocks| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let (fit, scores) = fit_transform(matrix, &recipe, &quiet).unwrap();
                (fit.model, scores)
            })
        };
        let one = run(1, &matrix);
        assert!(one == run(8, &matrix), "8 threads");
        assert!(one == run(3, &Cut(matrix, 7)), "3 threads and blocks of 7 rows");
    }
    let matrix = counts(1100, 300, 12);
    let single = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| decomposed(&matrix, &params(0, 20), decompose::<f32>))
    };
    assert!(single(1) == single(8), "single precision");
}

#[test]
fn permuted_cells_have_permuted_scores() {
    let matrix = counts(240, 120, 8);
    let recipe = params(80, 8);
    let order: Vec<usize> = (0..240).map(|row| row * 77 % 240).collect();
    let (fit, scores) = fit_transform(&matrix, &recipe, &quiet).unwrap();
    let (permuted_fit, permuted) = fit_transform(&select_rows(&matrix, &order), &recipe, &quiet).unwrap();
    assert_eq!(fit.model.genes, permuted_fit.model.genes);
    for (row, &from) in order.iter().enumerate() {
        for component in 0..8 {
            let (a, b) = (permuted[row * 8 + component], scores[from * 8 + component]);
            assert!((a - b).abs() < 1e-5, "cell {from}, component {component}: {a} {b}");
        }
    }
}

#[test]
fn a_cell_is_placed_the_same_in_any_company() {
    let matrix = counts(200, 150, 9);
    let (fit, scores) = fit_transform(&matrix, &params(100, 10), &quiet).unwrap();
    for rows in [vec![5], (40..77).collect(), vec![199, 0, 3]] {
        let placed = fit.model.transform(&select_rows(&matrix, &rows), &|_| ()).unwrap();
        let expected: Vec<f32> = rows.iter().flat_map(|row| scores[row * 10..][..10].to_vec()).collect();
        assert_eq!(placed, expected);
    }
    let cut = fit.model.transform(&Cut(matrix, 13), &|_| ()).unwrap();
    assert_eq!(cut, scores);
}

#[test]
fn a_stored_model_places_cells_as_before() {
    let matrix = counts(60, 40, 2);
    let (fit, scores) = fit_transform(&matrix, &params(30, 5), &quiet).unwrap();
    let stored = serde_json::to_string(&fit.model).unwrap();
    let model: Model = serde_json::from_str(&stored).unwrap();
    let placed = model.transform(&matrix, &|_| ()).unwrap();
    assert!(placed.iter().zip(&scores).all(|(a, b)| (a - b).abs() < 1e-6));
}

#[test]
fn empty_cells_and_silent_genes_leave_numbers_finite() {
    let matrix = from_dense(&[
        &[3.0, 0.0, 1.0, 0.0],
        &[0.0, 0.0, 0.0, 0.0],
        &[1.0, 5.0, 0.0, 0.0],
        &[2.0, 2.0, 2.0, 0.0],
        &[0.0, 0.0, 0.0, 0.0],
    ]);
    let (fit, scores) = fit_transform(&matrix, &params(0, 50), &quiet).unwrap();
    assert_eq!(fit.notes[0], Note::EmptyCells { count: 2 });
    assert_eq!(fit.notes[1], Note::FewerComponents { asked: 50, given: 4, cells: 5, genes: 4 });
    assert_eq!(fit.notes[2], Note::ComponentsWithoutVariance { count: 1, of: 4 });
    assert!(scores.iter().all(|score| score.is_finite()));
    assert_eq!(scores[4..8], scores[16..20]);
    assert_eq!((fit.model.sd[3], fit.model.eigenvalues[3], scores[3]), (1.0, 0.0, 0.0));
}

#[test]
fn two_kinds_of_cells_have_one_component() {
    let (a, b): (&[f64], &[f64]) = (&[4.0, 1.0, 0.0], &[1.0, 1.0, 6.0]);
    for matrix in [from_dense(&[a, b, a, b]), from_dense(&[a, b])] {
        let (fit, scores) = fit_transform(&matrix, &params(0, 1), &quiet).unwrap();
        assert!((fit.model.variance_ratio[0] - 1.0).abs() < 1e-12);
        assert!((scores[0] + scores[1]).abs() < 1e-6 && scores[0].abs() > 0.5, "{scores:?}");
    }
}

#[test]
fn progress_and_seconds_name_every_phase() {
    let matrix = Cut(counts(50, 30, 4), 20);
    let seen = std::cell::RefCell::new(Vec::new());
    let (fit, _) =
        fit_transform(&matrix, &params(20, 3), &|progress| seen.borrow_mut().push(progress)).unwrap();
    let phases = [Phase::Statistics, Phase::Selection, Phase::Gram, Phase::Eigen, Phase::Project];
    assert_eq!(fit.seconds.iter().map(|(phase, _)| *phase).collect::<Vec<_>>(), phases);
    let done: Vec<usize> =
        seen.take().iter().filter(|at| at.phase == Phase::Gram).map(|at| at.done).collect();
    assert_eq!(done, [0, 20, 40, 50]);
}

fn refused(matrix: &Csr, params: &Params) -> (Kind, String) {
    let error = fit(matrix, params, &quiet).unwrap_err();
    (error.kind, error.message)
}

#[test]
fn what_cannot_be_fitted_is_refused_by_name() {
    let good = counts(20, 10, 1);
    let message = |text: &str| text.to_owned();
    assert_eq!(
        refused(&select_rows(&good, &[0]), &params(0, 2)),
        (Kind::Input, message("PCA needs at least 2 cells, the matrix has 1"))
    );
    let same = select_rows(&good, &[4, 4, 4]);
    for top in [0, 5] {
        let expected = "no gene varies between the 3 cells: there is nothing for PCA to find";
        assert_eq!(refused(&same, &params(top, 2)), (Kind::Input, message(expected)));
    }
    assert_eq!(refused(&good, &params(0, 0)), (Kind::Usage, message("n_comps must be at least 1")));
    let endless = Params { target_sum: f64::INFINITY, ..Params::default() };
    assert_eq!(
        refused(&good, &endless),
        (Kind::Usage, message("target_sum must be a positive number, not inf"))
    );
    for value in [-3.0, f64::NAN, f64::INFINITY] {
        let mut bad = good.clone();
        let at = bad.indptr[17];
        bad.values[at] = value;
        let later = bad.indptr[19];
        bad.values[later] = -1.0;
        let gene = bad.indices[at];
        let expected = format!(
            "cell 17, gene {gene} (counted from 0) holds {value}, a count is a finite number from 0 up"
        );
        assert_eq!(refused(&bad, &params(0, 2)), (Kind::Input, expected.clone()));
        let model = fit(&good, &params(0, 2), &quiet).unwrap().model;
        assert_eq!(model.transform(&bad, &|_| ()).unwrap_err().message, expected);
    }
    let model = fit(&good, &params(0, 2), &quiet).unwrap().model;
    let other = model.transform(&counts(5, 11, 1), &|_| ()).unwrap_err();
    assert_eq!(other.message, "the matrix has 11 genes, the PCA was fitted to 10");
    let wide = component_count(20_000, 15_000, &params(0, 2), &mut Vec::new()).unwrap_err();
    assert_eq!(wide.kind, Kind::Usage);
    assert!(wide.message.contains("needs a 15000 x 15000 matrix"), "{}", wide.message);
}
