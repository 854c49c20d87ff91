// Embeds reference and query, fits a classifier on the one, or takes a fitted one, and labels the other.
//
// Most methods embed the two side by side. One that is fitted to its input is fitted to the reference, and the query waits
// for what it then is projected with.

include { EMBED } from './modules/embed'
include { FIT; PROJECT } from './modules/project'
include { CLASSIFY } from './modules/classify'
include { job; runner; staged } from './modules/specification'

/** What a task is told that only embeds: nothing of the classifier, so that another one finds the embeddings done. */
def embedder(Map told) {
    def ours = ['label_key', 'classifier', 'knn_k']
    told + [specification: told.specification.findAll { name, _value -> !ours.contains(name) }]
}

workflow {
    inputs = channel.fromList(params.inputs).map { input -> tuple(input, staged(input)) }
    fitted = [fitted: params.fitted]
    // What the reference gives: itself, its embedding, its projection. A fitted classifier has all it needs.
    nothing = channel.of(tuple([], [], []))
    if (params.work.PROJECT) {
        roles = inputs.branch { input, _data ->
            reference: input.role == 'reference'
            query: input.role == 'query'
        }
        if (params.fitted) {
            learned = nothing
        } else {
            FIT(roles.reference, embedder(job(params, 'FIT')), runner(params))
            learned = FIT.out
        }
        // A list in a list, since an empty one would vanish.
        projections = learned.map { _reference, _embedded, projection -> [projection] }
        PROJECT(roles.query.combine(projections), embedder(job(params, 'PROJECT')) + fitted, runner(params))
        queries = PROJECT.out
    } else {
        EMBED(inputs, embedder(job(params, 'EMBED')), runner(params))
        embedded = EMBED.out.branch { input, _embedding ->
            reference: input.role == 'reference'
            query: input.role == 'query'
        }
        learned = params.fitted ? nothing : embedded.reference.map { input, embedding -> tuple(input, embedding, []) }
        queries = embedded.query
    }
    CLASSIFY(learned.combine(queries), job(params, 'CLASSIFY') + fitted + [projected: params.work.PROJECT != null])
}
