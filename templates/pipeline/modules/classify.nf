include { command } from './specification'

process CLASSIFY {
    tag "${query.tag}"
    publishDir "${launchDir}/outputs/transfer/models/${params.method}/${params.classifier}",
        mode: 'copy', pattern: 'model', saveAs: { _name -> reference.id }
    publishDir "${launchDir}/outputs/transfer/predictions/${params.method}/${params.classifier}",
        mode: 'copy', pattern: '*.tsv', saveAs: { name -> "${query.id}_${name}" }

    input:
    tuple val(reference), path('reference.h5ad'), val(query), path('query.h5ad')
    val spec

    output:
    path 'model', emit: model
    path 'predicted_{labels,probs}.tsv', emit: predictions

    script:
    command(params.work.CLASSIFY, 'classify', spec + [reference: 'reference.h5ad', query: 'query.h5ad', model: 'model'])
}
