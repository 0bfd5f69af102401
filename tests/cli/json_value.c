/* Prints a member of a JSON file, or how many an array has: json_value FILE PATH, where PATH is a.b.2.c. Exits with 1 where FILE
 * is not JSON or the member is missing. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    json_error_t error;
    if (argc != 3)
        return fprintf(stderr, "usage: json_value FILE PATH\n"), 2;
    json_t *root = json_load_file(argv[1], 0, &error), *at = root;
    if (root == NULL)
        return fprintf(stderr, "%s:%d: %s\n", argv[1], error.line, error.text), 1;
    for (char *name = strtok(argv[2], "."); name != NULL && at != NULL; name = strtok(NULL, "."))
        at = json_is_array(at) ? json_array_get(at, (size_t)atol(name)) : json_object_get(at, name);
    if (at == NULL)
        return fprintf(stderr, "%s: no such member\n", argv[1]), 1;
    if (json_is_array(at))
        printf("%zu\n", json_array_size(at));
    else if (json_is_string(at))
        puts(json_string_value(at));
    else if (json_is_real(at))
        printf("%.17g\n", json_real_value(at));
    else if (json_dumpf(at, stdout, JSON_ENCODE_ANY) == 0)
        putchar('\n');
    json_decref(root);
    return 0;
}
