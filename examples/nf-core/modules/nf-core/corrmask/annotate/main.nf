process CORRMASK_ANNOTATE {
    tag "$meta.id"
    label 'process_medium'

    conda "${moduleDir}/environment.yml"
    container "corrmask:0.1.0"

    input:
    tuple val(meta), path(h5ad)
    tuple val(meta2), path(reference)
    val label

    output:
    tuple val(meta), path("*.annotated.h5ad"), emit: h5ad
    tuple val(meta), path("*.annotate.html") , emit: report
    tuple val(meta), path("*.annotate.txt")  , emit: findings
    tuple val(meta), path("*.types_mqc.tsv") , emit: multiqc
    tuple val("${task.process}"), val('corrmask'), eval("h5tok --version | cut -d ' ' -f 2"), emit: versions_corrmask, topic: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    corrmask annotate \\
        DATA=$h5ad \\
        REFERENCE=$reference \\
        LABEL='$label' \\
        THREADS=$task.cpus \\
        RESULTS=results \\
        $args
    cp results/annotate/latest/annotated.h5ad ${prefix}.annotated.h5ad
    cp results/annotate/latest/report.html ${prefix}.annotate.html
    cp results/annotate/latest/report.txt ${prefix}.annotate.txt

    # MultiQC: how many cells each type got
    {
        printf '# id: corrmask_annotate\\n# section_name: Cell types\\n# plot_type: bargraph\\n'
        scview -q -c assigned results/annotate/latest/new.pred | awk -F '\\t' -v OFS='\\t' -v id='$prefix' '
            NR > 1 { if (!cells[\$1]++) type[++n] = \$1 }
            END { head = "Sample"; row = id; for (i = 1; i <= n; i++) { head = head OFS type[i]; row = row OFS cells[type[i]] } print head; print row }'
    } > ${prefix}.types_mqc.tsv
    rm -r results
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    touch ${prefix}.annotated.h5ad ${prefix}.annotate.html ${prefix}.annotate.txt ${prefix}.types_mqc.tsv
    """
}
