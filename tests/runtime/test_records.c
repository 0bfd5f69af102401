/* The store of records: what is found for whom, and that nothing in a directory can fail a call. */
#include "tune/records.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"
#include "assertions.h"
#include "fake_directory.h"
#include "fake_record.h"

static const char *root;
static char user[512];
static flp_records *records;

/* Another store instead of the current one. */
static void open_store(const char *directory, const char *systems)
{
    flp_records_destroy(records);
    assert_succeeds(flp_records_create(&(flp_records_options){ directory, systems }, &records));
}

static int make(void **state)
{
    (void)state;
    root = fake_directory_make();
    snprintf(user, sizeof(user), "%s/deep/records", root);
    open_store(user, "");
    return 0;
}

static int clean(void **state)
{
    (void)state;
    flp_records_destroy(records);
    records = NULL;
    fake_directory_remove(root);
    return 0;
}

/* What a find of wanted's problem on wanted's machine answers; the record's tuning is compared. */
static void assert_finds(flp_record_match match, const char *tuning, const flp_record *wanted)
{
    flp_record found;
    flp_record_match got;

    assert_succeeds(flp_records_find(records, &wanted->identity, &wanted->environment, &found, &got));
    assert_int_equal(match, got);
    if (match != FLP_RECORD_NONE)
        assert_string_equal(tuning, found.tuning);
}

static flp_record tuned_on(const char *device, int multiprocessors, const char *tuning)
{
    flp_record record = fake_record();

    strcpy(record.environment.device, device);
    record.environment.multiprocessors = multiprocessors;
    strcpy(record.tuning, tuning);
    return record;
}

static const char *path_of(const char *directory, const flp_record *record)
{
    char name[FLP_RECORD_NAME_BYTES];

    flp_record_name(record, name);
    return fake_directory_path(directory, name);
}

static void what_was_published_is_found_now_and_later(void **state)
{
    flp_record record = fake_record();

    (void)state;
    assert_finds(FLP_RECORD_NONE, "", &record);
    assert_succeeds(flp_records_publish(records, &record));
    assert_finds(FLP_RECORD_EXACT, "tile.bm=128,tile.group=8", &record);
    strcpy(record.tuning, "tile.bm=64");
    assert_succeeds(flp_records_publish(records, &record));
    assert_finds(FLP_RECORD_EXACT, "tile.bm=64", &record);
    assert_int_equal(1, fake_directory_count(user, ".record"));
    open_store(user, "");
    assert_finds(FLP_RECORD_EXACT, "tile.bm=64", &record);
}

static void every_part_of_the_identity_counts(void **state)
{
    flp_record record = fake_record(), other;

    (void)state;
    assert_succeeds(flp_records_publish(records, &record));
    other = fake_record_of_rows(8192);
    assert_finds(FLP_RECORD_NONE, "", &other);
    other = record;
    strcpy(other.identity.arch, "sm_90");
    assert_finds(FLP_RECORD_NONE, "", &other);
    other = record;
    strcpy(other.identity.numerics, "linear_logp.r4.bf16.s132");
    assert_finds(FLP_RECORD_NONE, "", &other);
    other = record;
    other.identity.templates[0] = 'f';
    assert_finds(FLP_RECORD_NONE, "", &other);
    other = record;
    other.identity.selection[0] = '0';
    assert_finds(FLP_RECORD_NONE, "", &other);
}

static void another_environment_is_near_by(void **state)
{
    flp_record record = fake_record(), other;

    (void)state;
    assert_succeeds(flp_records_publish(records, &record));
    for (int part = 0; part < 7; part++) {
        flp_environment *here = &other.environment;

        other = record;
        here->multiprocessors += part == 0;
        here->l2_bytes += part == 1;
        here->power_limit_w += part == 2;
        strcat(part == 3 ? here->device : part == 4 ? here->mig : part == 5 ? here->driver : here->nvrtc, part >= 3 ? "x" : "");
        assert_finds(FLP_RECORD_NEARBY, "tile.bm=128,tile.group=8", &other);
    }
}

/* Whatever the order in which they came. */
static void the_same_device_is_nearest_then_its_size(void **state)
{
    const flp_record ones[] = {
        tuned_on("NVIDIA H100 PCIe", 114, "tile.bm=1"),
        tuned_on("NVIDIA H100 NVL", 132, "tile.bm=2"),
        tuned_on("NVIDIA H800", 132, "tile.bm=3"),
        tuned_on("NVIDIA H200", 66, "tile.bm=4"),
    };
    flp_record here = tuned_on("NVIDIA H200", 132, "");
    flp_record_match match;
    flp_record found, again;

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_succeeds(flp_records_publish(records, &ones[i]));
    assert_finds(FLP_RECORD_NEARBY, "tile.bm=4", &here);
    here = tuned_on("NVIDIA H20", 120, "");
    assert_finds(FLP_RECORD_NEARBY, "tile.bm=1", &here);
    here = tuned_on("NVIDIA H20", 140, "");
    assert_succeeds(flp_records_find(records, &here.identity, &here.environment, &found, &match));
    assert_int_equal(132, found.environment.multiprocessors);
    open_store(user, "");
    assert_succeeds(flp_records_find(records, &here.identity, &here.environment, &again, &match));
    assert_string_equal(found.tuning, again.tuning);
    here = tuned_on("NVIDIA H800", 132, "");
    assert_finds(FLP_RECORD_EXACT, "tile.bm=3", &here);
}

/* Of as many multiprocessors: by the L2 cache, and of as large a one by the power limit. */
static void of_equal_sizes_the_l2_cache_counts_then_the_power(void **state)
{
    flp_record ones[3] = { tuned_on("NVIDIA A", 132, "tile.bm=1"), tuned_on("NVIDIA B", 132, "tile.bm=2"), tuned_on("NVIDIA C", 132, "tile.bm=3") };
    flp_record here = tuned_on("NVIDIA D", 132, "");

    (void)state;
    for (int i = 0; i < 3; i++) {
        ones[i].environment.l2_bytes = i ? 60 << 20 : 50 << 20;
        ones[i].environment.power_limit_w = i == 1 ? 700 : 350;
        assert_succeeds(flp_records_publish(records, &ones[i]));
    }
    here.environment.l2_bytes = 52 << 20;
    here.environment.power_limit_w = 700;
    assert_finds(FLP_RECORD_NEARBY, "tile.bm=1", &here);
    here.environment.l2_bytes = 58 << 20;
    assert_finds(FLP_RECORD_NEARBY, "tile.bm=2", &here);
    here.environment.power_limit_w = 400;
    assert_finds(FLP_RECORD_NEARBY, "tile.bm=3", &here);
}

static void the_users_stand_over_the_systems(void **state)
{
    char systems[1200], second[512];
    flp_record record = fake_record(), other = fake_record_of_rows(64);

    (void)state;
    snprintf(second, sizeof(second), "%s/second", root);
    assert_succeeds(flp_records_publish(records, &record));
    strcpy(record.tuning, "tile.bm=64");
    assert_succeeds(flp_record_files_publish(second, &record));
    strcpy(other.tuning, "tile.bm=32");
    assert_succeeds(flp_record_files_publish(second, &other));
    snprintf(systems, sizeof(systems), "/no/such/directory::%s", second);
    open_store(user, systems);
    assert_finds(FLP_RECORD_EXACT, "tile.bm=128,tile.group=8", &record);
    assert_finds(FLP_RECORD_EXACT, "tile.bm=32", &other);
    open_store("", systems);
    assert_finds(FLP_RECORD_EXACT, "tile.bm=64", &record);
    strcpy(record.tuning, "tile.bm=16");
    assert_fails(FLP_IO_FAILED, flp_records_publish(records, &record), "none is configured");
    assert_finds(FLP_RECORD_EXACT, "tile.bm=16", &record);
}

static void what_is_damaged_is_as_if_it_were_not_there(void **state)
{
    const flp_record record = fake_record(), other = fake_record_of_rows(64);
    const char *path = path_of(user, &record), *others = path_of(user, &other);
    char *whole;
    size_t count;

    (void)state;
    assert_succeeds(flp_records_publish(records, &record));
    whole = fake_directory_read(path, &count);
    flp_status_fail(FLP_OK, "the caller's message");
    for (int kind = 0; kind < 6; kind++) {
        remove(path);
        if (kind == 0)
            fake_directory_write(path, "", 0);
        else if (kind == 1)
            fake_directory_write(path, whole, count / 2);
        else if (kind == 2)
            fake_directory_write(others, whole, count); /* under another's name */
        else if (kind == 3)
            assert_int_equal(0, mkfifo(path, 0600));
        else if (kind == 4)
            assert_int_equal(0, mkdir(path, 0700));
        else
            fake_directory_write(path, "fusedlogp record 2\n\0", 20);
        open_store(user, "");
        assert_finds(FLP_RECORD_NONE, "", &record);
        assert_finds(FLP_RECORD_NONE, "", &other);
        assert_string_equal("the caller's message", flp_error_message());
    }
    assert_succeeds(flp_record_files_publish(user, &other));
    open_store(user, "");
    assert_finds(FLP_RECORD_EXACT, "tile.bm=128,tile.group=8", &other);
    assert_finds(FLP_RECORD_NONE, "", &record);
    free(whole);
}

static void no_home_is_no_records(void **state)
{
    static const char *const variables[] = { "FUSEDLOGP_RECORDS_DIR", "XDG_DATA_HOME", "HOME" };
    const flp_record record = fake_record();
    char *saved[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        saved[i] = getenv(variables[i]) ? strdup(getenv(variables[i])) : NULL;
        unsetenv(variables[i]);
    }
    open_store(NULL, "");
    assert_string_equal("", flp_records_directory(records));
    assert_finds(FLP_RECORD_NONE, "", &record);
    setenv("HOME", root, 1);
    open_store(NULL, "");
    assert_string_equal(fake_directory_path(root, ".local/share/fusedlogp/records"), flp_records_directory(records));
    setenv("XDG_DATA_HOME", "/data", 1);
    open_store(NULL, "");
    assert_string_equal("/data/fusedlogp/records", flp_records_directory(records));
    setenv("FUSEDLOGP_RECORDS_DIR", "", 1);
    open_store(NULL, "");
    assert_string_equal("", flp_records_directory(records));
    for (int i = 0; i < 3; i++) {
        if (saved[i])
            setenv(variables[i], saved[i], 1);
        else
            unsetenv(variables[i]);
        free(saved[i]);
    }
}

static void a_directory_that_cannot_be_written_keeps_it_in_memory(void **state)
{
    const flp_record record = fake_record();

    (void)state;
    fake_directory_write(fake_directory_path(root, "file"), "", 0);
    open_store(fake_directory_path(root, "file/records"), "");
    assert_fails(FLP_IO_FAILED, flp_records_publish(records, &record), "/file");
    assert_finds(FLP_RECORD_EXACT, "tile.bm=128,tile.group=8", &record);
}

/* A limit on the size of files stands in for a full disk. */
static void a_full_disk_leaves_the_old_record(void **state)
{
    flp_record record = fake_record();
    pid_t child;
    int result;

    (void)state;
    assert_succeeds(flp_records_publish(records, &record));
    child = fork();
    if (child == 0) {
        const struct rlimit limit = { 100, 100 };

        signal(SIGXFSZ, SIG_IGN);
        strcpy(record.tuning, "tile.bm=64");
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(2);
        _exit(flp_records_publish(records, &record) == FLP_IO_FAILED ? 0 : 1);
    }
    assert_int_equal(child, waitpid(child, &result, 0));
    assert_int_equal(0, result);
    open_store(user, "");
    assert_finds(FLP_RECORD_EXACT, "tile.bm=128,tile.group=8", &record);
    assert_int_equal(1, fake_directory_count(user, ""));
}

/* A reader meets the record of one writer or of the other, whole. */
static void two_writers_do_not_tear_a_record(void **state)
{
    enum { TIMES = 60 };
    flp_record record = fake_record(), found;
    flp_record_match match;
    pid_t writers[2];
    int result;

    (void)state;
    assert_succeeds(flp_records_publish(records, &record));
    for (int i = 0; i < 2; i++) {
        writers[i] = fork();
        if (writers[i] == 0) {
            int failures = 0;

            snprintf(record.tuning, sizeof(record.tuning), "tile.bm=%d", 64 << i);
            for (int k = 0; k < TIMES; k++)
                failures += flp_records_publish(records, &record) != FLP_OK;
            _exit(failures != 0);
        }
    }
    for (int k = 0; k < TIMES; k++) {
        open_store(user, "");
        assert_succeeds(flp_records_find(records, &record.identity, &record.environment, &found, &match));
        assert_int_equal(FLP_RECORD_EXACT, match);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(writers[i], waitpid(writers[i], &result, 0));
        assert_int_equal(0, result);
    }
    assert_int_equal(1, fake_directory_count(user, ""));
}

static void an_export_is_sorted_and_comes_back_to_the_letter(void **state)
{
    flp_record_files back = { 0 };
    const flp_record_files *files;
    flp_text export = { 0 }, again = { 0 };
    const int rows[] = { 4096, 64, 8192, 1024 };

    (void)state;
    for (int i = 0; i < 4; i++) {
        const flp_record record = fake_record_of_rows(rows[i]);

        assert_succeeds(flp_records_publish(records, &record));
    }
    open_store(user, user); /* the second time each of them is one that is there already */
    assert_succeeds(flp_records_list(records, &files));
    assert_int_equal(8, files->count);
    assert_succeeds(flp_record_files_join(files, &export));
    assert_succeeds(flp_record_files_split("export", export.data, &back));
    assert_int_equal(4, back.count);
    for (size_t i = 0; i < back.count; i++) {
        assert_null(back.files[i].fault);
        assert_true(i == 0 || strcmp(back.files[i - 1].text, back.files[i].text) < 0);
    }
    assert_succeeds(flp_record_files_join(&back, &again));
    assert_string_equal(export.data, again.data);
    flp_record_files_free(&back);
    flp_text_free(&export);
    flp_text_free(&again);
}

static void what_is_wrong_in_an_export_is_told_with_its_line(void **state)
{
    const flp_record record = fake_record();
    flp_record_files files = { 0 };
    flp_text export = { 0 };

    (void)state;
    assert_succeeds(flp_record_format(&record, &export));
    flp_text_append(&export, "\nfusedlogp record 2\nproblem: x\n");
    assert_succeeds(flp_record_files_split("export", export.data, &files));
    assert_int_equal(2, files.count);
    assert_null(files.files[0].fault);
    assert_string_equal("export, line 28", files.files[1].place);
    assert_string_equal("line 3: wanted a whole line 'arch: ...'", files.files[1].fault);
    assert_string_equal("", files.files[1].name);
    flp_record_files_free(&files);
    flp_text_free(&export);
}

int main(void)
{
#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, make, clean)
    const struct CMUnitTest tests[] = {
        STORE_TEST(what_was_published_is_found_now_and_later),
        STORE_TEST(every_part_of_the_identity_counts),
        STORE_TEST(another_environment_is_near_by),
        STORE_TEST(the_same_device_is_nearest_then_its_size),
        STORE_TEST(of_equal_sizes_the_l2_cache_counts_then_the_power),
        STORE_TEST(the_users_stand_over_the_systems),
        STORE_TEST(what_is_damaged_is_as_if_it_were_not_there),
        STORE_TEST(no_home_is_no_records),
        STORE_TEST(a_directory_that_cannot_be_written_keeps_it_in_memory),
        STORE_TEST(a_full_disk_leaves_the_old_record),
        STORE_TEST(two_writers_do_not_tear_a_record),
        STORE_TEST(an_export_is_sorted_and_comes_back_to_the_letter),
        STORE_TEST(what_is_wrong_in_an_export_is_told_with_its_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
