include { command } from './specification'

process CLASSIFY {
    tag "${query.tag}"
    publishDir "${workflow.launchDir}/outputs/transfer/models/${job.method}/${job.specification.classifier}",
        mode: 'copy', pattern: 'model', saveAs: { _name -> reference.id }
    publishDir "${workflow.launchDir}/outputs/transfer/predictions/${job.method}/${job.specification.classifier}",
        mode: 'copy', pattern: '*.tsv', saveAs: { name -> "${query.id}_${name}" }

    input:
    tuple val(reference), path('reference.h5ad'), val(query), path('query.h5ad')
    val job

    output:
    path 'model', emit: model
    path 'predicted_{labels,probs}.tsv', emit: predictions

    script:
    command(job, 'classify', [reference: 'reference.h5ad', query: 'query.h5ad', model: 'model'])
}
