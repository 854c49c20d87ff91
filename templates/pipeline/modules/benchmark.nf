include { command } from './specification'

process BENCHMARK {
    tag "${params.method}"
    publishDir "${launchDir}/outputs/benchmark", mode: 'copy'

    input:
    val inputs
    path 'embedding*.h5ad'
    val spec

    output:
    path '*.{csv,tsv}'

    script:
    command(params.work.BENCHMARK, 'benchmark', spec + [method: params.method, inputs: inputs])
}
