// Trains a method on the labelled reference, then labels the query with what it learned.

include { TRAIN } from './modules/train'
include { PREDICT } from './modules/predict'
include { job; runner; staged } from './modules/specification'

workflow {
    inputs = channel.fromList(params.inputs)
        .map { input -> tuple(input, staged(input)) }
        .branch { input, _data ->
            reference: input.role == 'reference'
            query: input.role == 'query'
        }
    TRAIN(inputs.reference, job(params, 'TRAIN'), runner(params))
    PREDICT(TRAIN.out.combine(inputs.query), job(params, 'PREDICT'), runner(params))
}
