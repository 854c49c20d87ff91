// Checks every input file against the input contract: one task a file.

include { CHECK } from './modules/check'
include { job } from './modules/specification'

workflow {
    inputs = channel.fromList(params.inputs).map { input -> tuple(input, file(input.path, glob: false)) }
    CHECK(inputs, job(params, 'CHECK') + [profile: params.profile])
}
