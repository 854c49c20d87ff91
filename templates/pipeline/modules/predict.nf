include { command; place } from './specification'

process PREDICT {
    tag "${query.tag}"
    publishDir "${launchDir}/outputs/finetune/prediction/${params.method}",
        mode: 'copy', saveAs: { name -> "${query.id}_${name}" }

    input:
    tuple path('model'), val(query), path('query.h5ad')
    val spec

    output:
    path 'predicted_{labels,probs}.tsv'

    script:
    command(params.work.PREDICT, 'predict', spec + [query: place(query, 'query.h5ad'), model: 'model'])
}
