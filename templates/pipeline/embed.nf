// Embeds every input file: one task a file.

include { EMBED } from './modules/embed'
include { job } from './modules/specification'

workflow {
    inputs = channel.fromList(params.inputs).map { input -> tuple(input, file(input.path, glob: false)) }
    EMBED(inputs, job(params, 'EMBED'))
}
