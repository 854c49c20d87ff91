include { command; place } from './specification'

process GEOMETRY {
    tag "${input.tag}"
    publishDir "${workflow.launchDir}/outputs/geometry/${job.method}",
        mode: 'copy', saveAs: { name -> "${input.id}.${name.tokenize('.').last()}" }

    input:
    tuple val(input), path('embedding.h5ad'), val(counts), path('data.h5ad')
    val job

    output:
    tuple val(input), path("${input.tag}.json"), emit: record
    path "${input.tag}.csv", emit: table

    script:
    command(job, 'geometry', [
        embedding: place(input, 'embedding.h5ad'),
        data: place(counts, 'data.h5ad'),
        embedding_file: input.path,
        dataset: input.data,
        method: input.method,
        table: "${input.tag}.csv".toString(),
        record: "${input.tag}.json".toString(),
    ])
}
