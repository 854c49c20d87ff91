# Seurat: batches anchored by canonical correlation.

folder <- file.path(dirname(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))), "foundry")
for (part in c("task.R", "cells.R", "seurat.R")) source(file.path(folder, part))

main(embed = integrate("cca"))
