/* logits_logp and its backward on the GPU: every case of the CPU tests, and cases with more rows than a launch has blocks, on the chosen path and on the
 * portable one. */
#include <stdlib.h>

#include "device/logits_on_device.h"

/* So many rows that a block, or a cluster of each size, takes one after the other (the largest has room for one row at a time); and so few that each row gets a
 * cluster. */
static const flp_logits_case many_rows[] = {
    { .name = "many rows of one warp", .problem = { .dtype = FLP_BF16, .rows = 9001, .vocab = 1000, .argmax = 1 } },
    { .name = "many rows of two warps", .rows = FLP_LOGITS_IGNORED, .problem = { .dtype = FLP_F16, .rows = 3001, .vocab = 3000, .entropy = 1 } },
    { .name = "many rows of one block", .rows = FLP_LOGITS_IGNORED, .problem = { .dtype = FLP_BF16, .rows = 850, .vocab = 10248, .argmax = 1 } },
    { .name = "many rows of one block, odd", .problem = { .dtype = FLP_BF16, .rows = 220, .vocab = 50257 } },
    { .name = "many rows of a cluster of one", .rows = FLP_LOGITS_UNEVEN, .problem = { .dtype = FLP_F32, .rows = 450, .vocab = 16384, .entropy = 1 } },
    { .name = "many rows of a cluster of two",
      .rows = FLP_LOGITS_IGNORED | FLP_LOGITS_BAD_TARGETS,
      .problem = { .dtype = FLP_BF16, .rows = 420, .vocab = 50264 } },
    { .name = "many rows of a cluster of four, capped",
      .rows = FLP_LOGITS_UNEVEN | FLP_LOGITS_ROW_TEMPERATURES,
      .problem = { .dtype = FLP_F16, .rows = 130, .vocab = 98312, .softcap = 30, .entropy = 1 } },
    { .name = "many rows of a cluster of eight", .rows = FLP_LOGITS_IGNORED, .problem = { .dtype = FLP_F32, .rows = 105, .vocab = 70000 } },
    { .name = "many scattered rows of a cluster",
      .rows = FLP_LOGITS_INDEXED | FLP_LOGITS_SCATTERED | FLP_LOGITS_BAD_INDICES,
      .problem = { .dtype = FLP_BF16, .rows = 500, .vocab = 20488 } },
    { .name = "many indexed rows of a cluster, odd",
      .rows = FLP_LOGITS_INDEXED | FLP_LOGITS_BAD_INDICES | FLP_LOGITS_BAD_TARGETS,
      .problem = { .dtype = FLP_F16, .rows = 300, .vocab = 36869, .entropy = 1 } },
    { .name = "many rows of a cluster, padded", .gap = 5, .rows = FLP_LOGITS_IGNORED, .problem = { .dtype = FLP_BF16, .rows = 300, .vocab = 32003 } },
    { .name = "few rows", .rows = FLP_LOGITS_UNEVEN, .problem = { .dtype = FLP_BF16, .rows = 12, .vocab = 262144, .entropy = 1 } },
    { .name = "few rows, odd", .rows = FLP_LOGITS_IGNORED | FLP_LOGITS_BAD_TARGETS, .problem = { .dtype = FLP_BF16, .rows = 13, .vocab = 50257, .argmax = 1 } },
    { .name = "few rows, capped",
      .rows = FLP_LOGITS_INDEXED | FLP_LOGITS_BAD_INDICES | FLP_LOGITS_ROW_TEMPERATURES,
      .problem = { .dtype = FLP_F16, .rows = 9, .vocab = 128256, .softcap = 30, .argmax = 1, .entropy = 1 } },
    { .name = "few rows of more segments than warps",
      .rows = FLP_LOGITS_SCATTERED | FLP_LOGITS_INDEXED,
      .problem = { .dtype = FLP_F32, .rows = 5, .vocab = 409600 } },
    { .name = "long rows of a cluster of eight", .problem = { .dtype = FLP_BF16, .rows = 33, .vocab = 500000 } },
};

/* Small cases for the sanitizers. */
static const flp_logits_case quick[] = {
    { .name = "one segment", .rows = FLP_LOGITS_UNEVEN, .problem = { .dtype = FLP_BF16, .rows = 19, .vocab = 1001, .argmax = 1, .entropy = 1 } },
    { .name = "a team, odd", .rows = FLP_LOGITS_IGNORED, .problem = { .dtype = FLP_F16, .rows = 7, .vocab = 5003, .softcap = 30 } },
    { .name = "parts", .problem = { .dtype = FLP_F32, .rows = 3, .vocab = 20000, .argmax = 1, .entropy = 1 } },
    { .name = "indexed", .rows = FLP_LOGITS_INDEXED | FLP_LOGITS_BAD_TARGETS, .problem = { .dtype = FLP_BF16, .rows = 9, .vocab = 2400 } },
    { .name = "one part", .problem = { .dtype = FLP_BF16, .rows = 850, .vocab = 10248 } },
    { .name = "a cluster of one", .gap = 5, .rows = FLP_LOGITS_IGNORED, .problem = { .dtype = FLP_BF16, .rows = 140, .vocab = 20483 } },
    { .name = "a cluster of two", .problem = { .dtype = FLP_BF16, .rows = 70, .vocab = 40968, .entropy = 1 } },
    { .name = "a cluster of two, odd", .rows = FLP_LOGITS_INDEXED, .problem = { .dtype = FLP_BF16, .rows = 70, .vocab = 36869 } },
    { .name = "a cluster of eight", .problem = { .dtype = FLP_F32, .rows = 18, .vocab = 66000 } },
    { .name = "a cluster of one, beyond a softcap", .problem = { .dtype = FLP_BF16, .rows = 140, .vocab = 20480, .softcap = 1 } },
    { .name = "a cluster of two, partly beyond a softcap",
      .values = FLP_LOGITS_STEP_40,
      .rows = FLP_LOGITS_IGNORED,
      .problem = { .dtype = FLP_F16, .rows = 70, .vocab = 36869, .softcap = 30, .entropy = 1 } },
    { .name = "one row", .problem = { .dtype = FLP_BF16, .rows = 1, .vocab = 70003, .argmax = 1, .entropy = 1 } },
    { .name = "many rows of a team", .problem = { .dtype = FLP_BF16, .rows = 1300, .vocab = 16384 } },
};

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static flp_logits_case *cases;
static int case_count;

static void take(int index, flp_logits_case *c)
{
    const int shared = flp_device_test.quick ? 0 : flp_logits_case_count();

    if (index < shared) {
        flp_logits_case_get(index, c);
        return;
    }
    *c = flp_device_test.quick ? quick[index] : many_rows[index - shared];
    flp_logits_case_complete(index, c);
}

static void collect_cases(void)
{
    case_count = flp_device_test.quick ? COUNT(quick) : flp_logits_case_count() + COUNT(many_rows);
    cases = calloc((size_t)case_count, sizeof(*cases));
    if (!cases)
        abort();
    for (int i = 0; i < case_count; i++)
        take(i, &cases[i]);
}

static void a_case_is_right(void **state)
{
    static const flp_backend backends[] = { FLP_BACKEND_AUTO, FLP_BACKEND_PORTABLE };
    flp_logits_on_device on = { .c = *(const flp_logits_case *)*state };
    char message[256];

    flp_logits_on_device_set_up(&on);
    for (int p = 0; p < COUNT(backends); p++)
        for (int form = 0; form < FLP_LOGITS_FORMS; form++) {
            if (!flp_logits_case_has(&on.c, (flp_logits_form)form))
                continue;
            flp_logits_on_device_prepare(&on, (flp_logits_form)form);
            flp_logits_on_device_execute(&on, (flp_logits_form)form, backends[p]);
            if (!flp_logits_case_check(&on.c, &on.data, &on.wanted, (flp_logits_form)form, message, sizeof(message)))
                fail_msg("%s, %s form %d: %s", on.c.name, flp_backend_name(backends[p]), form, message);
        }
    flp_logits_on_device_tear_down(&on);
}

static struct CMUnitTest test_at(int index)
{
    return flp_device_test_case(cases[index].name, a_case_is_right, &cases[index]);
}

int main(int argc, char **argv)
{
    int code = flp_device_test_start(argc, argv);

    if (code != 0)
        return code;
    collect_cases();
    code = flp_device_test_run_cases("logits_logp on the device", case_count, test_at);
    flp_device_test_finish();
    free(cases);
    return code;
}
