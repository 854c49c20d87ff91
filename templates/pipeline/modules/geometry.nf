include { command } from './specification'

process GEOMETRY {
    tag "${job.method}"
    publishDir "${workflow.launchDir}/outputs/geometry/${job.method}", mode: 'copy'

    input:
    val inputs
    path 'embedding*.h5ad'
    path 'data*.h5ad'
    val job

    output:
    path '*.csv'

    script:
    command(job, 'geometry', [method: job.method, inputs: inputs])
}
