/* The results file, the plot and the statistics in them. */
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "comma_locale.h"
#include "runtime/assertions.h"
#include "runtime/fake_directory.h"
#include "statistics.h"

static json_t *make_report(void)
{
    double ratios[] = { 1.09, 0.75, 1.02, 0.87, 1.05 };
    char *words[] = { "fusedlogp_bench", "--no-start" };
    json_t *report = flp_report_create(NULL, "the commit", 2, words);
    json_t *result = json_pack("{s:s, s:s, s:{s:{s:o}}}", "problem", "linear_logp:bf16:n4096:d2048:v131072", "baseline", "cuBLAS", "regimes", "burst", "ratio",
                               flp_statistics_pack(ratios, 5));

    assert_int_equal(0, json_array_append_new(json_object_get(report, "cases"), result));
    return report;
}

static double ratio_of(json_t *report, const char *name)
{
    json_t *regimes = json_object_get(json_array_get(json_object_get(report, "cases"), 0), "regimes");

    return json_number_value(json_object_get(json_object_get(json_object_get(regimes, "burst"), "ratio"), name));
}

static void a_quantile_lies_between_its_two_samples(void **state)
{
    double many[] = { 5, 11, 2, 8, 1, 10, 4, 7, 3, 9, 6 }, two[] = { 3, 1 }, one[] = { 7 };
    flp_statistics s = flp_statistics_of(many, 11);

    (void)state;
    assert_true(s.median == 6 && s.p10 == 2 && s.p90 == 10);
    s = flp_statistics_of(two, 2);
    assert_true(s.median == 2 && s.p10 == 1 + 0.1 * 2 && s.p90 == 1 + 0.9 * 2);
    s = flp_statistics_of(one, 1);
    assert_true(s.median == 7 && s.p10 == 7 && s.p90 == 7);
}

/* Six significant digits, with a point in every locale. */
static void the_results_file_holds_what_was_measured(void **state)
{
    const char *directory = fake_directory_make(), *path = fake_directory_path(directory, "deeper/results.json");
    json_t *report = make_report(), *read;
    json_error_t error;

    (void)state;
    if (!comma_locale_enter())
        skip();
    assert_succeeds(flp_report_write(report, path));
    comma_locale_leave();
    read = json_load_file(path, 0, &error);
    assert_non_null(read);
    assert_true(ratio_of(read, "median") == 1.02);
    assert_true(ratio_of(read, "p10") == 0.798);
    assert_true(ratio_of(read, "p90") == 1.074);
    assert_string_equal("the commit", json_string_value(json_object_get(read, "commit")));
    assert_string_equal("--no-start", json_string_value(json_array_get(json_object_get(read, "command"), 1)));
    json_decref(read);
    json_decref(report);
    fake_directory_remove(directory);
}

static void a_full_disk_is_an_error(void **state)
{
    json_t *report = make_report();

    (void)state;
    assert_fails(FLP_IO_FAILED, flp_report_write(report, "/dev/full"), "/dev/full");
    assert_fails(FLP_IO_FAILED, flp_report_plot(report, "/dev/full"), "/dev/full");
    json_decref(report);
}

static int count(const char *text, const char *wanted)
{
    int found = 0;

    while ((text = strstr(text, wanted))) {
        text += strlen(wanted);
        found++;
    }
    return found;
}

/* An axis of fifths from 0 to what lies above all ratios; at 1 its line is another's. */
static void the_plot_has_its_axis_its_bars_and_their_whiskers(void **state)
{
    const char *directory = fake_directory_make(), *path = fake_directory_path(directory, "plot.svg");
    static char svg[16384];
    json_t *report = make_report();
    FILE *file;

    (void)state;
    assert_succeeds(flp_report_plot(report, path));
    file = fopen(path, "r");
    assert_non_null(file);
    svg[fread(svg, 1, sizeof(svg) - 1, file)] = 0;
    fclose(file);
    assert_int_equal(7, count(svg, "text-anchor=\"end\">"));
    for (int fifth = 0; fifth <= 6; fifth++) {
        char label[32];
        snprintf(label, sizeof(label), "y=\"%.1f\" text-anchor=\"end\">%.1f<", 350 - 50 * fifth + 4.0, fifth / 5.0);
        assert_contains(svg, label);
    }
    assert_int_equal(1, count(svg, "#c00"));
    assert_contains(svg, "y=\"95.0\" width=\"34\" height=\"255.0\" fill=\"#2a78b5\"");
    assert_contains(svg, "150.5V81.5M");
    assert_contains(svg, ">1.020</text>");
    assert_contains(svg, ">linear_logp:bf16<");
    assert_contains(svg, ">n4096:d2048:v131072<");
    assert_contains(svg, ">beside cuBLAS<");
    json_decref(report);
    fake_directory_remove(directory);
}

/* Who has the file before open goes on reading it, and a link to it stays one. */
static void a_plot_takes_the_place_of_the_one_before_as_a_whole(void **state)
{
    const char *directory = fake_directory_make(), *path = fake_directory_path(directory, "plot.svg"), *link = fake_directory_path(directory, "link.svg");
    json_t *report = make_report();
    struct stat facts;
    char before[16] = "";
    FILE *reader;

    (void)state;
    fake_directory_write(path, "before", 6);
    assert_int_equal(0, symlink("plot.svg", link));
    reader = fopen(path, "r");
    assert_non_null(reader);
    assert_succeeds(flp_report_plot(report, link));
    assert_int_equal(6, fread(before, 1, sizeof(before) - 1, reader));
    assert_string_equal("before", before);
    assert_true(lstat(link, &facts) == 0 && S_ISLNK(facts.st_mode));
    assert_true(stat(path, &facts) == 0 && facts.st_size > 1000);
    assert_fails(FLP_IO_FAILED, flp_report_plot(report, fake_directory_path(directory, "none/plot.svg")), "none/plot.svg: No such file");
    fclose(reader);
    json_decref(report);
    fake_directory_remove(directory);
}

static void what_xml_would_read_as_its_own_is_escaped(void **state)
{
    const char *directory = fake_directory_make(), *path = fake_directory_path(directory, "plot.svg");
    json_t *report = make_report(), *result = json_array_get(json_object_get(report, "cases"), 0);
    size_t bytes;
    char *svg;

    (void)state;
    json_object_set_new(result, "problem", json_string("a<b:n1>2"));
    json_object_set_new(result, "baseline", json_string("R&D <x>"));
    json_object_set_new(report, "device", json_pack("{s:s}", "name", "GPU <1> & 2"));
    assert_succeeds(flp_report_plot(report, path));
    svg = fake_directory_read(path, &bytes);
    assert_non_null(svg);
    assert_contains(svg, ">a&lt;b<");
    assert_contains(svg, ">n1&gt;2<");
    assert_contains(svg, ">beside R&amp;D &lt;x&gt;<");
    assert_contains(svg, "pairs; GPU &lt;1&gt; &amp; 2, ");
    free(svg);
    json_decref(report);
    fake_directory_remove(directory);
}

static void what_is_no_results_file_is_not_plotted(void **state)
{
    json_t *empty = json_pack("{s:[]}", "cases"), *without = json_pack("{s:[{s:s}]}", "cases", "problem", "linear_logp");

    (void)state;
    assert_fails(FLP_BAD_ARGUMENT, flp_report_plot(empty, "/dev/null"), "no cases");
    assert_fails(FLP_BAD_ARGUMENT, flp_report_plot(without, "/dev/null"), "baseline");
    json_decref(empty);
    json_decref(without);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quantile_lies_between_its_two_samples),
        cmocka_unit_test(the_results_file_holds_what_was_measured),
        cmocka_unit_test(a_full_disk_is_an_error),
        cmocka_unit_test(the_plot_has_its_axis_its_bars_and_their_whiskers),
        cmocka_unit_test(a_plot_takes_the_place_of_the_one_before_as_a_whole),
        cmocka_unit_test(what_xml_would_read_as_its_own_is_escaped),
        cmocka_unit_test(what_is_no_results_file_is_not_plotted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
