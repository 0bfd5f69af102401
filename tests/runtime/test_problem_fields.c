/* The generator's view of the tables of problems' fields. gen/problem_fields.lua is written by this program, with the file's name as its argument. */
#include "core/problem.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/operators.h"
#include "assertions.h"

static const char *const kinds[] = {
    [FLP_FIELD_DTYPE] = "dtype",         [FLP_FIELD_SIZE] = "size",     [FLP_FIELD_COUNT] = "count", [FLP_FIELD_STRIDE] = "stride",
    [FLP_FIELD_ALIGNMENT] = "alignment", [FLP_FIELD_NUMBER] = "number", [FLP_FIELD_NAME] = "name"
};

/* ---- writing ---- */

/* The key under which the generator has the field there: a size's letter, a word, another's name. */
static const char *key_at(const flp_operator *op, int at)
{
    FLP_EACH_FIELD (field, op)
        if (field->at == at)
            return field->kind == FLP_FIELD_SIZE ? field->prefix : field->kind == FLP_FIELD_CHOICE ? field->words[1] : field->name;
    return "?";
}

static void append_words(const flp_operator *op, flp_text *text)
{
    const char *separator = "    words = {";
    int count = 0;

    FLP_EACH_FIELD (field, op)
        for (int i = 0; i < FLP_FIELD_WORDS; i++)
            if (field->words[i]) {
                flp_text_append(text, "%s \"%s\"", separator, field->words[i]);
                separator = ++count % 10 ? "," : ",\n             ";
            }
    flp_text_append(text, " },\n");
}

static void append_stride(const flp_operator *op, const flp_field *field, flp_text *text)
{
    flp_text_append(text, ", columns = \"%s\"", key_at(op, field->columns_at));
    if (field->transposed_at)
        flp_text_append(text, ", rows = \"%s\", transposed = \"%s\"", key_at(op, field->rows_at), key_at(op, field->transposed_at));
    if (field->like_at)
        flp_text_append(text, ", like = \"%s\"", key_at(op, field->like_at));
}

static void append_field(const flp_operator *op, const flp_field *field, flp_text *text)
{
    flp_text_append(text, "    { name = \"%s\", kind = \"%s\", prefix = \"%s\"", field->name, kinds[field->kind], field->prefix);
    if (field->kind == FLP_FIELD_SIZE)
        flp_text_append(text, ", low = %d", (int)(field->empty_at > 0 ? 0 : field->low));
    if (field->kind == FLP_FIELD_STRIDE)
        append_stride(op, field, text);
    if (field->kind == FLP_FIELD_ALIGNMENT)
        flp_text_append(text, ", default = %d", FLP_PROBLEM_ALIGNMENT);
    if (field->kind == FLP_FIELD_DTYPE && field->otherwise == FLP_FIELD_AS_DTYPE)
        flp_text_append(text, ", default = \"dtype\"");
    flp_text_append(text, " },\n");
}

static flp_text write_tables(void)
{
    flp_text text = { 0 };

    flp_text_append(&text, "-- The fields of problems, in the order of their canonical strings. Written from the tables of runtime/operators/*/*_plan.c:\n"
                           "-- build/tests/runtime/test_problem_fields gen/problem_fields.lua\nreturn {\n");
    for (int i = 0; flp_operators[i]; i++) {
        flp_text_append(&text, "  {\n    operator = \"%s\",\n", flp_operators[i]->op->name);
        append_words(flp_operators[i]->op, &text);
        FLP_EACH_FIELD (field, flp_operators[i]->op)
            if (field->at != 0 && field->prefix)
                append_field(flp_operators[i]->op, field, &text);
        flp_text_append(&text, "  },\n");
    }
    flp_text_append(&text, "}\n");
    return text;
}

/* ---- tests ---- */

static void the_generator_has_the_tables(void **state)
{
    const char *source = getenv("FUSEDLOGP_SRCDIR");
    char path[4096], *bytes;
    flp_text wanted = write_tables();
    size_t count;

    (void)state;
    snprintf(path, sizeof(path), "%s/gen/problem_fields.lua", source ? source : ".");
    assert_succeeds(flp_file_read(AT_FDCWD, path, &bytes, &count));
    assert_string_equal(wanted.data, bytes);
    free(bytes);
    flp_text_free(&wanted);
}

static size_t field_bytes(const flp_field *field)
{
    if (field->kind == FLP_FIELD_NAME)
        return FLP_TOKEN_LOSS_NAME_BYTES;
    return field->kind <= FLP_FIELD_DTYPE || field->kind == FLP_FIELD_ALIGNMENT ? sizeof(int) : sizeof(int64_t);
}

/* What no row has is no part of a dispatch key: two problems that differ there would share a plan. */
static void every_byte_of_a_problem_but_padding_has_a_row(void **state)
{
    (void)state;
    for (int i = 0; flp_operators[i]; i++) {
        char bytes[FLP_PROBLEM_BYTES] = { 0 };
        size_t gap = 0;
        FLP_EACH_FIELD (field, flp_operators[i]->op) {
            for (size_t at = 0; at < field_bytes(field); at++)
                assert_int_equal(0, bytes[(size_t)field->at + at]++);
        }
        for (size_t at = 0; at < flp_operators[i]->op->problem_bytes; at++) {
            gap = bytes[at] ? 0 : gap + 1;
            assert_true(gap <= 4 && (gap != 1 || at % 8 == 4));
        }
    }
}

static void every_key_has_room(void **state)
{
    (void)state;
    for (int i = 0; flp_operators[i]; i++) {
        int choices = 0;
        size_t sizes = 0;
        FLP_EACH_FIELD (field, flp_operators[i]->op) {
            choices += field->kind <= FLP_FIELD_DTYPE ? flp_field_key_bits(field) : 0;
            sizes += field->kind <= FLP_FIELD_DTYPE || field->kind == FLP_FIELD_ALIGNMENT || (size_t)field->at == flp_operators[i]->op->rows_at
                         ? 0
                         : field_bytes(field) / sizeof(uint64_t);
        }
        assert_true(choices <= 64);
        assert_true(sizes <= FLP_DISPATCH_SIZES);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_generator_has_the_tables),
        cmocka_unit_test(every_byte_of_a_problem_but_padding_has_a_row),
        cmocka_unit_test(every_key_has_room),
    };

    if (argc > 1) {
        flp_text text = write_tables();
        flp_status status = flp_file_publish(AT_FDCWD, argv[1], text.data, text.length);
        flp_text_free(&text);
        return status != FLP_OK;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
