// Scores every embedding in a task of its own, then puts the scores side by side.

include { BENCHMARK } from './modules/benchmark'
include { RANK } from './modules/rank'
include { job; staged } from './modules/specification'

workflow {
    inputs = channel.fromList(params.inputs).map { input -> tuple(input, staged(input)) }
    BENCHMARK(inputs, job(params, 'BENCHMARK'))
    scores = BENCHMARK.out.scores
        .toSortedList { a, b -> a[0].tag <=> b[0].tag }
        .filter { all -> all.size() > 0 }
        .map { all -> all.collect { pair -> pair[1] } }
    RANK(scores, job(params, 'RANK'))
}
