//! The profiles that the binary carries.

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../templates/methods/", $name, ".toml")))),*]
    };
}

/// Name and TOML text of each built-in profile.
pub(super) const PROFILES: &[(&str, &str)] = &built_in![
    "c2s",
    "cellama",
    "cellfm",
    "cellplm",
    "geneformer",
    "genept",
    "harmony",
    "langcell",
    "novae",
    "pca",
    "scbert",
    "sccello",
    "scfoundation",
    "scgpt",
    "scgpt_integrated",
    "scimilarity",
    "scprint",
    "scvi",
    "scvi_denovo",
    "seurat_cca",
    "seurat_rpca",
    "uce",
];
