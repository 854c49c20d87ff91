// Embeds every input file: one task a file.

include { EMBED         } from './modules/embed'
include { specification } from './modules/specification'

workflow {
    inputs = channel.fromList(params.inputs).map { input -> tuple(input, file(input.path, glob: false)) }
    EMBED(inputs, specification(params))
}
