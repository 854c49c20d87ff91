# The specification of a task in R, what it says while it works, and the record that it leaves: as task.py does for Python.

REJECTED <- 3 # the exit code of a task whose input is not what it must be

usage <- new.env()
usage$warnings <- character()
usage$phases <- list()

note <- function(...) message(paste0(...))

# Tells something once that a reader of the result must know; it also stands in the cost summary.
warn <- function(...) {
    text <- paste0(...)
    if (!text %in% usage$warnings) {
        usage$warnings <- c(usage$warnings, text)
        note("warning: ", text)
    }
}

# Ends the task with something that the user has to mend: one sentence, its cause, what to do.
refuse <- function(text, cause, hint = NULL) {
    lines <- c(paste("error:", text), paste("  Caused by:", cause), if (!is.null(hint)) paste("hint:", hint))
    stop(structure(class = c("refusal", "error", "condition"), list(message = paste(lines, collapse = "\n"), call = NULL)))
}

# Gives the value of an expression, and adds its wall time to the phase of this name.
phase <- function(name, expression) {
    start <- proc.time()[["elapsed"]]
    on.exit({
        before <- usage$phases[[name]]
        usage$phases[[name]] <- (if (is.null(before)) 0 else before) + proc.time()[["elapsed"]] - start
    })
    force(expression)
}

write_usage <- function() {
    times <- proc.time()
    record <- list(
        kind = "runner", device = "cpu", threads = 1, cells = usage$cells, genes = usage$genes,
        phases = lapply(names(usage$phases), function(name) list(name = name, seconds = usage$phases[[name]])),
        warnings = I(usage$warnings), cpu_seconds = sum(times[c("user.self", "sys.self", "user.child", "sys.child")])
    )
    status <- tryCatch(readLines("/proc/self/status"), error = function(problem) character(), warning = function(problem) character())
    peak <- grep("^VmHWM:", status, value = TRUE)
    if (length(peak) == 1) record$peak_rss_bytes <- as.numeric(gsub("[^0-9]", "", peak)) * 1024
    writeLines(jsonlite::toJSON(Filter(Negate(is.null), record), auto_unbox = TRUE, digits = NA), "usage.json.partial")
    invisible(file.rename("usage.json.partial", "usage.json"))
}

# Does the action that the command line names, and leaves `usage.json`, also of a task that fails.
main <- function(...) {
    actions <- list(...)
    words <- commandArgs(trailingOnly = TRUE)
    if (length(words) != 3 || !words[1] %in% names(actions) || words[2] != "--spec") {
        note("usage: RUNNER.R ", paste(names(actions), collapse = "|"), " --spec FILE")
        quit(save = "no", status = 1)
    }
    spec <- jsonlite::fromJSON(words[3])
    code <- tryCatch({
        actions[[words[1]]](spec)
        0
    }, refusal = function(refusal) {
        note(conditionMessage(refusal))
        REJECTED
    }, error = function(problem) {
        note("error: ", conditionMessage(problem))
        1
    }, finally = write_usage())
    quit(save = "no", status = code)
}
