// Scores all embeddings in one task, so that its tables hold them side by side.

include { BENCHMARK } from './modules/benchmark'
include { job; staged } from './modules/specification'

workflow {
    BENCHMARK(params.inputs, params.inputs.collect { input -> staged(input) }, job(params, 'BENCHMARK'))
}
