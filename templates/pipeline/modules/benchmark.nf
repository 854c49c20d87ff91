include { command } from './specification'

process BENCHMARK {
    tag "${job.method}"
    publishDir "${workflow.launchDir}/outputs/benchmark", mode: 'copy'

    input:
    val inputs
    path 'embedding*.h5ad'
    val job

    output:
    path '*.{csv,tsv}'

    script:
    command(job, 'benchmark', [method: job.method, inputs: inputs])
}
