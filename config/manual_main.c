/*
 * manual EXAMPLE TEMPLATE: writes the manual page of the settings, which is the template with them
 * in the place of its line "@SETTINGS@". Of a build.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/manual.h"

/* All of a file, which the caller frees. */
static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;

    if (!file || getdelim(&text, &size, '\0', file) < 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    fclose(file);
    return text;
}

int main(int argc, char **argv)
{
    static const char MARK[] = "@SETTINGS@\n";
    char *example, *template, *mark;
    const struct schema_key *lacks;
    struct manual manual;

    if (argc != 3) {
        fprintf(stderr, "usage: %s EXAMPLE TEMPLATE\n", argv[0]);
        return EXIT_FAILURE;
    }
    example = read_file(argv[1]);
    template = read_file(argv[2]);
    mark = strstr(template, MARK);
    manual_init(&manual, example);
    lacks = manual_lacks(&manual);
    if (lacks)
        fprintf(stderr, "%s: nothing is said of %s in %s\n", argv[1], lacks->name,
                schema_tables[lacks->section].name);
    else if (!mark)
        fprintf(stderr, "%s: no line \"@SETTINGS@\"\n", argv[2]);
    else
        fwrite(template, 1, (size_t)(mark - template), stdout);
    if (!lacks && mark) {
        manual_write(&manual, stdout);
        fputs(mark + strlen(MARK), stdout);
    }
    manual_fini(&manual);
    free(example);
    free(template);
    return lacks || !mark || ferror(stdout) || fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
