process SCMETRIC_INTEGRATION {
    tag "$meta.id"
    label 'process_medium'

    container 'corrmask:0.1.0'

    input:
    tuple val(meta), path(h5ad)
    val batch
    val label
    val embeddings // ['X_pca', 'X_scVI']: the first is the one before integration

    output:
    tuple val(meta), path("*.integration.tsv"), emit: table
    tuple val(meta), path("*.report.tsv")     , emit: report
    tuple val("${task.process}"), val('corrmask'), eval("scmetric --version | cut -d ' ' -f 2"), emit: versions_corrmask, topic: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    scmetric integration \\
        $args \\
        --threads $task.cpus \\
        --batch-key '$batch' \\
        --label '$label' \\
        --embedding '${embeddings.join(',')}' \\
        --report ${prefix}.report.tsv \\
        -o ${prefix}.integration.tsv \\
        $h5ad
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    touch ${prefix}.integration.tsv ${prefix}.report.tsv
    """
}
