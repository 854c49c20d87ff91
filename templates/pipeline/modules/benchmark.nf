include { command; place } from './specification'

process BENCHMARK {
    tag "${input.tag}"
    publishDir "${workflow.launchDir}/outputs/benchmark", mode: 'copy', pattern: '*.tsv', saveAs: { _name ->
        def clustering = job.specification.clustering
        "bio_conservation_${clustering}_predictions/${input.method}/${input.sample}_${clustering}_labels.tsv"
    }

    input:
    tuple val(input), path('embedding.h5ad')
    val job

    output:
    tuple val(input), path("${input.tag}.json"), emit: scores
    path 'labels.tsv', emit: labels, optional: true

    script:
    command(job, 'benchmark', [
        embedding: place(input, 'embedding.h5ad'),
        method: input.method,
        sample: input.sample,
        scores: "${input.tag}.json".toString(),
        labels: 'labels.tsv',
    ])
}
