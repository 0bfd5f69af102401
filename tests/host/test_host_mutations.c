/* The host machine finds mistakes in kernels: each test changes a kernel's source in one place, and expects the message that names the broken rule. */
#include <stdio.h>
#include <stdlib.h>

#include "host/host_device.h"
#include "host/host_kernels.h"
#include "host/host_linear_logp.h"
#include "host/host_linear_logp_backward.h"
#include "host/host_suite.h"
#include "runtime/assertions.h"

/* Small problems for kernels of each family, in bf16 unless f32 is said. */
typedef enum {
    FEW_ROWS,    /* sm_90a, one consumer warpgroup */
    ONE_TILE,    /* the same, with fewer steps than stages */
    MORE_ROWS,   /* sm_90a, two consumer warpgroups, cooperative schedule */
    CLUSTER,     /* sm_90a, clusters of two blocks, multicast; a weight [D, V], since with [V, D] the schedule would be ping-pong */
    TURNS,       /* sm_90a, two consumer warpgroups, ping-pong schedule */
    COLUMNS,     /* sm_90a, a weight [D, V] */
    SPLIT,       /* sm_90a, f32 as two tf32 parts */
    SPLIT_TURNS, /* the same with two consumer warpgroups */
    NEGATIVE,    /* sm_90a, all logits negative, argmax */
    PORTABLE,    /* sm_80 */
    PORTABLE_NEGATIVE,
    PORTABLE_COLUMNS,
    GRADIENTS,      /* sm_90a, the backward's products and what they store */
    GRADIENT_TILES, /* the same with several tiles a block */
    SAVES_EXP,      /* sm_90a, the backward with the saved exponentials of its forward; all rows overflow */
    SAVE_EXP_TILES,
    PORTABLE_SAVE_EXP
} kernel_case;

static const struct {
    int compute_capability;
    flp_case c;
    int is_backward, with_forward;
} kernel_cases[] = {
    [FEW_ROWS] = { 90, { .problem = { .dtype = FLP_BF16, .rows = 33, .hidden = 392, .vocab = 600 } } },
    [ONE_TILE] = { 90, { .problem = { .dtype = FLP_BF16, .rows = 33, .hidden = 72, .vocab = 200 } } },
    [MORE_ROWS] = { 90, { .problem = { .dtype = FLP_BF16, .rows = 100, .hidden = 392, .vocab = 600 } } },
    [CLUSTER] = { 90, { .problem = { .dtype = FLP_BF16, .rows = 200, .hidden = 392, .vocab = 600, .weight_layout = FLP_HIDDEN_VOCAB } } },
    [TURNS] = { 90, { .problem = { .dtype = FLP_BF16, .rows = 300, .hidden = 136, .vocab = 1000 } } },
    [COLUMNS] = { 90, { .problem = { .dtype = FLP_BF16, .rows = 33, .hidden = 200, .vocab = 600, .weight_layout = FLP_HIDDEN_VOCAB } } },
    [SPLIT] = { 90, { .problem = { .dtype = FLP_F32, .rows = 33, .hidden = 200, .vocab = 300 } } },
    [SPLIT_TURNS] = { 90, { .problem = { .dtype = FLP_F32, .rows = 100, .hidden = 200, .vocab = 700 } } },
    [NEGATIVE] = { 90,
                   { .bias = FLP_CASE_NEGATIVE,
                     .problem = { .dtype = FLP_BF16, .rows = 33, .hidden = 72, .vocab = 300, .bias_dtype = FLP_F32, .argmax = 1 } } },
    [PORTABLE] = { 80, { .problem = { .dtype = FLP_BF16, .rows = 33, .hidden = 200, .vocab = 600 } } },
    [PORTABLE_NEGATIVE] = { 80,
                            { .bias = FLP_CASE_NEGATIVE,
                              .problem = { .dtype = FLP_BF16, .rows = 33, .hidden = 72, .vocab = 301, .bias_dtype = FLP_F32, .argmax = 1 } } },
    [PORTABLE_COLUMNS] = { 80, { .problem = { .dtype = FLP_BF16, .rows = 33, .hidden = 72, .vocab = 304, .weight_layout = FLP_HIDDEN_VOCAB } } },
    [GRADIENTS] = { 90, { .problem = { .dtype = FLP_BF16, .rows = 33, .hidden = 200, .vocab = 300 } }, 1 },
    [GRADIENT_TILES] = { 90, { .problem = { .dtype = FLP_BF16, .rows = 33, .hidden = 200, .vocab = 1500 } }, 1 },
    [SAVE_EXP_TILES] = { 90,
                         { .bias = FLP_CASE_STEP_200, .problem = { .dtype = FLP_BF16, .rows = 33, .hidden = 72, .vocab = 2500, .bias_dtype = FLP_F32 } },
                         1,
                         1 },
    [SAVES_EXP] = { 90, { .bias = FLP_CASE_STEP_200, .problem = { .dtype = FLP_BF16, .rows = 33, .hidden = 72, .vocab = 700, .bias_dtype = FLP_F32 } }, 1, 1 },
    [PORTABLE_SAVE_EXP] = { 80,
                            { .bias = FLP_CASE_STEP_200,
                              .rows = FLP_CASE_IGNORED_ROWS,
                              .problem = { .dtype = FLP_BF16, .rows = 33, .hidden = 72, .vocab = 700, .bias_dtype = FLP_F32 } },
                            1,
                            1 },
};

typedef struct {
    const char *name;
    kernel_case where;
    flp_host_mutation mutation;
    const char *rules[2]; /* parts of the message: which of the two depends on the interleaving */
} mistake;

static const mistake mistakes[] = {
    { "too few bytes announced",
      FEW_ROWS,
      { "mbarrier_arrive_expect(full(), a_rows * row_bytes + b_bytes)", "mbarrier_arrive_expect(full(), a_rows * row_bytes + b_bytes - 16)" },
      { "16 bytes more have come than expect_tx announced" } },
    { "too many bytes announced",
      MORE_ROWS,
      { "mbarrier_arrive_expect(full(), a_rows * row_bytes + b_bytes)", "mbarrier_arrive_expect(full(), a_rows * row_bytes + b_bytes + 16)" },
      { "16 bytes that were announced by expect_tx have not come" } },
    { "rows that no copy brings and nobody clears",
      FEW_ROWS,
      { "TileProduct<Config>::clear_a(this->shared.stages, params.rows);", "" },
      { "WGMMA: A at offset" } },
    { "no fence behind rows that are cleared",
      MORE_ROWS,
      { "words[i] = make_uint4(0, 0, 0, 0);\n        async_proxy_fence();", "words[i] = make_uint4(0, 0, 0, 0);" },
      { "proxy fence: " } },
    { "a stage released while products read it",
      MORE_ROWS,
      { "if (late && step > 0) release(previous);", "if (late) release(barrier);" },
      { "WGMMA: ", "deadlock" } },
    { "a stage filled without waiting for its readers",
      FEW_ROWS,
      { "mbarrier_wait(shared_address(&shared.empty[ahead.stage]), ahead.phase ^ 1);", "" },
      { "WGMMA: the copy engine's write", "mbarrier: one arrival more than the 1 of a phase" } },
    { "a stage released to one block of the cluster only",
      CLUSTER,
      { "if (thread < Config::cluster) mbarrier_arrive_remote", "if (thread < 1) mbarrier_arrive_remote" },
      { "deadlock" } },
    { "a stage multiplied before it has arrived", FEW_ROWS, { "mbarrier_wait(from.full + ring.stage * 8, ring.phase);", "" }, { "WGMMA: A at offset" } },
    { "a descriptor with another swizzle",
      FEW_ROWS,
      { "return wgmma_descriptor(address, 16, 8 * row_bytes);", "return wgmma_descriptor(address, 16, 8 * row_bytes) ^ 3ull << 62;" },
      { "WGMMA: the descriptor of A says swizzle mode 2" } },
    { "a descriptor with another stride",
      COLUMNS,
      { "wgmma_descriptor(address, b_leading_bytes, 1024)", "wgmma_descriptor(address, b_leading_bytes, 2048)" },
      { "WGMMA: the descriptor of B takes the element" } },
    { "a step along K of the wrong size", MORE_ROWS, { "b + i * 2, ", "b + i * 4, " }, { "WGMMA: the descriptor of B" } },
    { "products that are not committed",
      ONE_TILE,
      { "        wgmma_commit();\n    }", "    }" },
      { "touched before its products were committed and waited for" } },
    { "results read before the last wait",
      MORE_ROWS,
      { "wgmma_finish(d[part]);\n        if (late)", ";\n        if (late)" },
      { "touched before its products were committed and waited for" } },
    { "no fence before the products",
      FEW_ROWS,
      { "mbarrier_wait(from.full + ring.stage * 8, ring.phase);\n        wgmma_fence();", "mbarrier_wait(from.full + ring.stage * 8, ring.phase);" },
      { "WGMMA: no wgmma.fence" } },
    { "no fence behind the barriers' initialisation", CLUSTER, { "mbarrier_init_fence();\n    }", "}" }, { "no fence.mbarrier_init" } },
    { "no barrier behind the barriers' initialisation", FEW_ROWS, { "else block_barrier();\n    kernel.enter();", "\n    kernel.enter();" }, { "mbarrier: " } },
    { "one arrival too many wanted",
      FEW_ROWS,
      { "mbarrier_init(shared_address(&shared.empty[s]), Config::consumer_groups / Config::turns * Config::cluster * releases)",
        "mbarrier_init(shared_address(&shared.empty[s]), Config::consumer_groups / Config::turns * Config::cluster * releases + 1)" },
      { "lacks 1 of 2 arrivals" } },
    { "one arrival too many made",
      MORE_ROWS,
      { "mbarrier_init(shared_address(&shared.empty[s]), Config::consumer_groups / Config::turns * Config::cluster * releases)",
        "mbarrier_init(shared_address(&shared.empty[s]), 1)" },
      { "WGMMA: ", "deadlock" } },
    { "a turn that is not passed on", TURNS, { "if (own.turn < own.others) mbarrier_arrive", "if (false) mbarrier_arrive" }, { "deadlock" } },
    { "a turn that waits for a fifth warp",
      TURNS,
      { "mbarrier_init(shared_address(&shared.turns.barrier[g]), 4)", "mbarrier_init(shared_address(&shared.turns.barrier[g]), 5)" },
      { "deadlock" } },
    { "stages of the other's turn that are not passed over", TURNS, { "        ring.skip(steps);\n", "" }, { "WGMMA: ", "deadlock" } },
    { "multicast to a block that is not there",
      CLUSTER,
      { "full(), (1 << Config::cluster) - 1)", "full(), 1 << Config::cluster)" },
      { "TMA: multicast to blocks 0x4 of a cluster of 2" } },
    { "a block that ends before its neighbours", CLUSTER, { "if constexpr (Config::cluster > 1) cluster_barrier();\n}", "}" }, { "cluster: " } },
    { "too many registers claimed",
      MORE_ROWS,
      { "static constexpr int consumer_registers = 216;", "static constexpr int consumer_registers = 224;" },
      { "setmaxnreg.inc to 224 registers" } },
    { "no fence between ordinary writes and products",
      SPLIT,
      { "async_proxy_fence();\n            mbarrier_arrive(", "mbarrier_arrive(" },
      { "proxy fence: " } },
    { "parts that are not waited for",
      SPLIT,
      { "mbarrier_wait(product.split(), product.ring.phase);", "mbarrier_wait(product.full(), product.ring.phase);" },
      { "WGMMA: " } },
    { "rows that another lane still reads", SPLIT, { "warp_barrier(); // all lanes have read A", "" }, { "data race in shared memory: the copy engine" } },
    { "a turn that other lanes have not had", SPLIT_TURNS, { "warp_barrier(); // all lanes have had their turn", "" }, { "deadlock" } },
    { "a turn of split operands that is not passed on",
      SPLIT_TURNS,
      { "mbarrier_arrive(shared_address(&product.shared.low.turn[1 - group]))", "((void)0)" },
      { "deadlock" } },
    { "sums read before the last products",
      SPLIT,
      { "wgmma_finish(sum);\n        wgmma_hold(rows.high);\n        wgmma_hold(rows.low);", "" },
      { "touched before its products were committed and waited for" } },
    { "registers of A not held behind the first wait",
      SPLIT,
      { "wgmma_wait<1>();\n            wgmma_hold(rows.low);", "wgmma_wait<1>();" },
      { "a register of A is written" } },
    { "registers of A not held behind the last wait",
      SPLIT,
      { "wgmma_finish(sum);\n        wgmma_hold(rows.high);", "wgmma_finish(sum);" },
      { "a register of A is written" } },
    { "registers of A held before the wait only",
      SPLIT,
      { "wgmma_wait<1>();\n            wgmma_hold(rows.low);", "wgmma_hold(rows.low);\n            wgmma_wait<1>();" },
      { "registers of A are held no longer" } },
    { "a tail mask off by one", NEGATIVE, { "place(i) >= left) z[i]", "place(i) > left) z[i]" }, { "logp: error" } },
    { "a tail mask off by one, portable", PORTABLE_NEGATIVE, { "place(i) >= left) z[i]", "place(i) > left) z[i]" }, { "logp: error" } },
    { "a row behind the last one",
      FEW_ROWS,
      { "if (row >= params.rows) return;", "if (row > params.rows) return;" },
      { "global memory: a read of 8 bytes at offset 264 of an allocation of 264 bytes" } },
    { "the kernel before not waited for",
      FEW_ROWS,
      { "wait_for_previous_kernel();\n    allow_next_kernel();\n    if (!has_part", "allow_next_kernel();\n    if (!has_part" },
      { "dependent launch: a read of" } },
    { "a shuffle that leaves lanes out",
      PORTABLE,
      { "__shfl_xor_sync(0xffffffffu, value, lane_mask)", "__shfl_xor_sync(0x0fffffffu, value, lane_mask)" },
      { "shfl.sync: lane" } },
    { "a stage read before its copies are waited for",
      PORTABLE,
      { "cp_async_wait<Config::stages - 2>();", "cp_async_wait<Config::stages - 1>();" },
      { "cp.async: ldmatrix at offset" } },
    { "a stage read without a barrier",
      PORTABLE,
      { "block_barrier(); // the stage has arrived", "// the stage has arrived" },
      { "cp.async: ldmatrix at offset", "uninitialised shared memory: ldmatrix" } },
    { "copies that are not committed",
      PORTABLE,
      { "        cp_async_commit(); // after the last tile", "        // after the last tile" },
      { "cp.async: ldmatrix at offset" } },
    { "a fragment's rows off their alignment",
      PORTABLE,
      { "ldmatrix(a, tile + TileA::place(", "ldmatrix(a, tile + 8 + TileA::place(" },
      { "ldmatrix: row address" } },
    { "statistics merged without a barrier",
      PORTABLE,
      { "        block_barrier();\n        if (across == 0) {", "        if (across == 0) {" },
      { "shared memory: a read" } },
    { "a copy that reaches behind its tensor",
      PORTABLE_COLUMNS,
      { "from + k * stride + outer, stride, inner - k, outer_size - outer);", "from + k * stride + outer, stride, inner - k, outer_size - outer + 8);" },
      { "global memory: a read of 16 bytes at offset" } },
    { "a buffer laid while the copy engine reads it", GRADIENTS, { "else bulk_wait_read<1>();", "" }, { "TMA: stmatrix at offset" } },
    { "no fence between ordinary writes and the copy engine",
      GRADIENTS,
      { "            async_proxy_fence();\n            __syncwarp();", "            __syncwarp();" },
      { "proxy fence: the copy engine reads offset" } },
    { "a block that ends before its stores", GRADIENTS, { "if (lane_index() == 0) bulk_wait<0>();", "" }, { "cluster: block 0 ends" } },
    { "a target's derivative among the others", GRADIENTS, { "            in_memory.value[i] = nothing;\n", "" }, { "grad_" } },
    { "targets read before they are looked up",
      GRADIENTS,
      { "mbarrier_wait(shared_address(&shared.full[buffer()]), phase());", "" },
      { "uninitialised shared memory", "grad_weight" } },
    { "targets overwritten while they are read",
      SAVE_EXP_TILES,
      { "mbarrier_wait(shared_address(&shared.empty[b]), turn / 2 % 2 ^ 1);", "" },
      { "race", "grad_weight" } },
    { "a row of hidden laid where the engine still reads", GRADIENT_TILES, { "else if (lane_index() == 0) bulk_wait_read<0>();", "" }, { "TMA", "offset" } },
    { "blocks that overflowed, passed over",
      SAVES_EXP,
      { "if (params.phase != FLP_SAVE_EXP_AGAIN || params.block_overflow[unit.row_block + 1]) return true;",
        "if (params.phase != FLP_SAVE_EXP_AGAIN) return true;" },
      { "grad_" } },
    { "blocks that overflowed, passed over, portable",
      PORTABLE_SAVE_EXP,
      { "if (params.phase != FLP_SAVE_EXP_AGAIN || params.block_overflow[unit.row_block + 1]) return true;",
        "if (params.phase != FLP_SAVE_EXP_AGAIN) return true;" },
      { "grad_" } },
    { "an offset that a row has left, not noted",
      PORTABLE_SAVE_EXP,
      { "if (params.phase != FLP_SAVE_EXP_KEEP || !Base::is_writer() || !is_row(params, r)) return;", "return;" },
      { "grad_" } },
    { "offsets from each warp of a row",
      PORTABLE_SAVE_EXP,
      { "if (statistics[0].finds_offsets(params) && warp_index() % Config::warps_across > 0) return;", "" },
      { "global memory: " } },
    { "terms of another row",
      PORTABLE_SAVE_EXP,
      { "store_values<count>(out, row + 16 * i, to, value)", "store_values<count>(out, row + 16, to, value)" },
      { "global memory: ", "grad_" } },
    { "terms that follow the row's place",
      PORTABLE_SAVE_EXP,
      { "store_values<count>(out, row + 16 * i, to, value)",
        "store_values<count>(out, row + 16 * i, to, [&](int e) { return value(e) * (1 + 0.001f * (lane_index() / 16)); })" },
      { "other bits than among all" } },
    { "rows without their factors", PORTABLE_SAVE_EXP, { "pass < 2", "pass < 1" }, { "grad_hidden" } },
    { "lanes that leave a shuffle to one of them",
      GRADIENTS,
      { "if (lane_index() == 0) shared[warp] = __popc(votes);", "if (lane_index() == 0) shared[warp_index()] = __popc(votes);" },
      { "deadlock", "shfl.sync" } },
};
enum { MISTAKES = sizeof(mistakes) / sizeof(*mistakes), KERNEL_CASES = sizeof(kernel_cases) / sizeof(*kernel_cases), SEEDS = 4 };

static int run_gradients(flp_context *context, const flp_case *forward, int with_forward, char *message, size_t bytes)
{
    const flp_linear_logp_problem *p = &forward->problem;
    const flp_gradient_case c = { .forward = *forward,
                                  .problem = { .forward = *p,
                                               .grad_hidden = p->dtype,
                                               .grad_weight = p->dtype,
                                               .grad_hidden_stride = p->hidden,
                                               .grad_weight_stride = p->hidden,
                                               .with_forward = with_forward } };

    return flp_host_linear_logp_backward_run(context, &c, message, bytes);
}

/* Runs a mistake's problem with a mutation, or with none, in the same interleavings. */
static int run(const mistake *one, const flp_host_mutation *mutation, uint64_t seed, char *message, size_t bytes)
{
    flp_case c = kernel_cases[one->where].c;
    flp_context *context = flp_host_suite_start(kernel_cases[one->where].compute_capability);
    int done;

    assert_non_null(context);
    snprintf(c.name, sizeof(c.name), "%s", one->name);
    flp_host_linear_logp_complete(&c);
    flp_host_kernels_forget();
    flp_host_kernels_mutate(mutation);
    flp_host_suite_begin(seed);
    done = kernel_cases[one->where].is_backward ? run_gradients(context, &c, kernel_cases[one->where].with_forward, message, bytes)
                                                : flp_host_linear_logp_run(context, &c, message, bytes);
    if (mutation)
        assert_int_not_equal(0, flp_host_kernels_mutated());
    flp_host_kernels_mutate(NULL);
    flp_context_destroy(context);
    return done;
}

/* Without a mistake the problem must be right. All mistakes of a problem share this run. */
static void check_without_mistakes(const mistake *one, uint64_t seed)
{
    static int is_right[KERNEL_CASES][SEEDS];
    char message[8192] = "";

    if (!is_right[one->where][seed] && !run(one, NULL, seed, message, sizeof(message)))
        fail_msg("without the mistake, seed %d: %s", (int)seed, message);
    is_right[one->where][seed] = 1;
}

static void a_mistake_is_found(void **state)
{
    const mistake *one = *state;

    for (uint64_t seed = (uint64_t)((one - mistakes) % flp_host_every() % SEEDS); seed<SEEDS; seed += flp_host_every()> 1 ? SEEDS : 1) {
        char message[8192] = "";
        check_without_mistakes(one, seed);
        if (run(one, &one->mutation, seed, message, sizeof(message)))
            fail_msg("not found, seed %d", (int)seed);
        if (!one->rules[1] || !strstr(message, one->rules[1]))
            assert_contains(message, one->rules[0]);
    }
}

int main(void)
{
    struct CMUnitTest tests[MISTAKES];

    for (int i = 0; i < MISTAKES; i++)
        tests[i] = (struct CMUnitTest){ mistakes[i].name, a_mistake_is_found, NULL, NULL, (void *)(uintptr_t)&mistakes[i] };
    return _cmocka_run_group_tests("mistakes", tests, MISTAKES, NULL, NULL);
}
