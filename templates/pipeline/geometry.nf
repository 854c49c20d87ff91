// Probes the geometry of all embeddings against the counts they were made from, in one task.

include { GEOMETRY } from './modules/geometry'
include { job } from './modules/specification'

workflow {
    embeddings = params.inputs.findAll { input -> input.role == 'embedding' }
    data = params.inputs.findAll { input -> input.role == 'data' }
    GEOMETRY(
        params.inputs,
        embeddings.collect { input -> file(input.path, glob: false) },
        data.collect { input -> file(input.path, glob: false) },
        job(params, 'GEOMETRY'),
    )
}
