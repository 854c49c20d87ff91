// Trains a method on the labelled reference, or takes a model that was trained, and labels the query with it.

include { TRAIN } from './modules/train'
include { PREDICT } from './modules/predict'
include { job; runner; staged } from './modules/specification'

workflow {
    roles = channel.fromList(params.inputs)
        .map { input -> tuple(input, staged(input)) }
        .branch { input, _data ->
            reference: input.role == 'reference'
            query: input.role == 'query'
        }
    if (params.fitted) {
        models = channel.of(file(params.fitted.path, glob: false))
    } else {
        TRAIN(roles.reference, job(params, 'TRAIN'), runner(params))
        models = TRAIN.out
    }
    // Without a query it is only trained.
    if (params.work.PREDICT) {
        PREDICT(models.combine(roles.query), job(params, 'PREDICT') + [stamp: params.fitted?.stamp], runner(params))
    }
}
