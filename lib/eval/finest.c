#include "eval/finest.h"

static size_t likeliest(const double *p, size_t k)
{
	size_t best = 0;
	for (size_t c = 1; c < k; c++)
		best = p[c] > p[best] ? c : best;
	return best;
}

static double probability(const struct holds *h, size_t v, const double *p)
{
	double sum = 0;
	for (size_t c = 0; c < h->k; c++)
		sum += h->in[v * h->k + c] ? p[c] : 0;
	return sum;
}

size_t finest_answer(const struct holds *h, const double *p, double threshold)
{
	size_t best = likeliest(p, h->k), v = 0;
	while (v < h->n && !(h->in[v * h->k + best] && probability(h, v, p) > threshold))
		v++;
	return v;
}

double finest_score(const struct holds *h, const double *p, const uint8_t *truth)
{
	size_t best = likeliest(p, h->k);
	double most = 0, score = 0; /* a term is an answer if it is likelier than all before it */
	for (size_t v = 0; v < h->n; v++) {
		double sum = h->in[v * h->k + best] ? probability(h, v, p) : 0;
		size_t c = 0;
		if (!(sum > most))
			continue;
		most = sum;
		while (c < h->k && !(truth[c] && !h->in[v * h->k + c]))
			c++;
		score = c < h->k ? sum : score;
	}
	return score;
}
