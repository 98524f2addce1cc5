#include "eval/metrics.h"

#include "base/error.h"
#include "base/sort.h"

void metrics_init(struct metrics *m, size_t k)
{
	*m = (struct metrics){.k = k,
		.confusion = xcalloc(k * k, sizeof *m->confusion),
		.support = xcalloc(k, sizeof *m->support),
		.predicted = xcalloc(k, sizeof *m->predicted),
		.f1 = xcalloc(k, sizeof *m->f1)};
}

void metrics_release(struct metrics *m)
{
	free_all(m->confusion, m->support, m->predicted, m->f1);
	*m = (struct metrics){0};
}

void metrics_add(struct metrics *m, const uint32_t *truth, const uint32_t *predicted, size_t n)
{
	for (size_t i = 0; i < n; i++)
		m->confusion[truth[i] * m->k + predicted[i]]++;
	m->n += n;
}

void metrics_score(struct metrics *m)
{
	uint64_t right = 0, occurring = 0, known = 0;
	double recall = 0, f1 = 0, weighted = 0;
	memset(m->support, 0, m->k * sizeof *m->support);
	memset(m->predicted, 0, m->k * sizeof *m->predicted);
	for (size_t t = 0; t < m->k; t++)
		for (size_t p = 0; p < m->k; p++) {
			m->support[t] += m->confusion[t * m->k + p];
			m->predicted[p] += m->confusion[t * m->k + p];
		}
	for (size_t c = 0; c < m->k; c++) {
		uint64_t tp = m->confusion[c * m->k + c], sum = m->support[c] + m->predicted[c];
		m->f1[c] = sum ? 2.0 * (double)tp / (double)sum : 0;
		right += tp;
		known += sum != 0;
		f1 += m->f1[c];
		weighted += m->f1[c] * (double)m->support[c];
		if (m->support[c]) {
			occurring++;
			recall += (double)tp / (double)m->support[c];
		}
	}
	m->accuracy = m->n ? (double)right / (double)m->n : NAN;
	m->balanced_accuracy = occurring ? recall / (double)occurring : NAN;
	m->macro_f1 = known ? f1 / (double)known : NAN;
	m->weighted_f1 = m->n ? weighted / (double)m->n : NAN;
}

struct rank {
	uint64_t frequency;
	size_t class;
};

COMPARE(rarest_first, struct rank, ORDER(a->frequency, b->frequency) ?: ORDER(a->class, b->class))

double metrics_rare_f1(const struct metrics *m, const uint64_t *frequency, uint8_t *chosen)
{
	FREED struct rank *r = xmalloc(m->k * sizeof *r);
	size_t n = 0, rare;
	double sum = 0;
	if (chosen)
		memset(chosen, 0, m->k);
	for (size_t c = 0; c < m->k; c++)
		if (m->support[c])
			r[n++] = (struct rank){frequency[c], c};
	qsort(r, n, sizeof *r, rarest_first);
	rare = n < 2 ? n : (2 * n + 3) / 6; /* n / 3, rounded */
	for (size_t i = 0; i < rare; i++) {
		sum += m->f1[r[i].class];
		if (chosen)
			chosen[r[i].class] = 1;
	}
	return rare ? sum / (double)rare : NAN;
}
