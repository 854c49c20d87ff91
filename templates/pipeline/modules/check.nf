include { command; place } from './specification'

process CHECK {
    tag "${input.tag}"
    publishDir "${workflow.launchDir}/outputs/check", mode: 'copy', saveAs: { name -> "${input.id}_${name}" }

    input:
    tuple val(input), path('data.h5ad')
    val job

    output:
    tuple val(input), path('check.txt'), path('check.json')

    script:
    command(job, 'check', [profile: job.profile, data: place(input, 'data.h5ad'), text: 'check.txt', json: 'check.json'])
}
