include { command } from './specification'

process RANK {
    publishDir "${workflow.launchDir}/outputs", mode: 'copy'

    input:
    path 'scores/*'
    val job

    output:
    path 'benchmark/*'

    script:
    command(job, 'rank', [scores: 'scores', label: job.method, output: 'benchmark'])
}
