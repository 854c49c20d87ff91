// Probes the geometry of all embeddings against the counts they were made from, in one task.

include { GEOMETRY } from './modules/geometry'
include { job; staged } from './modules/specification'

workflow {
    embeddings = params.inputs.findAll { input -> input.role == 'embedding' }
    data = params.inputs.findAll { input -> input.role == 'data' }
    GEOMETRY(
        params.inputs,
        embeddings.collect { input -> staged(input) },
        data.collect { input -> staged(input) },
        job(params, 'GEOMETRY'),
    )
}
