/* maskgen --shard: which of several shards this one is. */
#include "maskgen.h"

static int whole(const char *s, uint64_t *v)
{
	char *end;
	if (!s || *s < '0' || *s > '9')
		return 0;
	*v = strtoull(s, &end, 10);
	return *end == 0 && *v <= 1000000;
}

/* Rank and size from the launcher's environment variables: mpirun, other launchers with PMI, srun. */
static void shard_of_launcher(struct loader *l)
{
	static const char *const var[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMIX_RANK", "PMIX_SIZE"},
		{"PMI_RANK", "PMI_SIZE"}, {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
	for (size_t i = 0; i < sizeof var / sizeof *var; i++) {
		const char *r = getenv(var[i][0]), *n = getenv(var[i][1]);
		if (!r || !n)
			continue;
		if (!whole(r, &l->shard) || !whole(n, &l->shards) || l->shard >= l->shards)
			die("%s=%s, %s=%s: expected a rank below a size", var[i][0], r, var[i][1], n);
		if (l->shard == 0)
			info("--shard auto: shard 0 of %s (%s)", n, var[i][1]);
		return;
	}
	if (getenv("SLURM_NTASKS")) /* sbatch and salloc set it, and sbatch SLURM_PROCID too, where nothing runs in parallel */
		die("--shard auto: no rank here: SLURM_NTASKS is the job's; start this command with srun or mpirun");
	die("--shard auto: no rank in the environment (OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK or SLURM_PROCID, each with its size)");
}

void parse_shard(struct loader *l, const char *shard_text)
{
	if (strcmp(shard_text, "auto") == 0) {
		shard_of_launcher(l);
		return;
	}
	char *r = xstrdup(shard_text), *slash = strchr(r, '/');
	if (slash)
		*slash++ = 0;
	if (!whole(r, &l->shard) || !whole(slash, &l->shards) || l->shard >= l->shards)
		usage_error("--shard: '%s' is not R/N with R below N, or auto", shard_text);
	free(r);
}
