include { command; place } from './specification'

// Fits a method to the reference and embeds it.
process FIT {
    tag "${input.tag}"
    publishDir "${workflow.launchDir}/outputs/embeddings/${job.method}",
        mode: 'copy', pattern: 'embedding.h5ad', saveAs: { _name -> "${input.id}.h5ad" }

    input:
    tuple val(input), path('data.h5ad')
    val job
    path 'runner'

    output:
    tuple val(input), path('embedding.h5ad'), path('projection')

    script:
    command(job, 'fit', [data: place(input, 'data.h5ad'), output: 'embedding.h5ad', projection: 'projection'])
}

// Embeds the query with what was fitted to the reference.
process PROJECT {
    tag "${query.tag}"
    publishDir "${workflow.launchDir}/outputs/embeddings/${job.method}",
        mode: 'copy', saveAs: { _name -> "${query.id}.h5ad" }

    input:
    tuple val(query), path('data.h5ad'), path('projection')
    val job
    path 'runner'

    output:
    tuple val(query), path('embedding.h5ad')

    script:
    command(job, 'project', [
        data: place(query, 'data.h5ad'),
        output: 'embedding.h5ad',
        projection: job.fitted ? "${job.fitted.path}/projection" : 'projection',
        stamp: job.fitted?.stamp,
    ])
}
