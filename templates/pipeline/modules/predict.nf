include { command; place } from './specification'

process PREDICT {
    tag "${query.tag}"
    publishDir "${workflow.launchDir}/outputs/finetune/prediction/${job.method}",
        mode: 'copy', saveAs: { name -> "${query.id}_${name}" }

    input:
    tuple path('model'), val(query), path('query.h5ad')
    val job
    path 'runner'

    output:
    path 'predicted_{labels,probs}.tsv', emit: predictions
    path 'report.json', emit: report

    script:
    command(job, 'predict', [
        query: place(query, 'query.h5ad'),
        model_folder: 'model',
        stamp: job.stamp,
        labels: 'predicted_labels.tsv',
        probabilities: 'predicted_probs.tsv',
        report: 'report.json',
    ])
}
