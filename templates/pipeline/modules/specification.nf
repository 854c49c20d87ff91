// What every task is told, and how it is started.

/**
 * What the tasks of one process need to know: the method, who does the work, and the parameters that the task and the method
 * read, by name. The version stands among them so that a new one runs anew.
 */
def job(Map all, String process) {
    def read = all.read.collectEntries { name -> [name, all[name]] }
    def work = all.work[process]
    def names = work.runner ? ['weights', 'cache', 'genes', 'default_batch_size'] : ['model_files', 'genes']
    def model = work.runner || all.containsKey('model_files') ? names.collectEntries { name -> [name, all[name]] } : [:]
    // What was left open when it was typed, as the batch size.
    def decided = work.runner ? all.decided : [:]
    [method: all.method, work: work, specification: read + model + decided + [scfoundry: all.scfoundry]]
}

/** The directory with the script of the method, to stage for the tasks that it does: none for a native method. */
def runner(Map all) {
    all.runner ? file(all.runner, glob: false) : []
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
def command(Map job, String action, Map files) {
    def json = groovy.json.JsonOutput.toJson(job.specification + files)
    def program = job.work.kernel
        ? "\"\$SCFOUNDRY\" kernel ${job.work.kernel}"
        : "${job.work.runner.endsWith('.R') ? 'Rscript' : 'python3 -B'} runner/${job.work.runner} ${action}"
    "cat > spec.json <<'END_OF_SPECIFICATION'\n${json}\nEND_OF_SPECIFICATION\n${program} --spec spec.json\n"
}
