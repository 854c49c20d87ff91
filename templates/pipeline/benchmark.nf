// Scores all embeddings in one task, so that its tables hold them side by side.

include { BENCHMARK } from './modules/benchmark'
include { job } from './modules/specification'

workflow {
    BENCHMARK(params.inputs, params.inputs.collect { input -> file(input.path, glob: false) }, job(params, 'BENCHMARK'))
}
