// Probes the geometry of every embedding against the counts it was made from, in a task of its own, then joins the rows.

include { GEOMETRY } from './modules/geometry'
include { TABULATE } from './modules/tabulate'
include { job; staged } from './modules/specification'

workflow {
    data = params.inputs.findAll { input -> input.role == 'data' }
    pairs = params.inputs
        .findAll { input -> input.role == 'embedding' }
        .collect { input -> tuple(input, data.find { other -> other.id == input.data }) }
    inputs = channel.fromList(pairs).map { input, counts -> tuple(input, staged(input), counts, staged(counts)) }
    GEOMETRY(inputs, job(params, 'GEOMETRY'))
    records = GEOMETRY.out.record
        .toSortedList { a, b -> a[0].tag <=> b[0].tag }
        .filter { all -> all.size() > 0 }
        .map { all -> all.collect { pair -> pair[1] } }
    TABULATE(records, job(params, 'TABULATE'))
}
