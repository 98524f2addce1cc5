/* Instead of a fuzzing engine: gives a target the files of the command line, one after another, those of folders too. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t files;

static int replay(const char *path)
{
	struct stat st;
	struct dirent **entry;
	if (stat(path, &st))
		return perror(path), -1;
	int bad = 0, n = S_ISDIR(st.st_mode) ? scandir(path, &entry, NULL, alphasort) : 0;
	for (int i = 0; i < n; i++) {
		char file[4096];
		snprintf(file, sizeof file, "%s/%s", path, entry[i]->d_name);
		bad |= *entry[i]->d_name != '.' && replay(file);
		free(entry[i]);
	}
	if (S_ISDIR(st.st_mode))
		return n < 0 ? (perror(path), -1) : (free(entry), bad);
	FILE *f = fopen(path, "rb");
	uint8_t *data = malloc((size_t)st.st_size + 1);
	if (!f || !data || fread(data, 1, (size_t)st.st_size, f) != (size_t)st.st_size)
		return perror(path), -1;
	fclose(f);
	fprintf(stderr, "%s\n", path); /* the last line of a crash names the input */
	LLVMFuzzerTestOneInput(data, (size_t)st.st_size);
	free(data);
	files++;
	return 0;
}

int main(int argc, char **argv)
{
	int bad = 0;
	for (int i = 1; i < argc; i++)
		bad |= replay(argv[i]);
	fprintf(stderr, "%zu inputs\n", files);
	return bad || !files;
}
