include { command } from './specification'

process TABULATE {
    publishDir "${workflow.launchDir}/outputs/geometry/${job.method}", mode: 'copy', saveAs: { _name -> "${job.method}_geometry.csv" }

    input:
    path 'records/*'
    val job

    output:
    path 'geometry.csv'

    script:
    command(job, 'tabulate', [records: 'records', table: 'geometry.csv'])
}
