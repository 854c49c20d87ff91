// Embeds reference and query side by side, fits a classifier on the one and labels the other.

include { EMBED } from './modules/embed'
include { CLASSIFY } from './modules/classify'
include { job; staged } from './modules/specification'

workflow {
    inputs = channel.fromList(params.inputs).map { input -> tuple(input, staged(input)) }
    EMBED(inputs, job(params, 'EMBED'))
    pairs = EMBED.out.branch { input, _embedding ->
        reference: input.role == 'reference'
        query: input.role == 'query'
    }
    CLASSIFY(pairs.reference.combine(pairs.query), job(params, 'CLASSIFY'))
}
