include { command; place } from './specification'

process TRAIN {
    tag "${reference.tag}"
    publishDir "${launchDir}/outputs/finetune/finetuned_models/${params.method}",
        mode: 'copy', saveAs: { _name -> reference.id }

    input:
    tuple val(reference), path('reference.h5ad')
    val spec

    output:
    path 'model'

    script:
    command(params.work.TRAIN, 'train', spec + [reference: place(reference, 'reference.h5ad'), model: 'model'])
}
