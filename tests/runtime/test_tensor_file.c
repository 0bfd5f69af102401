/* Opening tensor files: names, the mapping, alignment. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/tensor.h"

static char folder[] = "/tmp/test_tensor_file.XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static const char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const void *bytes, size_t count)
{
    FILE *file = fopen(path_of(name), "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static void write_safetensors(const char *name, const char *header, const void *data, size_t data_bytes)
{
    char bytes[512] = { (char)strlen(header) }; /* lengths below 128 */
    memcpy(bytes + 8, header, strlen(header));
    memcpy(bytes + 8 + strlen(header), data, data_bytes);
    write_file(name, bytes, 8 + strlen(header) + data_bytes);
}

static void assert_refused(const char *spec, flp_status wanted, const char *message_part)
{
    flp_tensor tensor;
    assert_int_equal(flp_tensor_file_open(spec, &tensor), wanted);
    if (strstr(flp_error_message(), message_part) == NULL)
        fail_msg("'%s' does not hold '%s'", flp_error_message(), message_part);
    assert_null(tensor.file.bytes);
    assert_null(tensor.copy);
}

static void an_npy_file_is_mapped(void **state)
{
    struct {
        char header[FLP_NPY_HEADER_BYTES];
        float values[3];
    } file = { .values = { 1, 2, 3 } };
    flp_tensor tensor;
    char text[64];
    (void)state;
    flp_npy_header(FLP_F32, 1, (const int64_t[]){ 3 }, file.header);
    write_file("x.npy", &file, sizeof file.header + sizeof file.values);
    assert_int_equal(flp_tensor_file_open(path_of("x.npy"), &tensor), FLP_OK);
    assert_memory_equal(tensor.data, file.values, sizeof file.values);
    assert_null(tensor.copy);
    assert_string_equal(flp_tensor_describe(&tensor, text, sizeof text), "f32 [3]");
    flp_tensor_file_close(&tensor);
    assert_null(tensor.file.bytes);
    unlink(path_of("x.npy"));
}

static void safetensors_data_at_any_place_is_aligned_to_its_elements(void **state)
{
    static const int32_t values[2] = { -7, 1 << 30 };
    (void)state;
    for (int padding = 0; padding < 8; padding++) {
        char header[128];
        flp_tensor tensor;
        snprintf(header, sizeof header, "{\"t:0\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[0,8]}}%*s", padding, "");
        write_safetensors("x.safetensors", header, values, sizeof values);
        char spec[512];
        snprintf(spec, sizeof spec, "%s%s", path_of("x.safetensors"), padding % 2 ? "" : ":t:0");
        assert_int_equal(flp_tensor_file_open(spec, &tensor), FLP_OK);
        assert_int_equal((uintptr_t)tensor.data % sizeof(int32_t), 0);
        assert_memory_equal(tensor.data, values, sizeof values);
        flp_tensor_file_close(&tensor);
    }
    unlink(path_of("x.safetensors"));
}

static void a_bad_name_is_refused(void **state)
{
    (void)state;
    assert_refused("weights.bin", FLP_BAD_ARGUMENT, "weights.bin: wanted a name that ends in");
    assert_refused(".npy", FLP_BAD_ARGUMENT, "wanted a name that ends in");
    assert_refused("", FLP_BAD_ARGUMENT, "wanted a name that ends in");
    assert_refused(path_of("none.npy"), FLP_IO_FAILED, "none.npy: No such file or directory");
    assert_refused(path_of("none.safetensors:x"), FLP_IO_FAILED, "none.safetensors: No such file");
}

static void what_is_no_file_of_tensors_is_refused(void **state)
{
    (void)state;
    write_file("empty.npy", "", 0);
    assert_refused(path_of("empty.npy"), FLP_BAD_ARGUMENT, "empty.npy: the file is empty");
    unlink(path_of("empty.npy"));
    assert_int_equal(mkdir(path_of("folder.npy"), 0700), 0);
    assert_refused(path_of("folder.npy"), FLP_IO_FAILED, "folder.npy: a directory, wanted a regular file");
    rmdir(path_of("folder.npy"));
    write_file("text.npy", "row,logp\n0,-1.5\n", 16);
    assert_refused(path_of("text.npy"), FLP_BAD_ARGUMENT, "text.npy: not a .npy file");
    unlink(path_of("text.npy"));
}

static void a_description_stays_inside_its_buffer(void **state)
{
    flp_tensor tensor = { .dtype = FLP_BF16, .rank = 3, .shape = { 4096, 64, 1 } };
    char text[64];
    (void)state;
    assert_string_equal(flp_tensor_describe(&tensor, text, sizeof text), "bf16 [4096, 64, 1]");
    for (size_t bytes = 1; bytes < 19; bytes++) {
        memset(text, '#', sizeof text);
        assert_int_equal(strlen(flp_tensor_describe(&tensor, text, bytes)), bytes - 1);
        assert_int_equal(text[bytes], '#');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_npy_file_is_mapped),
        cmocka_unit_test(safetensors_data_at_any_place_is_aligned_to_its_elements),
        cmocka_unit_test(a_bad_name_is_refused),
        cmocka_unit_test(what_is_no_file_of_tensors_is_refused),
        cmocka_unit_test(a_description_stays_inside_its_buffer),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
