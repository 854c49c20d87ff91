# Batches of cells anchored to each other (Stuart et al., Cell 2019), their principal components moved accordingly.
#
# The steps are those of Seurat's IntegrateLayers with CCAIntegration and RPCAIntegration, made of the functions that both
# Seurat 4 and Seurat 5 have: scaling and principal components of all cells together, anchors between the batches' scaled values
# without a filter, then IntegrateEmbeddings.

options(Seurat.object.assay.version = "v3", future.globals.maxSize = 16 * 2^30)
suppressPackageStartupMessages(library(Seurat))

WEIGHED <- c(100, 50, 30, 20, 10, 5) # anchors that move a cell: the most of these that the data have

integrate <- function(reduction) function(spec) {
    name <- known_as(spec$data)
    file <- H5File$new(spec$data, mode = "r")
    counts <- phase("read", read_counts(file, name))
    batches <- read_column(file, spec$batch_key, name)
    components <- spec$seurat_n_pcs
    sizes <- sort(table(batches))
    if (sizes[1] <= components && length(sizes) > 1) {
        refuse(
            sprintf("batch \"%s\" of %s has %d cells", names(sizes)[1], name, sizes[1]),
            sprintf("anchors need more cells in every batch than there are components (%d)", components),
            "leave the batch out or join it with another, or lower --seurat_n_pcs"
        )
    }
    if (ncol(counts) <= components || nrow(counts) <= components) {
        refuse(sprintf("%s is too small", name), sprintf("%d cells and %d genes for %d components", ncol(counts), nrow(counts), components))
    }
    if (any(colSums(counts) == 0)) {
        refuse(sprintf("%d cells of %s have no counts", sum(colSums(counts) == 0), name), "they cannot be normalised", "leave them out")
    }
    set.seed(0)
    cells <- CreateSeuratObject(counts)
    cells$batch <- batches
    cells <- phase("principal components", reduced(cells, spec$seurat_n_hvg, components))
    if (length(sizes) == 1) {
        warn("there is one batch only: these are its principal components, nothing was moved")
        moved <- Embeddings(cells, "pca")
    } else {
        moved <- phase("integration", anchored(cells, reduction, components))
    }
    # Seurat gives the cells batch by batch.
    write_embedding(moved[colnames(counts), , drop = FALSE], file, spec$output)
    note(ncol(counts), "/", ncol(counts), " cells")
}

# The cells with scaled values and principal components of the genes that vary in most batches.
reduced <- function(cells, genes, components) {
    cells <- NormalizeData(cells, verbose = FALSE)
    batches <- lapply(SplitObject(cells, "batch"), FindVariableFeatures, nfeatures = genes, verbose = FALSE)
    VariableFeatures(cells) <- if (length(batches) == 1) {
        VariableFeatures(batches[[1]])
    } else {
        SelectIntegrationFeatures(batches, nfeatures = genes, verbose = FALSE)
    }
    cells <- ScaleData(cells, verbose = FALSE)
    RunPCA(cells, npcs = components, verbose = FALSE)
}

anchored <- function(cells, reduction, components) {
    batches <- SplitObject(cells, "batch")
    dimensions <- seq_len(components)
    if (reduction == "rpca") {
        batches <- lapply(batches, RunPCA, features = VariableFeatures(cells), npcs = components, verbose = FALSE)
    }
    anchors <- FindIntegrationAnchors(
        batches, anchor.features = VariableFeatures(cells), scale = FALSE, reduction = reduction, dims = dimensions, k.filter = NA,
        verbose = FALSE
    )
    for (weighed in WEIGHED) {
        moved <- tryCatch(
            IntegrateEmbeddings(anchors, "moved", reductions = cells[["pca"]], k.weight = weighed, verbose = FALSE),
            error = function(problem) problem
        )
        if (!inherits(moved, "error")) {
            if (weighed != WEIGHED[1]) warn("few anchors: each cell is moved by ", weighed, " of them instead of ", WEIGHED[1])
            return(Embeddings(moved, "moved"))
        }
    }
    stop(moved)
}
