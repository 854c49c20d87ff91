include { command } from './specification'

process CLASSIFY {
    tag "${query.tag}"
    publishDir "${workflow.launchDir}/outputs/transfer/models/${job.method}/${job.specification.classifier}",
        mode: 'copy', pattern: 'model', saveAs: { _name -> reference.id }
    publishDir "${workflow.launchDir}/outputs/transfer/predictions/${job.method}/${job.specification.classifier}",
        mode: 'copy', pattern: '*.{tsv,json}', saveAs: { name -> "${query.id}_${name}" }

    input:
    tuple val(reference), path('reference.h5ad'), path('projection'), val(query), path('query.h5ad')
    val job

    output:
    path 'model', optional: true, emit: model
    path '{predicted_labels,predicted_probs}.tsv', emit: predictions
    path 'report.json', emit: report

    script:
    command(job, 'classify', [
        method: job.method,
        reference: job.fitted ? null : 'reference.h5ad',
        query: 'query.h5ad',
        fitted: job.fitted?.path,
        stamp: job.fitted?.stamp,
        projection: job.projected && !job.fitted ? 'projection' : null,
        output: 'model',
        labels: 'predicted_labels.tsv',
        probabilities: 'predicted_probs.tsv',
        report: 'report.json',
    ])
}
