process SCMETRIC_INTEGRATION {
    tag "$meta.id"
    label 'process_medium'
    container params.corrmask_image

    input:
    tuple val(meta), path(h5ad)
    val batch
    val label
    val embeddings // ['X_pca', 'X_scVI']: the first is the one before integration

    output:
    tuple val(meta), path("*.integration.tsv"), emit: table
    tuple val(meta), path("*.report.tsv")     , emit: report
    path "versions.yml"                       , emit: versions

    script:
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    scmetric integration ${task.ext.args ?: ''} --threads $task.cpus --batch-key '$batch' --label '$label' \\
        --embedding '${embeddings.join(',')}' --report ${prefix}.report.tsv -o ${prefix}.integration.tsv '$h5ad'

    echo '"${task.process}":' > versions.yml
    scmetric --version | sed -E 's/^[^ ]+ ([^ ]+).*/    corrmask: \\1/' >> versions.yml
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    touch ${prefix}.integration.tsv ${prefix}.report.tsv versions.yml
    """
}
