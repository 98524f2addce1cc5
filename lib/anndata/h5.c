#include "anndata/h5.h"

#include <errno.h>
#include <liblzf/lzf.h>
#include <zstd.h>

/* h5py's LZF filter, for data that HDF5 itself has to decode (strings). values[2] is usually the size of a decoded chunk. For strings of
 * variable length it is not, so the size is doubled until the chunk fits, as h5py does. */
static size_t lzf_filter(unsigned flags, size_t nvalues, const unsigned values[], size_t n, size_t *cap, void **buf)
{
	if (!(flags & H5Z_FLAG_REVERSE))
		return 0;
	size_t size = nvalues > 2 && values[2] && n >= values[2] / 1100 ? values[2] : n;
	for (; size <= H5_CHUNK_MAX && size / 1100 <= n; size *= 2) {
		void *out = malloc(size);
		unsigned got = out ? lzf_decompress(*buf, (unsigned)n, out, (unsigned)size) : 0;
		if (got) {
			free(*buf);
			*buf = out;
			*cap = size;
			return got;
		}
		free(out);
		if (!out || errno != E2BIG)
			break;
	}
	return 0;
}

/* Zstandard, for the same. A frame says how long it is; HDF5 writes none of unknown length. */
static size_t zstd_filter(unsigned flags, size_t nvalues, const unsigned values[], size_t n, size_t *cap, void **buf)
{
	unsigned long long size = flags & H5Z_FLAG_REVERSE ? ZSTD_getFrameContentSize(*buf, n) : ZSTD_CONTENTSIZE_ERROR;
	if (!size || size > H5_CHUNK_MAX || size / ZSTD_RATIO_MAX > n)
		return 0;
	void *out = malloc(size);
	size_t got = out ? ZSTD_decompress(out, size, *buf, n) : 0;
	if (!out || ZSTD_isError(got)) {
		free(out);
		return 0;
	}
	free(*buf);
	*buf = out;
	*cap = size;
	return got;
}

static herr_t first_message(unsigned n, const H5E_error2_t *err, void *out)
{
	static const char of_system[] = "error message = '";
	const char *text = n || !err->desc ? NULL : strstr(err->desc, of_system);
	text = text ? text + sizeof of_system - 1 : err->desc ? err->desc : "unknown";
	if (n == 0)
		snprintf(out, H5_WHY, "%.*s", (int)strcspn(text, "'\n"), text);
	return 0;
}

static herr_t not_allocated(unsigned n, const H5E_error2_t *err, void *yes)
{
	if (err->desc && strstr(err->desc, "not allocated"))
		*(int *)yes = 1;
	return 0;
}

static char failure[H5_WHY]; /* of the first call that failed; HDF5's state is the process's too */
static char dangling[H5_WHY]; /* the first path that is a link which leads nowhere */
static int refused_link; /* to another file: h5_setup takes away HDF5's code for such links */

static herr_t of_link(unsigned n, const H5E_error2_t *err, void *unused)
{
	refused_link |= err->desc && strstr(err->desc, "link class");
	return 0;
}

/* HDF5 calls it for every failure of a function of its interface. */
static herr_t note_failure(hid_t stack, void *unused)
{
	int absent = 0;
	H5Ewalk2(stack, H5E_WALK_UPWARD, not_allocated, &absent);
	H5Ewalk2(stack, H5E_WALK_UPWARD, of_link, NULL);
	if (!absent && !*failure)
		H5Ewalk2(stack, H5E_WALK_UPWARD, first_message, failure);
	return 0;
}

int h5_refused_link(void)
{
	return refused_link;
}

/* WHERE, what did not go well, and HDF5's reason. A version that this HDF5 does not know is no damage in most cases. */
static int fault(struct error *e, const char *where, const char *what, const char *damage, const char *why)
{
	unsigned v[3];
	H5get_libversion(&v[0], &v[1], &v[2]);
	if (!strstr(why, "version"))
		return error_set(e, "%s: %s: damaged or truncated HDF5%s (%s)", where, what, damage, why);
	return error_set(e,
		"%s: %s: a newer HDF5 wrote it than the %u.%u.%u that reads here, such as 2.0 with libver='latest' (%s); or it is damaged. Write it "
		"without libver, as anndata's write_h5ad does",
		where, what, v[0], v[1], v[2], why);
}

int h5_check(const char *where, struct error *e)
{
	if (refused_link)
		return error_set(e, "%s: has a link into another file, which is not followed: write all data into one file", where);
	return *failure ? fault(e, where, "cannot be read", ", or a failing disk", failure) : 0;
}

void h5_close(hid_t *id)
{
	if (*id >= 0)
		H5Idec_ref(*id);
}

const char *h5_dangling_link(void)
{
	return dangling;
}

int h5_object_type(hid_t loc, const char *path)
{
	H5O_info_t info;
	H5L_info_t link;
	if (H5Lexists(loc, path, H5P_DEFAULT) <= 0)
		return -1;
	if (H5Lget_info(loc, path, &link, H5P_DEFAULT) >= 0 && link.type == H5L_TYPE_SOFT && !H5Oexists_by_name(loc, path, H5P_DEFAULT)) {
		if (!*dangling)
			snprintf(dangling, sizeof dangling, "%s", path);
		return -1;
	}
	if (H5Oget_info_by_name2(loc, path, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
		return -1;
	return info.type;
}

void h5_setup(void)
{
	static const H5Z_class2_t lzf = {H5Z_CLASS_T_VERS, H5_FILTER_LZF, 0, 1, "lzf", NULL, NULL, lzf_filter};
	static const H5Z_class2_t zstd = {H5Z_CLASS_T_VERS, H5_FILTER_ZSTD, 0, 1, "zstd", NULL, NULL, zstd_filter};
	/* After an error HDF5's clean-up prints about objects that it cannot close; after a full disk it writes again, and crashes. Files are
	 * closed by those who opened them. */
	H5dont_atexit();
	H5Eset_auto2(H5E_DEFAULT, note_failure, NULL);
	*failure = *dangling = 0;
	refused_link = 0;
	if (H5Zfilter_avail(H5_FILTER_LZF) <= 0)
		H5Zregister(&lzf);
	if (H5Zfilter_avail(H5_FILTER_ZSTD) <= 0)
		H5Zregister(&zstd);
	if (H5Lis_registered(H5L_TYPE_EXTERNAL) > 0)
		H5Lunregister(H5L_TYPE_EXTERNAL);
}

void h5_why(char why[H5_WHY])
{
	snprintf(why, H5_WHY, "no further detail");
	H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first_message, why);
}

int h5_error(struct error *e, const char *where, const char *doing)
{
	char why[H5_WHY];
	h5_why(why);
	if (!strcmp(why, strerror(EAGAIN)))
		return error_set(e, "%s: a program has it open for writing, such as anndata with backed='r+': close it there first", where);
	FREED char *what = xasprintf("%s failed", doing);
	fault(e, where, what, "", why);
	return -1;
}

int h5_stored_size(hid_t dataset, const hsize_t at[], hsize_t *size, const char *where, struct error *e)
{
	*size = 0;
	if (H5Dget_chunk_storage_size(dataset, at, size) < 0) {
		/* in some versions of HDF5 a chunk that was never written is an error; only its text tells it from others */
		int absent = 0;
		H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, not_allocated, &absent);
		if (!absent)
			return h5_error(e, where, "finding a chunk");
		*size = 0;
	}
	return 0;
}

static int check_storage(hid_t dataset, const char *where, struct error *e)
{
	RELEASED(h5_close) hid_t plist = H5Dget_create_plist(dataset);
	H5D_layout_t layout = plist < 0 ? H5D_LAYOUT_ERROR : H5Pget_layout(plist);
	int outside = layout == H5D_LAYOUT_ERROR ? -1 : H5Pget_external_count(plist);
	if (outside < 0)
		return h5_error(e, where, "reading the storage layout");
	if (outside || layout == H5D_VIRTUAL)
		return error_set(e, "%s: %s, which reads other files: refused; write all data into one file (h5repack does)", where,
			outside ? "external storage" : "a virtual dataset");
	return 0;
}

hid_t h5_dataset(hid_t loc, const char *path, const char *where, struct error *e)
{
	hid_t d = H5Dopen2(loc, path, H5P_DEFAULT);
	if (d < 0)
		return h5_error(e, where, "opening the dataset");
	if (check_storage(d, where, e) == 0)
		return d;
	H5Dclose(d);
	return -1;
}

int h5_check_chunks(hid_t dataset, const char *where, struct error *e)
{
	RELEASED(h5_close) hid_t plist = H5Dget_create_plist(dataset), space = H5Dget_space(dataset);
	hsize_t dim[2] = {0, 1}, chunk[2] = {1, 1}, at[2], size, stored = 0;
	int n = plist < 0 ? -1 : H5Pget_nfilters(plist), with = -1;
	for (int i = 0; i < n; i++) {
		size_t none = 0;
		if (H5Pget_filter2(plist, (unsigned)i, NULL, &none, NULL, 0, NULL, NULL) == H5Z_FILTER_FLETCHER32)
			with = i;
	}
	if (n < 0 || space < 0)
		return h5_error(e, where, "reading the storage layout");
	if (with < 0)
		return 0;
	if (with < n - 1)
		return error_set(e, "%s: checksums come before compression, expected after it; rewrite the file", where);
	if (H5Sget_simple_extent_ndims(space) > 2 || H5Sget_simple_extent_dims(space, dim, NULL) < 1 || H5Pget_chunk(plist, 2, chunk) < 1 ||
		!chunk[0] || !chunk[1])
		return h5_error(e, where, "reading the chunk shape");
	if (H5Dget_num_chunks(dataset, space, &stored) < 0)
		return h5_error(e, where, "counting the chunks");
	double all = ceil((double)dim[0] / (double)chunk[0]) * ceil((double)dim[1] / (double)chunk[1]);
	if (all > 1000 + 2 * (double)stored) /* else a number in the file could make this loop endless */
		return error_set(e, "%s: %llu of %.0f chunks are there; damaged file", where, (unsigned long long)stored, all);
	for (at[0] = 0; at[0] < dim[0]; at[0] += chunk[0])
		for (at[1] = 0; at[1] < dim[1]; at[1] += chunk[1]) {
			if (h5_stored_size(dataset, at, &size, where, e))
				return -1;
			if (size && size <= H5_CHECKSUM)
				return error_set(e, "%s: the chunk that starts at %llu has %llu stored bytes and a checksum; damaged file",
					where, (unsigned long long)at[0], (unsigned long long)size);
		}
	return 0;
}

void texts_push_hdf5(struct texts *t, hid_t type, const char *p, size_t n, size_t step)
{
	int variable = H5Tis_variable_str(type) > 0;
	size_t size = H5Tget_size(type);
	int spaces = H5Tget_strpad(type) == H5T_STR_SPACEPAD;
	for (size_t i = 0; i < n; i++, p += step) {
		const char *s = p;
		if (variable)
			memcpy(&s, p, sizeof s);
		size_t len = !s ? 0 : variable ? strlen(s) : strnlen(s, size);
		while (!variable && spaces && len && s[len - 1] == ' ')
			len--;
		texts_push(t, s ? s : "", len);
	}
}
