# An .h5ad file as a runner in R needs it: counts, a column of obs, an embedding beside its cells. As cells.py does for Python.

library(hdf5r)
library(Matrix)

# Tasks are given links: the name that the user knows is that of the file.
known_as <- function(path) basename(normalizePath(path))

# What HDF5 says of a thing: its `encoding-type`, or "" where there is none.
encoding <- function(thing) if ("encoding-type" %in% h5attr_names(thing)) h5attr(thing, "encoding-type") else ""

# The counts as a sparse matrix, genes x cells. Rows and columns are called by their numbers, since names may come twice.
read_counts <- function(file, name) {
    if (!file$exists("X")) refuse(paste("X of", name, "is missing"), "the file holds no matrix", "put raw counts into X")
    matrix <- file[["X"]]
    if (inherits(matrix, "H5Group")) {
        shape <- h5attr(matrix, if ("shape" %in% h5attr_names(matrix)) "shape" else "h5sparse_shape")
        rows <- encoding(matrix) == "csr_matrix" || "csr" %in% tryCatch(h5attr(matrix, "h5sparse_format"), error = function(problem) "")
        stored <- matrix[["data"]]$dims
        if (stored > .Machine$integer.max) {
            refuse(paste("X of", name, "is too large for R"), paste(stored, "values, R's sparse matrices hold", .Machine$integer.max))
        }
        parts <- list(x = as.numeric(matrix[["data"]]$read()), p = as.numeric(matrix[["indptr"]]$read()))
        other <- as.numeric(matrix[["indices"]]$read())
        # Compressed rows of cells x genes are compressed columns of genes x cells.
        counts <- if (rows) {
            sparseMatrix(i = other, p = parts$p, x = parts$x, dims = rev(shape), index1 = FALSE)
        } else {
            sparseMatrix(j = other, p = parts$p, x = parts$x, dims = rev(shape), index1 = FALSE)
        }
    } else {
        # hdf5r gives what is cells x genes in the file as genes x cells.
        counts <- as(matrix$read(), "CsparseMatrix")
    }
    if (any(!is.finite(counts@x)) || any(counts@x < 0)) {
        refuse(
            paste("X of", name, "holds values that are no counts"), "a negative or infinite value, or none at all",
            "put raw counts into X; `scfoundry check` tells where they are"
        )
    }
    if (any(counts@x != round(counts@x))) warn("X holds values that are no whole numbers: this method wants raw counts")
    dimnames(counts) <- list(paste0("g", seq_len(nrow(counts))), paste0("c", seq_len(ncol(counts))))
    usage$cells <- ncol(counts)
    usage$genes <- nrow(counts)
    drop0(counts)
}

# A column of obs as text; every cell must have a value.
read_column <- function(file, key, name) {
    if (!file$exists(paste0("obs/", key))) {
        columns <- setdiff(names(file[["obs"]]), h5attr(file[["obs"]], "_index"))
        refuse(
            sprintf("obs of %s has no column \"%s\"", name, key), paste("its columns are", paste(columns, collapse = ", ")),
            "name the column of the batches with --batch-key"
        )
    }
    column <- file[[paste0("obs/", key)]]
    if (inherits(column, "H5Group") && encoding(column) == "categorical") {
        codes <- column[["codes"]]$read()
        values <- as.character(column[["categories"]]$read())[ifelse(codes < 0, NA, codes + 1)]
    } else if (inherits(column, "H5Group")) {
        values <- as.character(column[["values"]]$read())
        values[as.logical(column[["mask"]]$read())] <- NA
    } else if ("categories" %in% h5attr_names(column)) {
        refuse(
            sprintf("obs[\"%s\"] of %s is stored as it was before anndata 0.7", key, name), "R cannot read such categories",
            "read the file with today's anndata and write it again"
        )
    } else {
        values <- as.character(column$read())
    }
    if (anyNA(values)) {
        refuse(
            sprintf("obs[\"%s\"] of %s has no value for %d cells", key, name, sum(is.na(values))),
            "every cell must be of a batch", "give these cells a value, or leave them out"
        )
    }
    values
}

text_type <- function() H5T_STRING$new(size = Inf)$set_cset("UTF-8")

put_attribute <- function(thing, name, value) thing$create_attr(name, robj = value, dtype = text_type(), space = H5S$new("scalar"))

encode <- function(thing, type, version = "0.2.0") {
    put_attribute(thing, "encoding-type", type)
    put_attribute(thing, "encoding-version", version)
}

# Writes the embedding, cells x dimensions, with obs and the coordinates of the file; whole or not at all.
write_embedding <- function(embedding, file, path) {
    if (nrow(embedding) != usage$cells) stop(nrow(embedding), " rows for ", usage$cells, " cells")
    partial <- paste0(path, ".partial")
    made <- H5File$new(partial, mode = "w")
    encode(made, "anndata", "0.1.0")
    matrix <- made$create_dataset("X", robj = t(unname(embedding)), dtype = h5types$H5T_IEEE_F32LE)
    encode(matrix, "array")
    file$obj_copy_to(made, "obs", "obs")
    var <- made$create_group("var")
    encode(var, "dataframe")
    put_attribute(var, "_index", "_index")
    var$create_attr("column-order", dtype = text_type(), space = H5S$new("simple", dims = 0))
    names <- var$create_dataset("_index", robj = paste0("V", seq_len(ncol(embedding))), dtype = text_type())
    encode(names, "string-array")
    obsm <- made$create_group("obsm")
    encode(obsm, "dict", "0.1.0")
    if (file$exists("obsm") && file$exists("obsm/spatial")) file$obj_copy_to(obsm, "spatial", "obsm/spatial")
    made$close_all()
    invisible(file.rename(partial, path))
}
