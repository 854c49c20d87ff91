include { command; place } from './specification'

process EMBED {
    tag "${input.tag}"
    publishDir "${workflow.launchDir}/outputs/embeddings/${job.method}", mode: 'copy', saveAs: { _name -> "${input.id}.h5ad" }

    input:
    tuple val(input), path('data.h5ad')
    val job
    path 'runner'

    output:
    tuple val(input), path('embedding.h5ad')

    script:
    command(job, 'embed', [data: place(input, 'data.h5ad'), output: 'embedding.h5ad'])
}
