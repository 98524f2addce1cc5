#include "train/ranks.h"

#include "base/clock.h"
#include "base/digest.h"

void ranks_init(struct ranks *r, struct comm *comm)
{
	*r = (struct ranks){.rank = comm_rank(comm), .size = comm_size(comm), .comm = comm};
}

void ranks_release(struct ranks *r)
{
	comm_close(r->comm);
	free_all(r->mine, r->sum, r->buffers);
	ranks_init(r, NULL);
}

int ranks_share(struct ranks *r, void *data, size_t n, struct error *e)
{
	return comm_copy(r->comm, data, n, e);
}

int ranks_share_text(struct ranks *r, int from, char *text, size_t n, struct error *e)
{
	FREED double *x = xcalloc(n, sizeof *x);
	for (size_t i = 0; i < n && r->rank == from; i++)
		x[i] = text[i];
	int bad = ranks_sum(r, x, n, e);
	for (size_t i = 0; i < n && !bad; i++)
		text[i] = (char)x[i];
	return bad;
}

int ranks_share_model(struct ranks *r, struct model *m, int moments, struct error *e)
{
	static const enum which arrays[] = {PARAM, MOMENT1, MOMENT2};
	if (!r->comm)
		return 0;
	size_t n = model_size(m, PARAM);
	r->mine = xcalloc(n, sizeof *r->mine);
	r->sum = xcalloc(n, sizeof *r->sum);
	for (size_t i = 0; i < (moments ? 3 : 1); i++) {
		model_read_all(m, arrays[i], r->mine);
		if (comm_copy(r->comm, r->mine, model_size(m, arrays[i]) * sizeof *r->mine, e))
			return -1;
		model_write_all(m, arrays[i], r->mine);
	}
	r->buffers = xcalloc(n - model_size(m, GRAD), sizeof *r->buffers);
	model_read_part(m, PARAM, model_size(m, GRAD), n, r->buffers);
	return 0;
}

/* ---- devices ---- */

enum {
	CAN = 0, /* what a rank says of its device: can it join a group? */
	DEVICE, /* the words of group_info.device */
	WORDS = DEVICE + sizeof((struct group_info *)0)->device / sizeof(uint32_t),
};

static int same_device(const double *a, const double *b)
{
	for (size_t i = DEVICE; i < WORDS; i++)
		if (a[i] < b[i] || a[i] > b[i])
			return 0;
	return 1;
}

/* The first rank whose device cannot join, or is the device of the earlier rank *as; `size` if all can. */
static int first_outside(const double (*x)[WORDS], int size, int *as)
{
	for (int i = 0; i < size; i++) {
		for (*as = 0; *as < i && !same_device(x[*as], x[i]);)
			++*as;
		if (!(x[i][CAN] > 0) || *as < i)
			return i;
	}
	return size;
}

static int open_group(struct ranks *r, struct ops *o, struct error *e)
{
	char id[GROUP_ID] = "";
	if ((!r->rank && o->group_id(o, id, e)) || comm_copy(r->comm, id, sizeof id, e))
		return -1;
	return o->group_open(o, id, r->rank, r->size, e);
}

int ranks_join_devices(struct ranks *r, struct ops *o, struct error *what, struct error *e)
{
	struct group_info own = {.library = ""};
	int as;
	*what = (struct error){""};
	if (r->size == 1 || !o->group_find) /* all ranks have the same kind of device */
		return 0;
	double(*x)[WORDS] = xcalloc((size_t)r->size, sizeof *x);
	x[r->rank][CAN] = o->group_find(o, &own, what) == 0;
	for (size_t i = DEVICE; i < WORDS; i++)
		x[r->rank][i] = own.device[i - DEVICE];
	int bad = ranks_sum(r, x[0], (size_t)r->size * WORDS, e);
	int outside = first_outside(x, r->size, &as);
	int shared = outside < r->size && x[outside][CAN] > 0;
	free(x);
	if (bad)
		return -1;
	if (shared)
		error_set(what, "ranks %d and %d share a GPU", as, outside);
	if (outside < r->size)
		return ranks_share_text(r, outside, what->msg, sizeof what->msg, e);
	if (open_group(r, o, e))
		return -1;
	error_set(what, "%s", own.library);
	r->group = 1;
	return 1;
}

int ranks_same(struct ranks *r, const char *text, struct error *e)
{
	int differ = comm_same(r->comm, text, e);
	return differ < 0 ? -1 : !differ;
}

int ranks_same_weights(struct ranks *r, struct model *m, struct error *e)
{
	char hex[DIGEST_SIZE];
	if (!r->comm)
		return 1;
	model_read_all(m, PARAM, r->mine);
	digest_bytes(r->mine, model_size(m, PARAM) * sizeof *r->mine, hex);
	return ranks_same(r, hex, e);
}

/* ---- a step ---- */

/* Called by the backward pass if there is no group. It cannot fail for us: ranks_end does. */
static void send_part(void *arg, size_t from, size_t to)
{
	struct ranks *r = arg;
	r->sent = 1;
	if (r->failed)
		return;
	model_read_part(r->model, GRAD, from, to, r->mine + from);
	r->failed = comm_start_sum(r->comm, r->sum + from, r->mine + from, to - from, &r->error) != 0;
}

/* The forward passes have moved the buffers. */
static int start_buffers(struct ranks *r, struct model *m, struct error *e)
{
	size_t from = model_size(m, GRAD), to = model_size(m, PARAM);
	if (from == to)
		return 0;
	model_read_part(m, PARAM, from, to, r->mine + from);
	return comm_start_sum(r->comm, r->sum + from, r->mine + from, to - from, e);
}

/* After a fault there is no step: the buffers are those of the finished steps. */
static void finish_buffers(struct ranks *r, struct model *m)
{
	size_t from = model_size(m, GRAD), to = model_size(m, PARAM);
	for (size_t i = from; i < to && !r->status.fault; i++)
		r->buffers[i - from] = r->sum[i] / (float)r->size;
	if (from < to)
		model_write_buffers(m, r->buffers);
}

int ranks_sum(struct ranks *r, double *x, size_t n, struct error *e)
{
	if (!r->comm)
		return 0;
	FREED double *own = xmalloc(n * sizeof *own);
	memcpy(own, x, n * sizeof *x);
	return comm_start_total(r->comm, x, own, n, e) || comm_wait(r->comm, e) ? -1 : 0;
}

int ranks_begin(struct ranks *r, struct model *m, const struct totals *own, enum fault fault, int signal, struct error *e)
{
	r->own_totals = r->totals = *own;
	r->own_status = r->status = (struct status){.fault = (int)fault, .rank = r->rank, .signal = signal};
	if (!r->comm)
		return 0;
	r->model = m;
	r->sent = r->failed = 0;
	r->own_status.rank = fault ? r->size - r->rank : 0; /* the largest of these is the first rank's */
	if (comm_start_total(r->comm, (double *)&r->totals, (const double *)&r->own_totals, sizeof r->totals / sizeof(double), e) ||
		comm_start_max(r->comm, (int *)&r->status, (const int *)&r->own_status, sizeof r->status / sizeof(int), e))
		return -1;
	if (m && start_buffers(r, m, e))
		return -1;
	if (m && !r->group)
		model_on_grad(m, send_part, r);
	return 0;
}

int ranks_end(struct ranks *r, struct error *e)
{
	if (!r->comm)
		return 0;
	if (r->model && r->group) {
		model_sum_grad(r->model);
	} else if (r->model && !r->sent) {
		model_on_grad(r->model, NULL, NULL);
		model_grad_parts(r->model, send_part, r);
	}
	if (r->failed)
		return error_set(e, "%s", r->error.msg);
	double start = clock_seconds();
	if (comm_wait(r->comm, e))
		return -1;
	r->waited += clock_seconds() - start;
	if (r->model && !r->group)
		model_write_all(r->model, GRAD, r->sum);
	if (r->model)
		finish_buffers(r, r->model);
	r->status.rank = r->size - r->status.rank;
	return 0;
}
