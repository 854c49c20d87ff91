// What every task is told, and how it is started.

/** The parameters that the task and the method read, by name; the version stands in it so that a new one runs anew. */
def specification(Map all) {
    all.read.collectEntries { name -> [name, all[name]] } + [scfoundry: all.scfoundry]
}

/** The file to stage for an input: none where the task reads it in place. */
def staged(Map input) {
    input.staged ? file(input.path, glob: false) : []
}

/** Where a task finds an input that is staged under the given name. */
def place(Map input, String name) {
    input.staged ? name : input.path
}

/**
 * The script of a task: its specification as a file, then a native kernel of scfoundry or the method's runner.
 *
 * JSON keeps every special character of a value inside one line, and the quoted word keeps the shell out of it.
 */
def command(Map work, String action, Map spec) {
    def json = groovy.json.JsonOutput.toJson(spec)
    def program = work.kernel
        ? "\"\$SCFOUNDRY\" kernel ${work.kernel}"
        : "${work.runner.endsWith('.R') ? 'Rscript' : 'python3'} ${work.runner} ${action}"
    "cat > spec.json <<'END_OF_SPECIFICATION'\n${json}\nEND_OF_SPECIFICATION\n${program} --spec spec.json\n"
}
