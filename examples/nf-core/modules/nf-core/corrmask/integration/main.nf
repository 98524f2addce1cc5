process CORRMASK_INTEGRATION {
    tag "$meta.id"
    label 'process_medium'

    conda "${moduleDir}/environment.yml"
    container "corrmask:0.1.0"

    input:
    tuple val(meta), path(h5ad)
    val batch
    val label
    val embeddings

    output:
    tuple val(meta), path("*.integration.tsv")    , emit: table
    tuple val(meta), path("*.report.tsv")         , emit: report
    tuple val(meta), path("*.integration_mqc.tsv"), emit: multiqc
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

    # MultiQC: a line for each embedding
    {
        printf '# id: corrmask_integration\\n# section_name: Integration metrics\\n# plot_type: table\\n'
        awk -F '\\t' -v OFS='\\t' -v id='$prefix' '
            NR == 1 { for (i = 2; \$i != "range"; i++) row[i] = id ":" \$i; n = i; head = "Sample"; next }
            { head = head OFS \$1; for (i = 2; i < n; i++) row[i] = row[i] OFS \$i }
            END { print head; for (i = 2; i < n; i++) print row[i] }' ${prefix}.integration.tsv
    } > ${prefix}.integration_mqc.tsv
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    touch ${prefix}.integration.tsv ${prefix}.report.tsv ${prefix}.integration_mqc.tsv
    """
}
