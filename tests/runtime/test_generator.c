/* The embedded generator, its sandbox, and what a broken one becomes. */
#include "jit/generator.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "core/row_buckets.h"
#include "assertions.h"
#include "fake_directory.h"
#include "jit/source_tree.h"

/* Lets an allocation of LARGE_BYTES fail: by the sanitizer's limit in a build with it, else by the system's. */
enum { LARGE_BYTES = 1 << 30 };

#ifdef __SANITIZE_ADDRESS__
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=512";
}

static void limit_memory(int on)
{
    (void)on;
}
#else
static void limit_memory(int on)
{
    static struct rlimit before;
    struct rlimit limit;

    if (on)
        assert_int_equal(0, getrlimit(RLIMIT_AS, &before));
    limit = before;
    if (on)
        limit.rlim_cur = LARGE_BYTES;
    assert_int_equal(0, setrlimit(RLIMIT_AS, &limit));
}
#endif

static const char problem[] = "linear_logp:bf16:n64:d2048:v131072";
static flp_generator *generator;
static const char *directory;

static int start(void **state)
{
    (void)state;
    unsetenv("FUSEDLOGP_SOURCE_DIR");
    generator = NULL;
    directory = NULL;
    return 0;
}

static int stop(void **state)
{
    (void)state;
    flp_generator_destroy(generator);
    if (directory)
        fake_directory_remove(directory);
    return 0;
}

/* A source tree of one module, gen/fusedlogp.lua, and one template. */
static flp_status create_from(const char *lua)
{
    char path[4096];

    if (!directory) {
        directory = fake_directory_make();
        snprintf(path, sizeof(path), "%s/gen", directory);
        assert_int_equal(0, mkdir(path, 0700));
        snprintf(path, sizeof(path), "%s/templates", directory);
        assert_int_equal(0, mkdir(path, 0700));
    }
    snprintf(path, sizeof(path), "%s/gen/fusedlogp.lua", directory);
    fake_directory_write(path, lua, strlen(lua));
    snprintf(path, sizeof(path), "%s/templates/one.cuh", directory);
    fake_directory_write(path, "// one\n", 7);
    setenv("FUSEDLOGP_SOURCE_DIR", directory, 1);
    flp_generator_destroy(generator);
    return flp_generator_create(&generator);
}

/* A module whose functions are `functions`, besides architectures. */
static void create_with(const char *functions)
{
    char lua[4096];

    snprintf(lua, sizeof(lua), "local m = {}\nfunction m.architectures() return 'sm_80 sm_90a' end\n%s\nreturn m\n", functions);
    assert_succeeds(create_from(lua));
}

static void the_embedded_generator_selects_and_emits(void **state)
{
    flp_selection selection;
    flp_emitted tile, combine;

    (void)state;
    assert_succeeds(flp_generator_create(&generator));
    assert_succeeds(flp_generator_select(generator, &(flp_wanted_kernels){ problem, 90, "auto", "" }, &selection));
    assert_string_equal("sm_90a", selection.path);
    assert_string_equal("", selection.reason);
    assert_int_equal(2, selection.count);
    assert_int_equal(FLP_ROLE_TILE, selection.role[0]);
    assert_int_equal(FLP_ROLE_COMBINE, selection.role[1]);
    assert_succeeds(flp_generator_emit(generator, selection.variant[0], &tile));
    assert_succeeds(flp_generator_emit(generator, selection.variant[1], &combine));
    assert_string_equal(selection.variant[0], tile.manifest.variant);
    assert_string_equal(selection.variant[1], combine.manifest.variant);
    assert_string_equal("sm_90a", tile.manifest.arch);
    assert_int_equal(strlen(tile.source), tile.source_bytes);
    assert_contains(tile.source, tile.manifest.kernel);
    flp_emitted_free(&tile);
    flp_emitted_free(&combine);
    assert_succeeds(flp_generator_select(generator, &(flp_wanted_kernels){ problem, 90, "portable", "" }, &selection));
    assert_string_equal("portable", selection.path);
}

/* kind: the problem's text before and after its number of rows, and the backend. */
static void select_for_rows(const char *const kind[3], int64_t rows, flp_selection *selection)
{
    char text[160];

    snprintf(text, sizeof(text), "%s:n%lld:%s", kind[0], (long long)rows, kind[1]);
    *selection = (flp_selection){ 0 };
    assert_succeeds(flp_generator_select(generator, &(flp_wanted_kernels){ text, 90, kind[2], "" }, selection));
}

/* Calls without a plan share those of flp_row_buckets_rows. */
static void rows_that_share_a_plan_have_its_variants(void **state)
{
    static const char *const kinds[][3] = {
        { "linear_logp:bf16", "d2048:v131072", "sm_90a" },
        { "linear_logp:f32", "d2048:v131072", "sm_90a" },
        { "linear_logp:bf16", "d2048:v131072:argmax:entropy", "portable" },
        { "linear_logp_backward:bf16", "d2048:v131072:gh_bf16:gw_bf16:forward", "sm_90a" },
        { "linear_logp_backward:bf16", "d2048:v131072:gh_bf16:gw_bf16:forward:saved_exp", "sm_90a" },
        { "linear_logp_backward:bf16", "d4096:v131072:gh_bf16:gw_bf16:saved_exp:all_saved", "sm_90a" },
        { "linear_logp_backward:bf16", "d2304:v131072:gh_bf16:gw_bf16:saved_exp:all_saved", "sm_90a" },
        { "linear_logp_backward:bf16", "d2048:v131072:gh_bf16:gw_bf16:saved_exp:direct:hidden_first", "sm_90a" },
        { "linear_logp_backward:bf16", "d2048:v131072:gh_bf16:gw_bf16:forward", "portable" },
        { "linear_logp_backward:f32", "d2048:v131072:gh_f32:gw_f32:forward", "portable" },
        { "linear_cross_entropy:bf16", "d2048:v131072:gh_bf16:gw_bf16", "sm_90a" },
        { "linear_cross_entropy:bf16", "d2048:v131072:gh_bf16:gw_bf16:saved_exp", "sm_90a" },
        { "linear_cross_entropy:bf16", "d2048:v131072:gh_bf16:gw_bf16:saved_exp:direct", "sm_90a" },
        { "linear_cross_entropy:bf16", "d7168:v131072:gh_bf16:gw_bf16:saved_exp:all_saved", "sm_90a" },
        { "linear_cross_entropy:bf16", "d4096:v131072:gh_bf16:saved_exp:direct:parts2", "sm_90a" },
        { "linear_logp_backward:bf16", "d3072:v131072:gh_bf16:forward:saved_exp:in_forward:parts4", "sm_90a" },
        { "linear_cross_entropy:bf16", "d2048:v131072:gh_bf16:gw_bf16", "portable" },
        { "logits_logp:bf16", "v131072", "sm_90a" },
        { "logits_logp:f32", "v131072", "portable" },
        { "weighted_sum:bf16", "d4096", "portable" },
        { "weighted_sum_backward:bf16", "d4096:gw_f32", "portable" },
        { "logits_logp_backward:bf16", "v131072", "portable" },
        { "logits_logp_backward:bf16", "v131072:fused", "sm_90a" },
        { "scale:bf16", "d4096", "portable" },
    };
    static const int64_t edges[] = { 1,    63,   64,   65,   127,  128,  129,  255,  256,  257,  300,   1023, 1024,
                                     1025, 2047, 2048, 2049, 4095, 4096, 4097, 5000, 8192, 8193, 16384, 16385 };
    flp_selection own, shared;

    (void)state;
    assert_succeeds(flp_generator_create(&generator));
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        for (size_t r = 0; r < sizeof(edges) / sizeof(*edges); r++) {
            select_for_rows(kinds[i], edges[r], &own);
            select_for_rows(kinds[i], flp_row_buckets_rows(edges[r]), &shared);
            assert_memory_equal(own.variant, shared.variant, sizeof(own.variant));
        }
}

static void what_it_refuses_has_a_status_and_a_reason(void **state)
{
    flp_selection selection;
    flp_emitted emitted;
    char *variants;

    (void)state;
    assert_succeeds(flp_generator_create(&generator));
    assert_fails(FLP_NO_VARIANT, flp_generator_select(generator, &(flp_wanted_kernels){ problem, 70, "auto", "" }, &selection),
                 "not portable: compute capability 7.0");
    assert_fails(FLP_BAD_ARGUMENT, flp_generator_emit(generator, "nonsense", &emitted), "nonsense");
    assert_null(emitted.source);
    assert_fails(FLP_NO_VARIANT, flp_generator_emit(generator, "linear_logp.bf16.d64.bm100.bv128.s108.c1.p4.sm_80", &emitted), "bm = 100");
    assert_fails(FLP_BAD_ARGUMENT, flp_generator_list(generator, "sm_12", NULL, NULL, &variants), "sm_12");
    assert_null(variants);
    assert_fails(FLP_BAD_ARGUMENT, flp_generator_list(generator, "sm_90a", "bf16,fp8", NULL, &variants), "fp8");
    assert_fails(FLP_BAD_ARGUMENT, flp_generator_list(generator, "sm_90a", NULL, "2048,x", &variants), "d = x");
}

static void an_architecture_has_a_compute_capability(void **state)
{
    int capability;

    (void)state;
    assert_succeeds(flp_generator_create(&generator));
    assert_succeeds(flp_generator_capability(generator, "sm_90a", &capability));
    assert_int_equal(90, capability);
    assert_succeeds(flp_generator_capability(generator, "sm_120a@host", &capability));
    assert_int_equal(120, capability);
    assert_fails(FLP_BAD_ARGUMENT, flp_generator_capability(generator, "sm_12", &capability), "arch = sm_12: known are sm_80");
}

/* Every variant of the list is a line that emit takes. */
static void the_list_is_of_variants_that_can_be_emitted(void **state)
{
    char *variants, *rest, *line;
    flp_emitted emitted;
    int lines = 0;

    (void)state;
    assert_succeeds(flp_generator_create(&generator));
    assert_succeeds(flp_generator_list(generator, "sm_80", "bf16", "2048", &variants));
    for (line = strtok_r(variants, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), lines++) {
        assert_succeeds(flp_generator_emit(generator, line, &emitted));
        flp_emitted_free(&emitted);
    }
    free(variants);
    assert_true(lines >= 3); /* two tile heights and a combine at least */
}

static void emitting_is_the_same_every_time(void **state)
{
    flp_emitted first, other;
    flp_generator *second;
    flp_selection selection;

    (void)state;
    assert_succeeds(flp_generator_create(&generator));
    assert_succeeds(flp_generator_select(generator, &(flp_wanted_kernels){ problem, 90, "auto", "" }, &selection));
    assert_succeeds(flp_generator_emit(generator, selection.variant[0], &first));
    for (int i = 0; i < 10; i++) {
        assert_succeeds(flp_generator_create(&second));
        assert_succeeds(flp_generator_emit(second, selection.variant[0], &other));
        assert_string_equal(first.source, other.source);
        assert_string_equal(first.manifest_text, other.manifest_text);
        flp_emitted_free(&other);
        flp_generator_destroy(second);
    }
    flp_emitted_free(&first);
}

static void a_directory_takes_the_place_of_the_embedded_files(void **state)
{
    const char *names;
    char first[65];

    (void)state;
    create_with("");
    assert_succeeds(flp_generator_architectures(generator, &names));
    assert_string_equal("sm_80 sm_90a", names);
    snprintf(first, sizeof(first), "%s", flp_generator_digest(generator));
    assert_int_equal(64, strlen(first));
    create_with("-- changed");
    assert_string_not_equal(first, flp_generator_digest(generator));
    create_with("");
    assert_string_equal(first, flp_generator_digest(generator));
}

/* printf 'gen/a.lua 2\nx\ntemplates/b.cuh 0\ntemplates/c.h 1\n\n' | sha256sum */
static void the_digest_is_over_names_lengths_and_bytes(void **state)
{
    flp_source_tree tree;
    char path[4096];

    (void)state;
    create_with("");
    snprintf(path, sizeof(path), "%s/gen/fusedlogp.lua", directory);
    remove(path);
    snprintf(path, sizeof(path), "%s/templates/one.cuh", directory);
    remove(path);
    snprintf(path, sizeof(path), "%s/gen/a.lua", directory);
    fake_directory_write(path, "x\n", 2);
    snprintf(path, sizeof(path), "%s/templates/b.cuh", directory);
    fake_directory_write(path, "", 0);
    snprintf(path, sizeof(path), "%s/templates/c.h", directory);
    fake_directory_write(path, "\n", 1);
    snprintf(path, sizeof(path), "%s/templates/notes.txt", directory);
    fake_directory_write(path, "not a source", 12);
    assert_succeeds(flp_source_tree_load(directory, &tree));
    assert_int_equal(3, tree.count);
    assert_string_equal("725109f374caf8e441cdff785cd2d9bd02783ab7a6c4f11b54740536bd6cf19c", tree.digest);
    assert_non_null(flp_source_tree_find(&tree, "gen/a.lua"));
    assert_null(flp_source_tree_find(&tree, "gen/b.lua"));
    flp_source_tree_free(&tree);
}

static void the_embedded_digest_is_that_of_the_embedded_files(void **state)
{
    flp_source_tree tree;

    (void)state;
    assert_succeeds(flp_source_tree_load(NULL, &tree));
    assert_string_equal(flp_embedded_digest, tree.digest);
    for (size_t i = 1; i < tree.count; i++)
        assert_true(strcmp(tree.files[i - 1].name, tree.files[i].name) < 0);
    flp_source_tree_free(&tree);
}

static void a_directory_without_sources_is_an_error(void **state)
{
    (void)state;
    setenv("FUSEDLOGP_SOURCE_DIR", "/nonexistent", 1);
    assert_fails(FLP_IO_FAILED, flp_generator_create(&generator), "FUSEDLOGP_SOURCE_DIR: /nonexistent/gen");
    assert_null(generator);
    setenv("FUSEDLOGP_SOURCE_DIR", "", 1);
    assert_succeeds(flp_generator_create(&generator)); /* as if it were not set */
}

static void lua_errors_are_internal_and_say_where(void **state)
{
    flp_selection selection;
    flp_emitted emitted;
    char *variants;

    (void)state;
    assert_fails(FLP_INTERNAL, create_from("return nonsense("), "gen/fusedlogp.lua:1:");
    assert_fails(FLP_INTERNAL, create_from("return 7"), "gen/fusedlogp.lua returned no table");
    assert_fails(FLP_INTERNAL, create_from("return require 'gen.none'"), "there is no gen/none.lua");
    create_with("function m.select() error('broken') end\nfunction m.emit() return {} end\nfunction m.list() return { {} } end");
    assert_fails(FLP_INTERNAL, flp_generator_select(generator, &(flp_wanted_kernels){ problem, 90, "auto", "" }, &selection), "gen/fusedlogp.lua:3: broken");
    assert_fails(FLP_INTERNAL, flp_generator_emit(generator, "v", &emitted), "source: got nil, wanted a string");
    assert_fails(FLP_INTERNAL, flp_generator_list(generator, "sm_80", NULL, NULL, &variants), "item 1: got table");
    create_with("function m.select() return { path = 'sm_90a', reason = '', kernels = {} } end\n"
                "function m.emit() return { source = 's', manifest = 'nonsense' } end");
    assert_fails(FLP_INTERNAL, flp_generator_select(generator, &(flp_wanted_kernels){ problem, 90, "auto", "" }, &selection), "kernels: got 0, wanted 1 .. ");
    assert_fails(FLP_INTERNAL, flp_generator_emit(generator, "v", &emitted), "");
    assert_null(emitted.source);
    create_with("function m.select() return { path = 'a path that is far too long', reason = '', kernels = { { role = 'tile', variant = 'k' } } } end");
    assert_fails(FLP_INTERNAL, flp_generator_select(generator, &(flp_wanted_kernels){ problem, 90, "auto", "" }, &selection), "path: got 27 characters");
}

static void selecting_fails(const char *kernels, const char *part)
{
    flp_selection selection;
    char lua[256];

    snprintf(lua, sizeof(lua), "function m.select() return { path = 'sm_90a', reason = '', kernels = { %s } } end", kernels);
    create_with(lua);
    assert_fails(FLP_INTERNAL, flp_generator_select(generator, &(flp_wanted_kernels){ problem, 90, "auto", "" }, &selection), part);
}

static void each_kernel_has_a_role_of_its_own(void **state)
{
    (void)state;
    selecting_fails("'k'", "kernels: got string, wanted a table each");
    selecting_fails("{ variant = 'k' }", "role: got nil, wanted a string");
    selecting_fails("{ role = 'tile' }", "variant: got nil, wanted a string");
    selecting_fails("{ role = 'tile', variant = ('k'):rep(192) }", "variant: got 192 characters, wanted fewer than 192");
    selecting_fails("{ role = 'tile', variant = 'a' }, { role = 'til', variant = 'b' }", "b: there is no role \"til\"");
    selecting_fails("{ role = 'tile', variant = 'a' }, { role = 'sum', variant = 'b' }, { role = 'tile', variant = 'c' }",
                    "c: the role \"tile\" has a kernel already, a");
}

static void the_sandbox_only_computes(void **state)
{
    static const char *const missing[] = { "io", "os", "debug", "package", "dofile", "loadfile", "print", "warn", "collectgarbage", "math.random", "_G" };
    flp_selection selection;
    char lua[256];

    (void)state;
    for (size_t i = 0; i < sizeof(missing) / sizeof(*missing); i++) {
        snprintf(lua, sizeof(lua), "function m.select() return nil, type(%s) end", missing[i]);
        create_with(lua);
        assert_fails(FLP_NO_VARIANT, flp_generator_select(generator, &(flp_wanted_kernels){ problem, 90, "auto", "" }, &selection), "nil");
    }
    /* Text is loaded for the globals it is given and no others; a compiled chunk is not. */
    create_with("function m.select() return nil, tostring(load('return x, require', '=t', 'bt', { x = 7 })()) end");
    assert_fails(FLP_NO_VARIANT, flp_generator_select(generator, &(flp_wanted_kernels){ problem, 90, "auto", "" }, &selection), "7");
    create_with("function m.select() return nil, select(2, load(('').dump(function() end), '=t', 'b', {})) end");
    assert_fails(FLP_NO_VARIANT, flp_generator_select(generator, &(flp_wanted_kernels){ problem, 90, "auto", "" }, &selection),
                 "attempt to load a binary chunk");
    create_with("function m.select() x = 1 end");
    assert_fails(FLP_INTERNAL, flp_generator_select(generator, &(flp_wanted_kernels){ problem, 90, "auto", "" }, &selection), "global x: there are no globals");
}

static void templates_are_read_by_name_and_nothing_else_is(void **state)
{
    flp_emitted emitted;

    (void)state;
    create_with("function m.emit(v, read) return nil, tostring(read('templates/one.cuh')) .. tostring(read('templates/none.cuh')) .. "
                "tostring(read('../etc/passwd')), 'illegal' end");
    assert_fails(FLP_NO_VARIANT, flp_generator_emit(generator, "v", &emitted), "// one\nnilnil");
}

static void running_out_of_memory_is_told_and_survived(void **state)
{
    char lua[256];
    flp_selection selection;
    flp_status status;

    (void)state;
    snprintf(lua, sizeof(lua), "function m.select(p, c) if c == 80 then return nil, 'still here' end return ('x'):rep(%d) end", LARGE_BYTES);
    create_with(lua);
    limit_memory(1);
    status = flp_generator_select(generator, &(flp_wanted_kernels){ problem, 90, "auto", "" }, &selection);
    limit_memory(0);
    if (status != FLP_OUT_OF_MEMORY)
        fail_msg("%d: %s", status, flp_error_message());
    assert_contains(flp_error_message(), "no memory for the generator's work");
    assert_fails(FLP_NO_VARIANT, flp_generator_select(generator, &(flp_wanted_kernels){ problem, 80, "auto", "" }, &selection), "still here");
}

static atomic_int failures;

static void *emit_often(void *variant)
{
    flp_emitted emitted;

    for (int i = 0; i < 10; i++) {
        if (flp_generator_emit(generator, variant, &emitted) != FLP_OK)
            atomic_fetch_add(&failures, 1);
        flp_emitted_free(&emitted);
    }
    return NULL;
}

static void threads_share_one_generator(void **state)
{
    pthread_t threads[4];
    flp_selection selection;

    (void)state;
    assert_succeeds(flp_generator_create(&generator));
    assert_succeeds(flp_generator_select(generator, &(flp_wanted_kernels){ problem, 90, "auto", "" }, &selection));
    for (int i = 0; i < 4; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, emit_often, selection.variant[i % 2]));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(0, failures);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_embedded_generator_selects_and_emits),
        TEST(what_it_refuses_has_a_status_and_a_reason),
        TEST(an_architecture_has_a_compute_capability),
        TEST(rows_that_share_a_plan_have_its_variants),
        TEST(the_list_is_of_variants_that_can_be_emitted),
        TEST(emitting_is_the_same_every_time),
        TEST(a_directory_takes_the_place_of_the_embedded_files),
        TEST(the_digest_is_over_names_lengths_and_bytes),
        TEST(the_embedded_digest_is_that_of_the_embedded_files),
        TEST(a_directory_without_sources_is_an_error),
        TEST(lua_errors_are_internal_and_say_where),
        TEST(each_kernel_has_a_role_of_its_own),
        TEST(the_sandbox_only_computes),
        TEST(templates_are_read_by_name_and_nothing_else_is),
        TEST(running_out_of_memory_is_told_and_survived),
        TEST(threads_share_one_generator),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
