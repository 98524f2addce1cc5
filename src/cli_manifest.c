#include "cli_manifest.h"

#include "base/file.h"

#include <errno.h>
#include <sys/stat.h>

struct list {
	char **file; /* [n] */
	size_t n, cap;
};

static void manifest_add(struct list *l, char *file)
{
	grow(l->file, l->cap, l->n + 1);
	l->file[l->n++] = file;
}

int cli_check_url(const char *name, struct error *e)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789");
	return n && !strncmp(name + n, "://", 3) ? error_set(e, "%s: the tools read files, not URLs: download it first", name) : 0;
}

/* One line of the list `name`, without its line break. */
static int add_line(struct list *l, const char *text, const char *name, size_t line, struct error *e)
{
	struct stat st;
	if (!*text || *text == '#')
		return 0;
	if (cli_check_url(text, e))
		return error_prefix(e, "%s: line %zu", name, line);
	char *folder = file_folder(name), *path = *text == '/' ? xstrdup(text) : xasprintf("%s/%s", folder, text);
	free(folder);
	if (stat(path, &st)) {
		error_set(e, "%s: line %zu: %s: %s", name, line, path, strerror(errno));
		free(path);
		return -1;
	}
	manifest_add(l, path);
	return 0;
}

static int add_list(struct list *l, const char *name, struct error *e)
{
	if (cli_check_url(name, e))
		return -1;
	FILE *f = fopen(name, "re");
	if (!f)
		return error_set(e, "%s: %s", name, strerror(errno));
	FREED char *text = NULL;
	size_t size = 0, line = 0, before = l->n;
	int bad = 0;
	for (ssize_t n; !bad && (n = getline(&text, &size, f)) >= 0;) {
		line++;
		if (strlen(text) != (size_t)n) {
			bad = error_set(e, "%s: line %zu has a NUL: expected a list of files, one per line", name, line);
			break;
		}
		while (n && (text[n - 1] == '\n' || text[n - 1] == '\r'))
			text[--n] = 0;
		bad = add_line(l, text, name, line, e);
	}
	if (!bad && ferror(f))
		bad = error_set(e, "%s: cannot read: %s", name, strerror(errno));
	if (!bad && l->n == before)
		bad = error_set(e, "%s: it names no file", name);
	fclose(f);
	return bad;
}

int cli_manifest(char **from, int *n, char ***to, struct error *e)
{
	struct list l = {0};
	int lists = 0;
	for (int i = 0; i < *n; i++)
		lists |= from[i][0] == '@';
	*to = from;
	if (!lists)
		return 0;
	for (int i = 0; i < *n; i++)
		if (from[i][0] != '@')
			manifest_add(&l, from[i]);
		else if (add_list(&l, from[i] + 1, e))
			return -1;
	*to = l.file;
	*n = (int)l.n;
	return 0;
}
