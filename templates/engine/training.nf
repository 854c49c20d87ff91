// One task, so that the classes of a whole run go into the class-data archive.

process TRAIN {
    tag "${name}"
    publishDir 'results', mode: 'copy'

    input:
    val name

    output:
    path 'greeting.txt'

    script:
    """
    echo "${name}" > greeting.txt
    """
}

workflow {
    TRAIN(Channel.of(params.name)).view()
}
