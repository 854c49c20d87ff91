include { command; place } from './specification'

process EMBED {
    tag "${input.tag}"
    publishDir "${launchDir}/outputs/embeddings/${params.method}", mode: 'copy', saveAs: { _name -> "${input.id}.h5ad" }

    input:
    tuple val(input), path('data.h5ad')
    val spec

    output:
    tuple val(input), path('embedding.h5ad')

    script:
    command(params.work.EMBED, 'embed', spec + [data: place(input, 'data.h5ad'), output: 'embedding.h5ad'])
}
