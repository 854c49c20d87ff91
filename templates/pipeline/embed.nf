// Embeds every input file: one task a file.

include { EMBED } from './modules/embed'
include { job; runner; staged } from './modules/specification'

workflow {
    inputs = channel.fromList(params.inputs).map { input -> tuple(input, staged(input)) }
    EMBED(inputs, job(params, 'EMBED'), runner(params))
}
