// Checks every input file against the input contract: one task a file.

include { CHECK } from './modules/check'
include { job; staged } from './modules/specification'

workflow {
    inputs = channel.fromList(params.inputs).map { input -> tuple(input, staged(input)) }
    CHECK(inputs, job(params, 'CHECK') + [profile: params.profile])
}
