include { command } from './specification'

process GEOMETRY {
    tag "${params.method}"
    publishDir "${launchDir}/outputs/geometry/${params.method}", mode: 'copy'

    input:
    val inputs
    path 'embedding*.h5ad'
    path 'data*.h5ad'
    val spec

    output:
    path '*.csv'

    script:
    command(params.work.GEOMETRY, 'geometry', spec + [method: params.method, inputs: inputs])
}
