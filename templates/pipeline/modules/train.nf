include { command; place } from './specification'

process TRAIN {
    tag "${reference.tag}"
    publishDir "${workflow.launchDir}/outputs/finetune/finetuned_models/${job.method}",
        mode: 'copy', saveAs: { _name -> reference.id }

    input:
    tuple val(reference), path('reference.h5ad')
    val job
    path 'runner'

    output:
    path 'model'

    script:
    command(job, 'train', [reference: place(reference, 'reference.h5ad'), model_folder: 'model'])
}
