/* Compiles variants of every kernel family, dtype, layout, option and architecture with NVRTC, without a GPU, and compares ptxas's report and the cubin with
 * the manifest. The output is TAP, with a case for each variant; the exit status is 77 without NVRTC.
 *
 * $FUSEDLOGP_COMPILE_EVERY: n compiles every n-th variant only. $FUSEDLOGP_COMPILE_ONLY: a shell pattern; only variants whose names match are compiled.
 * $FUSEDLOGP_COMPILE_KEPT: a directory in which NVRTC's results are kept. A later run with the same source, options and NVRTC checks them again without
 * compiling. Unset: nothing is kept. */
#include <fnmatch.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "cuda/nvrtc.h"
#include "gen/cubin_facts.h"
#include "jit/kernel.h"
#include "jit/kernel_obtain.h"

#define HOPPER_TILES "{bm64.bv256.s132.c1.p4|bm128.bv256.s132.c1.p4|bm128.bv256.s132.c2.p4}"
#define PORTABLE_TILES "{bm64|bm128}.bv128.s108.c1.p4"
#define HOPPER_PRODUCT_TILES "{bm64.bv256.c1.p4|bm128.bv256.c1.p4|bm128.bv256.c2.p4}"
#define TURN_PRODUCT_TILES "{bm128.wg128.bv128.c2.p5|bm128.wg128.bv192.c1.p4|bm128.wg128.bv192.c2.p4}"
/* Those of the tiles above that leave registers for more than a plain product. */
#define LEAN_PRODUCT_TILES "{bm128.wg128.bv128.c2.p5|bm128.wg128.bv192.c1.p4}"
#define PORTABLE_PRODUCT_TILES "{bm64|bm128}.bv128.c1.p4"
#define ALL_OPTIONS ".bias_f32.softcap.argmax"

/* The combinations of four options, in two halves: those with an even and those with an odd number of options. Either half has every combination of any three.
 * The tiles of a template get one half each; both halves have all options at once, which need the most registers. */
#define EVEN_OPTIONS "{|.bias_f32.softcap|.bias_f32.argmax|.softcap.argmax|.bias_f32.entropy|.softcap.entropy|.argmax.entropy|" ALL_OPTIONS ".entropy}"
#define ODD_OPTIONS "{.bias_f32|.softcap|.argmax|" ALL_OPTIONS "|.entropy|.bias_f32.softcap.entropy|.bias_f32.argmax.entropy|.softcap.argmax.entropy}"
/* The same for three options: either half has every combination of any two. */
#define EVEN_GRADIENTS "{|.bias_f32.softcap|.bias_f32.entropy|.softcap.entropy|.bias_f32.softcap.entropy}"
#define ODD_GRADIENTS "{.bias_f32|.softcap|.entropy|.bias_f32.softcap.entropy}"

/* {a|b} stands for a and for b. For each kernel the tiles that selection chooses come first, with all options, then other legal shapes. For architectures that
 * share their source, only its largest variants are compiled. */
static const char *const patterns[] = {
    "linear_logp.bf16.d4096.bm64.bv256.s132.c1.p4" EVEN_OPTIONS ".sm_90a",
    "linear_logp.bf16.d4096.bm128.bv256.s132.c2.p4" ODD_OPTIONS ".sm_90a",
    "linear_logp.bf16.d4096.bm128.bv256.{s132.c1.p4|s132.c2.p4}{|" ALL_OPTIONS ".entropy}.sm_90a",
    "linear_logp.bf16.d4096.bm128.bv256.s132.c1.p4{.argmax|.entropy}.sm_90a",
    "linear_logp.bf16.d4096.bm128.wg128.bv168.s132.c1.p4{|.softcap|.argmax|.entropy|.softcap.argmax|.softcap.entropy|.argmax.entropy}{|.packed}.sm_90a",
    "linear_logp.bf16.d4096.bm128.wg128.bv168.s132.c1.p4{.softcap.argmax.entropy|.bias_bf16|.bias_bf16.softcap|.bias_bf16.argmax}{|.packed}.sm_90a",
    "linear_logp.bf16.d4096.bm128.wg128.bv168.s132.c1.p4.bias_bf16{.entropy|.argmax.entropy|.softcap.entropy}.sm_90a",
    "linear_logp.bf16.d4096.bm128.wg128.bv168.s132.c1.p4.bias_f32{|.softcap|.argmax}{|.entropy}{|.packed}.sm_90a",
    "linear_logp.bf16.d4096.{bm64.bv168.s132.c1.p6|bm128.bv168.s132.c1.p5}.bias_f32{|.softcap.argmax.entropy}.sm_90a",
    "linear_logp.bf16.d4096.bm128.bv168.s132.c1.p5.bias_bf16.softcap.argmax{|.entropy}.sm_90a",
    "linear_logp.f16.d2304.{bm64.bv168.s132.c1.p6|bm128.bv168.s132.c1.p5|bm128.wg128.bv168.s132.c1.p4}{|.argmax.entropy|.bias_f16.softcap}.sm_90a",
    "linear_logp.bf16.d80.{bm256.wg128.bv192.s132.c1.p4|bm128.wg128.bv192.s132.c1.p5}.sm_90a",
    "linear_logp.f16.d2304." HOPPER_TILES ".dv{|" ALL_OPTIONS ".entropy}.sm_90a",
    "linear_logp.f16.d2304.bm128.bv256.s132.c2.p4.dv{" ALL_OPTIONS "|.entropy}.sm_90a",
    "linear_logp.f32.d2304.bm64.bv168.s132.c1.p3" EVEN_OPTIONS ".sm_90a",
    "linear_logp.f32.d2304.bm128.bv168.s132.c1.p3{|.bias_f32|.argmax|.entropy|" ALL_OPTIONS "|" ALL_OPTIONS ".entropy}.sm_90a",
    "linear_logp.bf16.d80.bm128.bv256.s132.c2.p4.{bias_bf16|bias_f16}.sm_90a",
    "linear_logp.bf16.d80.{bm64|bm128}.{bv64.s64|bv128.s512}.c1.p2.sm_90a",
    "linear_logp.bf16.d80.bm64.{bv64.s4.c2.p6|bv192.s132.c2.p3|bv128.s108.c2.p8.dv|bv192.s108.c1.p4.dv}.sm_90a",

    "linear_logp.bf16.d2304." PORTABLE_TILES "{|.dv}.sm_80",
    "linear_logp.f16.d2304.{bm64.bv128.s108.c1.p4|bm128.bv128.s108.c1.p4.dv}.sm_80",
    "linear_logp.f32.d2304." PORTABLE_TILES "{|.dv}{|.exact}.sm_80",
    "linear_logp.bf16.d81." PORTABLE_TILES ".dv" ALL_OPTIONS "{|.vec2|.vec4|.vec8}.sm_80",
    "linear_logp.f32.d81." PORTABLE_TILES ".bias_f32.softcap.argmax{.vec4|.vec8.exact}.sm_80",
    "linear_logp.bf16.d1.bm64.bv128.s108.c1.p4.{bias_f16|softcap|argmax}.sm_80",
    "linear_logp.bf16.d81." PORTABLE_TILES ".dv" ALL_OPTIONS ".entropy{|.vec2}.sm_80",
    "linear_logp.bf16.d81.{bm64.bv128.s108.c1.p4.dv.entropy|bm128.bv128.s108.c1.p4.dv.entropy.vec2}.sm_80",
    "linear_logp.f32.d2304." PORTABLE_TILES ".dv" ALL_OPTIONS ".entropy{|.exact}.sm_80",
    "linear_logp.f32.d2304.{bm64.bv128.s108.c1.p4.entropy|bm128.bv128.s108.c1.p4.entropy.exact}.sm_80",
    "linear_logp.{bf16|f16}.d80.bm128.bv128.s108.c1.p4{|.dv.bias_bf16.argmax.vec2}.sm_90",
    "linear_logp.f32.d80." PORTABLE_TILES ".dv{|.exact}.sm_90",

    "linear_logp.bf16.d2304.bm128.bv128.s108.c1.p4.{sm_86|sm_87|sm_89|sm_100|sm_103|sm_110|sm_120|sm_121}",
    "linear_logp.f32.d2304.bm64.bv128.s108.c1.p4.dv.argmax.{sm_86|sm_87|sm_89|sm_100|sm_103|sm_110|sm_120|sm_121}",
    "linear_logp.f16.d2304.bm64.bv128.s108.c1.p4" ALL_OPTIONS ".vec2.{sm_100a|sm_103a|sm_110a|sm_120a|sm_121a}",
    "linear_logp.f32.d2304.bm128.bv128.s108.c1.p4.exact.{sm_100a|sm_103a|sm_110a|sm_120a|sm_121a}",

    "linear_logp_grad_logits.bf16.d4096." HOPPER_PRODUCT_TILES ".bias_f32.softcap.entropy.filter.sm_90a",
    "linear_logp_grad_logits.{bf16|f16}.d4096.bm128.bv256.c2.p4.filter.sm_90a",
    "linear_logp_grad_logits.{bf16|f16}.d4096.bm128.wg128.bv192.c1.p4{|.softcap}.filter.sm_90a",
    "linear_logp_grad_logits.bf16.d2304.bm128.wg128.bv192.c1.p4{|.dv}{|.bias_bf16|.softcap|.entropy|.logit_sum}.sm_90a",
    "matrix_product.bf16." HOPPER_PRODUCT_TILES
    ".{b_transposed.out_f32.adds.filter|a_transposed.b_transposed.out_bf16.filter.targets_in_rows|a_transposed.b_transposed.out_f32.adds.filter.targets_in_columns}.sm_90a",
    "matrix_product.f16.bm128.bv256.c2.p4.{b_transposed.out_f32.adds.filter|a_transposed.b_transposed.out_bf16.filter.targets_in_rows}.sm_90a",
    "linear_logp_backward_filter.sm_90a",
    "linear_logp.bf16.d4096.bm128.bv256.s132.c2.p4{|.bias_f32.entropy}.packed.sm_90a",
    "linear_logp.bf16.d4096.bm128.bv128.s108.c1.p4{|.bias_f32.entropy}.packed.sm_80",
    "linear_logp.f32.d2304.{bm64.bv168.s132.c1.p3|bm128.bv168.s132.c1.p3}{|.bias_f32.entropy}.packed.sm_90a",
    "linear_logp_save_exp.bf16.d4096." HOPPER_TILES "{|.bias_f32.entropy}.sm_90a",
    "linear_logp_save_exp.bf16.d4096.bm128.bv256.s132.c2.p4{.bias_f32|.entropy}.sm_90a",
    "linear_logp_save_exp.bf16.d4096.{bm64.bv192.s132.c1.p6|bm128.bv192.s132.c1.p4|bm128.wg128.bv192.s132.c1.p4}{|.dv}.sm_90a",
    "linear_logp_save_exp.bf16.d4096.{bm128.wg128.bv192.s132.c2.p4|bm256.wg128.bv192.s132.c1.p3.dv}.sm_90a",
    "linear_logp_save_exp.bf16.d4096.{bm64.bv256.s132.c1.p4.dv|bm128.bv256.s132.c2.p4.dv}{|.bias_f32.entropy}.sm_90a",
    "linear_logp_save_exp.bf16.d2304." PORTABLE_TILES "{|.bias_f32.entropy}.sm_80",
    "linear_logp_save_exp.bf16.d2304.bm128.bv128.s108.c1.p4{.bias_f32|.entropy}.sm_80",
    "linear_logp_save_exp.bf16.d2304.{bm64.bv128.s108.c1.p4.dv|bm128.bv128.s108.c1.p4.dv.bias_f32.entropy}.sm_80",
    "linear_logp_save_exp.bf16.d81." PORTABLE_TILES ".dv.bias_bf16.entropy{.vec2|.vec8}.sm_80",
    "linear_logp_save_exp.bf16.d81.bm128.bv128.s108.c1.p4.dv.bias_bf16.entropy.vec4.sm_80",
    "linear_logp_save_exp.bf16.d2304.bm128.bv128.s108.c1.p4.bias_f32.entropy.{sm_86|sm_87|sm_89|sm_90|sm_100|sm_103|sm_110|sm_120|sm_121}",
    "linear_logp_offsets.bf16.d4096.bm64.bv64.c1.p8{|.dv}{|.bias_bf16|.bias_f32}.sm_90a",
    "linear_logp_grad_logits.bf16.d4096.{bm64.bv256.c1.p4|bm128.bv256.c2.p4}" EVEN_GRADIENTS ".sm_90a",
    "linear_logp_grad_logits.bf16.d4096.bm128.bv256.c1.p4" ODD_GRADIENTS ".sm_90a",
    "linear_logp_grad_logits.f16.d80.{bm64.bv256.c1.p4|bm128.bv256.c2.p4}.dv{|.bias_f16.softcap.entropy}.sm_90a",
    "linear_logp_grad_logits.bf16.d2304.bm64.bv128.c1.p4" EVEN_GRADIENTS ".sm_80",
    "linear_logp_grad_logits.bf16.d2304.bm128.bv128.c1.p4" ODD_GRADIENTS ".sm_80",
    "linear_logp_grad_logits.f16.d81.bm128.bv128.c1.p4.dv.bias_bf16.softcap.entropy{.sm_80|.vec4.sm_80|.vec2.sm_80|.vec2.sm_90}",
    "linear_logp_grad_logits.f32.d2304." PORTABLE_PRODUCT_TILES "{|.dv.bias_f32.softcap.entropy}{|.exact}.sm_80",
    "linear_logp_grad_logits.f32.d2304.bm128.bv128.c1.p4.{dv.vec4|bias_bf16.entropy}.sm_90",
    "linear_logp_grad_logits.bf16.d4096.bm128.bv128.c1.p4.softcap.entropy.{sm_86|sm_89|sm_100|sm_120}",

    "matrix_product.bf16." HOPPER_PRODUCT_TILES "{|.b_transposed}.out_f32.adds.sm_90a",
    "matrix_product.bf16." TURN_PRODUCT_TILES "{|.b_transposed}.out_f32{|.adds}.sm_90a",
    "matrix_product.bf16." HOPPER_PRODUCT_TILES "{|.b_transposed}.out_f32.adds.slabs.sm_90a",
    "matrix_product.bf16." TURN_PRODUCT_TILES "{|.b_transposed}.out_f32.adds.slabs.sm_90a",
    "matrix_product.bf16." HOPPER_PRODUCT_TILES ".a_transposed.b_transposed.out_bf16{|.ragged}.slabs.targets_in_rows.sm_90a",
    "matrix_product.bf16." LEAN_PRODUCT_TILES ".a_transposed.b_transposed.out_bf16.slabs.targets_in_rows.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv128.c2.p5.a_transposed.b_transposed.{out_f32|out_f16.ragged}.slabs.targets_in_rows.sm_90a",
    "matrix_product.bf16." HOPPER_PRODUCT_TILES "{|.b_transposed}.out_f32.parts.sm_90a",
    "matrix_product.bf16." TURN_PRODUCT_TILES "{|.b_transposed}.out_f32.parts.sm_90a",
    "matrix_product.bf16.bm64.bv64.{c1|c2}.{p6|p8}{|.b_transposed}.out_f32{|.parts}.sm_90a",
    "matrix_product.bf16.bm64.bv64.{c1|c2}.{p6|p8}{|.b_transposed}.out_bf16{|.ragged}.targets_of_rows.sm_90a",
    "matrix_product.bf16.bm128.bv128.c1.p6{|.b_transposed}.out_f32.parts.sm_90a",
    "matrix_product.bf16." TURN_PRODUCT_TILES ".a_transposed.b_transposed.out_bf16.targets_in_rows.sm_90a",
    "matrix_product.bf16." LEAN_PRODUCT_TILES ".a_transposed.b_transposed.out_f32.adds.targets_in_rows.sm_90a",
    "matrix_product.f16." TURN_PRODUCT_TILES ".a_transposed.b_transposed.out_f16.adds.targets_in_rows.sm_90a",
    "matrix_product.f16." LEAN_PRODUCT_TILES ".a_transposed.b_transposed{.out_f32|.out_f16.ragged|.out_f16.adds.ragged}.targets_in_rows.sm_90a",
    "matrix_product.f16." TURN_PRODUCT_TILES ".b_transposed{.out_bf16|.out_f16.ragged}.targets_of_rows.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv128.c2.p5.a_transposed.b_transposed{.out_bf16|.out_f16.adds|.out_f32.adds}{|.ragged}.targets_in_columns.sm_90a",
    "matrix_product.f16.bm128.wg128.bv128.c2.p5.a_transposed.b_transposed{.out_f16|.out_f32}.adds.targets_in_columns.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv192.c2.p4.a_transposed.b_transposed{.out_bf16|.out_f16.adds}.targets_in_columns.sm_90a",
    "matrix_product.f16.bm128.wg128.bv192.c2.p4.a_transposed.b_transposed{.out_f16|.out_bf16.adds}.targets_in_columns.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv128.c2.p5{.out_bf16|.out_f32}{|.ragged}.targets_of_rows.sm_90a",
    "matrix_product.f16.bm128.wg128.bv128.{c1|c2}.p4.out_f16.targets_of_rows.sm_90a",
    "matrix_product.bf16.bm128.bv256.c2.p4.a_transposed.b_transposed{.out_bf16|.out_f16.adds|.out_f32.adds}.{targets_in_rows|targets_in_columns}.sm_90a",
    "matrix_product.f16.bm128.bv256.c2.p4.a_transposed.b_transposed{.out_f16|.out_f32}.adds.{targets_in_rows|targets_in_columns}.sm_90a",
    "matrix_product.bf16." HOPPER_PRODUCT_TILES "{|.b_transposed}.out_bf16.targets_of_rows.sm_90a",
    "matrix_product.bf16.bm128.bv256.c2.p4.a_transposed.b_transposed{.out_bf16|.out_f16.adds|.out_f32.adds}.ragged.{targets_in_rows|targets_in_columns}.sm_90a",
    "matrix_product.bf16." HOPPER_PRODUCT_TILES "{|.b_transposed}.out_bf16.ragged.targets_of_rows.sm_90a",
    "matrix_product.bf16." HOPPER_PRODUCT_TILES "{|.b_transposed}.out_bf16{|.ragged}.in_step.targets_of_rows.sm_90a",
    "matrix_product.bf16." TURN_PRODUCT_TILES ".b_transposed.out_bf16{|.ragged}.in_step.targets_of_rows.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv128.c2.p5.out_bf16{|.ragged}.in_step.targets_of_rows.sm_90a",
    "matrix_product.bf16.bm128.bv256.c2.p4.a_transposed.b_transposed{.out_bf16|.out_f32}{|.adds}{|.ragged}.in_step.{targets_in_rows|targets_in_columns}.sm_90a",
    "matrix_product.bf16." TURN_PRODUCT_TILES ".a_transposed.b_transposed.out_bf16.in_step.targets_in_rows.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv128.c2.p5.a_transposed.b_transposed.out_bf16.ragged.in_step.targets_in_rows.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv128.c2.p5.a_transposed.b_transposed.out_f32.adds{|.ragged}.in_step.targets_in_rows.sm_90a",
    "matrix_product.bf16.bm128.wg128.bv128.c2.p5.a_transposed.b_transposed{.out_bf16|.out_f32}{|.adds}{|.ragged}.in_step.targets_in_columns.sm_90a",
    "matrix_product.bf16." PORTABLE_PRODUCT_TILES "{|.b_transposed}.out_f32.adds{|.vec4|.vec2}.sm_80",
    "matrix_product.bf16." PORTABLE_PRODUCT_TILES "{|.b_transposed}.out_f32{|.vec4|.vec2}.parts.sm_80",
    "matrix_product.bf16.bm128.bv128.c1.p4.b_transposed.out_f32.parts.{sm_86|sm_89|sm_90|sm_100|sm_120}",
    "matrix_product.bf16.bm128.bv128.c1.p4.a_transposed.b_transposed{.out_bf16.adds|.out_f32}.{targets_in_rows|targets_in_columns}.sm_80",
    "matrix_product.f16.bm128.bv128.c1.p4.a_transposed.b_transposed.{out_bf16.adds.targets_in_rows|out_f32.targets_in_columns}.{sm_80|sm_90}",
    "matrix_product.bf16." PORTABLE_PRODUCT_TILES "{|.b_transposed}.out_bf16.targets_of_rows.sm_80",
    "matrix_product.bf16.bm128.bv128.c1.p4.b_transposed.out_bf16.targets_of_rows.{sm_86|sm_89|sm_90|sm_100|sm_120}",
    "matrix_product.bf16.bm128.bv128.c1.p4{|.b_transposed}.out_bf16.{vec2|vec4|vec8}.targets_of_rows.sm_80",
    "matrix_product.f32." PORTABLE_PRODUCT_TILES "{|.b_transposed}.out_f32.adds{|.exact}.sm_80",
    "matrix_product.f32." PORTABLE_PRODUCT_TILES ".a_transposed.b_transposed.out_f32.adds{|.exact}.{targets_in_rows|targets_in_columns}.sm_80",
    "matrix_product.f32.bm128.bv128.c1.p4.a_transposed.b_transposed.out_bf16.targets_in_rows.{sm_86|sm_90|sm_100|sm_120}",

    "linear_logp_backward_{rows|gather.bf16|bias.f16.out_f32.adds|finish.w_f16.out_bf16.adds|"
    "finish.w_f32.dv.out_f32|finish.bf16.out_bf16|finish.w_bf16.dv.out_bf16.parts|finish.out_f32.parts|target_order}.{sm_80|sm_90a}",

    "linear_logp_combine.bm8{|.argmax}.{sm_80|sm_90a}",
    "linear_logp_combine.bm8.argmax.{sm_90|sm_100|sm_100a|sm_110a|sm_120|sm_120a}",
    "linear_logp_combine.bm8{|.argmax}.entropy.{sm_80|sm_90a}",
    "linear_logp.bf16.d4096.bm128.wg128.bv168.s132.c1.p4{|.softcap|.entropy|.softcap.entropy|.bias_bf16|.bias_bf16.softcap.entropy}.logit_sum{|.packed}.sm_90a",
    "linear_logp.bf16.d4096.bm128.wg128.bv168.s132.c1.p4.bias_f32{|.softcap}{|.entropy}.logit_sum{|.packed}.sm_90a",
    "linear_logp.bf16.d4096.bm128.wg128.bv168.s132.c1.p4{|.softcap.entropy}.logit_sum.classes_f32{|.packed}.sm_90a",
    "linear_logp.bf16.d4096.bm128.bv256.s132.c2.p4{|.bias_f32.softcap.entropy|" ALL_OPTIONS ".entropy}.logit_sum{|.classes_f32}.sm_90a",
    "linear_logp.bf16.d4096.{bm64|bm128}.bv256.s132.c1.p4{.logit_sum|.bias_f32.softcap.entropy.logit_sum.classes_f32}.sm_90a",
    "linear_logp.bf16.d4096." HOPPER_TILES ALL_OPTIONS ".entropy.logit_sum.classes_bf16.sm_90a",
    "linear_logp.f16.d2304.{bm64.bv256.s132.c1.p4.dv|bm128.bv256.s132.c2.p4.dv}{|.bias_f32.softcap}.logit_sum.classes_f16.sm_90a",
    "linear_logp.f32.d2304.{bm64.bv168.s132.c1.p3|bm128.bv168.s132.c1.p3}{|.bias_f32.softcap.entropy}.logit_sum.classes_f32.sm_90a",
    "linear_logp.bf16.d2304.{bm64.bv128.s108.c1.p4|bm128.bv128.s108.c1.p4.bias_f32.softcap.entropy}.logit_sum{|.classes_f32}.sm_80",
    "linear_logp.f32.d2304.{bm64.bv128.s108.c1.p4.bias_f32.softcap.entropy|bm128.bv128.s108.c1.p4}.logit_sum{|.classes_f32}.sm_80",
    "linear_logp_grad_logits.bf16.d4096." HOPPER_PRODUCT_TILES ".bias_f32.softcap.entropy.logit_sum.classes_f32.sm_90a",
    "linear_logp_grad_logits.bf16.d4096.{bm64.bv256.c1.p4|bm128.bv256.c2.p4}{.logit_sum|.bias_f32.softcap.entropy.logit_sum|"
    ".entropy.logit_sum.classes_f32|.bias_f32.softcap.logit_sum.classes_f32}.sm_90a",
    "linear_logp_grad_logits.bf16.d4096.bm128.bv256.c1.p4{.entropy.logit_sum|.bias_f32.softcap.logit_sum|.softcap.entropy.logit_sum.classes_f32}.sm_90a",
    "linear_logp_grad_logits.bf16.d2304.{bm64.bv128.c1.p4|bm128.bv128.c1.p4.bias_f32.softcap.entropy}.logit_sum{|.classes_f32}.sm_80",
    "linear_logp_grad_logits.f32.d2304.{bm64.bv128.c1.p4.bias_f32.softcap.entropy|bm128.bv128.c1.p4}.logit_sum{|.classes_f32}.sm_80",
    "linear_logp_combine.bm8{|.argmax.entropy}.logit_sum.{sm_80|sm_90a}",
    "linear_logp_partials.bm8{|.argmax}{|.entropy}{|.logit_sum}.{sm_80|sm_90a}",
    "linear_logp_{shard_targets|merge|merge_sums|backward_other_shards}.{sm_80|sm_90a|sm_100|sm_120}",
    "token_loss.{loss_cross_entropy|loss_smoothed_cross_entropy|loss_policy_gradient|loss_policy_gradient_kl}.{sm_80|sm_90a}",
    "token_loss.loss_policy_gradient_kl.sm_120",

    "linear_logp_combine.{bm1|bm32}.argmax.sm_90a",

    "logits_logp.{bf16|f32}.{w8|w8.entropy|w4.argmax|w4.softcap.argmax.entropy}.sm_90a",
    "logits_logp.{bf16|f16}.{w8.argmax|w4.entropy|w4.argmax.entropy|w4.softcap.argmax}.sm_90a",
    "logits_logp.f32.{w4.argmax.entropy|w4.softcap.argmax}{|.half}.sm_90a",
    "logits_logp.{bf16|f16}.{w8.argmax|w8.argmax.entropy|w4.softcap.argmax.entropy}.half.sm_90a",
    "logits_logp.{bf16|f16}.{w8.argmax|w8.argmax.entropy|w4.softcap.argmax.entropy}.sm_80",
    "logits_logp.f16.w4.argmax{|.entropy}.vec2.sm_80",
    "logits_logp.f32.w4.argmax{|.entropy}.sm_80",
    "logits_logp.f16.w4{|.entropy|.softcap|.argmax.entropy|.softcap.argmax.entropy}.vec2.sm_90a",
    "logits_logp.f32.w4{|.argmax|.softcap|.softcap.argmax.entropy}.vec4.sm_90a",
    "logits_logp.{bf16|f32}.w4.softcap{|.entropy}{|.half}.{sm_80|sm_90a}",
    "logits_logp_cluster.{bf16|f32}.c16.w8.softcap{|.entropy}.sm_90a",
    "logits_logp.{bf16|f32}.{w8|w8.entropy|w4.softcap.argmax.entropy}.half.sm_90a",
    "logits_logp.f16.w4{|.entropy|.softcap.argmax.entropy}.vec2.half.sm_90a",
    "logits_logp.{bf16.w8|bf16.w4.softcap.argmax.entropy|f16.w4.softcap.argmax.entropy.vec2|f32.w4.softcap.argmax.entropy.vec4|bf16.w8.half}.sm_80",
    "logits_logp_cluster.{bf16|f32}.c16.{w8|w8.entropy|w4.argmax|w8.softcap.argmax.entropy}.sm_90a",
    "logits_logp_cluster.f16.c16.w4{|.entropy|.softcap|.softcap.argmax.entropy}.vec2.sm_90a",
    "logits_logp_combine.f16.w8{|.softcap}{|.argmax}{|.entropy}.sm_90a",
    "logits_logp_gradient.{bf16|f32}.{w8|w8.entropy|w4.softcap.entropy}.{sm_80|sm_90a}",
    "logits_logp_gradient.f16.{w4.vec2|w4.softcap.entropy.vec2}.{sm_90|sm_90a}",
    "logits_logp_gradient.bf16.{w4|w4.entropy|w2.softcap|w2.softcap.entropy}.vec2.sm_90a",
    "logits_logp_gradient.f32.{w4|w4.entropy|w2.softcap|w2.softcap.entropy}.vec4.sm_90a",
    "logits_logp_fused.{bf16|f32}.w4{|.softcap}{|.entropy}.sm_90a",
    "logits_logp_fused.{bf16|f16}.w4{|.softcap}{|.entropy}.vec2.sm_90a",
    "logits_logp_fused.f32.w4{|.softcap}{|.entropy}.vec4.sm_90a",
    "logits_logp_fused.{bf16.w4|f32.w4.softcap.entropy|f16.w4.softcap.entropy.vec2}.sm_80",
    "logits_logp_fused_cluster.{bf16.c4|f16.c1}.{w20|w16.entropy|w17.softcap|w17.softcap.entropy}.sm_90a",
    "logits_logp_fused_cluster.f32.c8.{w17|w16.entropy|w17.softcap|w17.softcap.entropy}.sm_90a",
    "logits_logp_fused_cluster.{bf16.c1.w20|f32.c2.w17.softcap.entropy}.sm_90a",
    "logits_logp_fused_cluster.{bf16.c2|f16.c1}.{w20|w16.entropy|w16.softcap|w8.softcap.entropy}.vec2.sm_90a",
    "logits_logp_fused_cluster.f32.c4.{w16|w16.entropy|w16.softcap|w16.softcap.entropy}.vec4.sm_90a",

    "weighted_sum.{bf16.w_bf16.y_bf16|f32.w_f32.y_f32}.{t1|t16|t256}.sm_90",
    "weighted_sum.f16.{w_f16|w_f32}.y_f32.t64{|.vec8|.vec4|.vec2}.sm_90",
    "weighted_sum.{bf16.w_bf16.y_bf16|f32.w_f32.y_f32|f16.w_f32.y_f32}.{t16|t64.vec4}.sm_80",
    "weighted_sum.f32.{w_bf16|w_f32}.y_bf16.t64{|.vec8|.vec4}.sm_90",
    "weighted_sum.bf16.w_f32.y_bf16.{t1|t16|t128|t256}.sm_90",
    "weighted_sum.bf16.w_f32.y_bf16.t256.sm_100",
    "weighted_sum_outer.{bf16.w_bf16|f16.w_f32}.g_f32{|.vec8|.vec4|.vec2}.sm_90",
    "weighted_sum_outer.f32.w_bf16.g_bf16{|.vec8|.vec4}.{sm_80|sm_90a}",
    "weighted_sum_tile.{bf16.g_bf16.gw_bf16|f16.g_f32.gw_f32}{|.vec8|.vec4|.vec2}.sm_90a",
    "weighted_sum_tile.f32.{g_f32.gw_f32|g_bf16.gw_bf16}{|.vec8|.vec4}.{sm_80|sm_90a}",
    "weighted_sum_combine.{gw_bf16|gw_f32}.{sm_80|sm_90a}",

    "scale.{bf16|f16|f32}.{sm_80|sm_90}",
};

enum { MOST_WORKERS = 32, LARGEST_MATRIX = 1024 };

typedef enum { WAITING, GOOD, BAD, UNKNOWN_ARCHITECTURE } outcome;

typedef struct {
    char variant[FLP_VARIANT_BYTES];
    outcome outcome; /* under the mutex; then what is below is complete */
    int registers;
    double milliseconds;
    flp_text complaints; /* one a line */
} job;

static struct {
    job jobs[LARGEST_MATRIX];
    int count;
    atomic_int next;
    flp_kernel_store *store;
    flp_cubin_cache *kept;
    atomic_int kept_count; /* variants that were found there */
    flp_nvrtc_facts nvrtc;
    pthread_mutex_t mutex;
    pthread_cond_t finished;
} matrix = { .mutex = PTHREAD_MUTEX_INITIALIZER, .finished = PTHREAD_COND_INITIALIZER };

static void add(const char *variant)
{
    if (matrix.count == LARGEST_MATRIX || strlen(variant) >= FLP_VARIANT_BYTES) {
        fprintf(stderr, "compile_matrix: %s: too long, or more than %d variants\n", variant, LARGEST_MATRIX);
        abort();
    }
    strcpy(matrix.jobs[matrix.count++].variant, variant);
}

/* Adds head, then each expansion of pattern. */
static void expand(const char *head, const char *pattern)
{
    char text[512];
    const char *open = strchr(pattern, '{'), *close = open ? strchr(open, '}') : NULL;

    if (!close) {
        snprintf(text, sizeof(text), "%s%s", head, pattern);
        add(text);
        return;
    }
    for (const char *choice = open + 1; choice <= close; choice += strcspn(choice, "|}") + 1) {
        snprintf(text, sizeof(text), "%s%.*s%.*s", head, (int)(open - pattern), pattern, (int)strcspn(choice, "|}"), choice);
        expand(text, close + 1);
    }
}

/* CUDA C++ Programming Guide, technical specifications by compute capability: most shared memory of a thread block. */
static int shared_limit(const char *arch)
{
    static const struct {
        int capability, kib;
    } limits[] = {
        { 80, 163 }, { 86, 99 }, { 87, 163 }, { 89, 99 }, { 90, 227 }, { 100, 227 }, { 103, 227 }, { 110, 227 }, { 120, 99 }, { 121, 99 },
    };
    int capability = atoi(arch + strcspn(arch, "0123456789"));

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        if (limits[i].capability == capability)
            return limits[i].kib * 1024;
    return 0;
}

/* The number before `unit` in ptxas' report, e.g. "0 bytes spill stores"; -1 where it says none. */
static long reported(const char *log, const char *unit)
{
    const char *at = strstr(log, unit), *digits = at;

    while (digits && digits > log && digits[-1] >= '0' && digits[-1] <= '9')
        digits--;
    return digits && digits < at ? strtol(digits, NULL, 10) : -1;
}

static void check_report(const flp_emitted *emitted, const char *log, job *job)
{
    const flp_manifest *manifest = &emitted->manifest;
    static const char *const memories[] = { " bytes spill stores", " bytes spill loads" };
    /* setmaxnreg distributes exactly the registers with which the block was started. */
    int fixed = strstr(emitted->source, "int producer_registers = ") && !strstr(emitted->source, "int producer_registers = 0;");

    for (size_t i = 0; i < sizeof(memories) / sizeof(memories[0]); i++)
        if (reported(log, memories[i]) != 0)
            flp_text_append(&job->complaints, "%ld%s, wanted 0\n", reported(log, memories[i]), memories[i]);
    if (reported(log, " bytes stack frame") < 0 || reported(log, " bytes stack frame") > manifest->local_bytes)
        flp_text_append(&job->complaints, "%ld bytes stack frame, wanted at most %d\n", reported(log, " bytes stack frame"), manifest->local_bytes);
    job->registers = (int)reported(log, " registers");
    if (job->registers < 1 || job->registers > manifest->registers || (fixed && job->registers != manifest->registers))
        flp_text_append(&job->complaints, "%d registers, wanted %s%d\n", job->registers, fixed ? "" : "at most ", manifest->registers);
    if (reported(log, " bytes smem") > 0)
        flp_text_append(&job->complaints, "%ld bytes of static shared memory, wanted 0\n", reported(log, " bytes smem"));
    if (manifest->shared_bytes > shared_limit(manifest->arch))
        flp_text_append(&job->complaints, "%d bytes of shared memory, wanted at most %d\n", manifest->shared_bytes, shared_limit(manifest->arch));
    /* Warnings include C7508, setmaxnreg ignored, and C7510, wgmma serialised. */
    if (strstr(log, "warning"))
        flp_text_append(&job->complaints, "%.*s\n", (int)strcspn(strstr(log, "warning"), "\n"), strstr(log, "warning"));
}

static void check_cubin(const flp_manifest *manifest, const flp_cubin *cubin, job *job)
{
    cubin_facts facts;
    const char *wrong = cubin_facts_read(cubin->cubin, cubin->cubin_bytes, manifest->kernel, &facts);
    int tile = strstr(job->variant, ".bv") != NULL, hopper = strcmp(manifest->arch, "sm_90a") == 0, exact = strstr(job->variant, ".exact") != NULL;
    size_t hgmma_wanted = tile && hopper, hmma_wanted = tile && !hopper && !exact;

    if (wrong) {
        flp_text_append(&job->complaints, "the cubin %s\n", wrong);
        return;
    }
    if ((facts.hgmma > 0) != hgmma_wanted)
        flp_text_append(&job->complaints, "%zu HGMMA instructions, wanted %s\n", facts.hgmma, hgmma_wanted ? "some" : "none");
    if ((facts.hmma > 0) != hmma_wanted)
        flp_text_append(&job->complaints, "%zu HMMA instructions, wanted %s\n", facts.hmma, hmma_wanted ? "some" : "none");
    /* Of its warp's 32 x 64 elements a thread computes 64, with one FFMA each at each step of K; the epilogue has some more. */
    if (exact && facts.ffma < 64)
        flp_text_append(&job->complaints, "%zu FFMA instructions, wanted at least 64\n", facts.ffma);
}

static flp_cubin_key key_of(const flp_emitted *emitted)
{
    return (flp_cubin_key){
        .source = emitted->source,
        .source_bytes = emitted->source_bytes,
        .options = flp_kernel_obtain_options,
        .arch = emitted->manifest.arch,
        .nvrtc_build = matrix.nvrtc.build,
    };
}

/* 1: the kernel and its log were kept by an earlier run. A kept file has the log in place of the manifest. */
static int find_kept(const char *variant, flp_emitted *emitted, flp_cubin *cubin, char **log)
{
    flp_cubin_key key;
    int found = 0;

    if (flp_generator_emit(flp_kernel_store_generator(matrix.store), variant, emitted) != FLP_OK)
        return 0;
    key = key_of(emitted);
    if (flp_cubin_cache_load(matrix.kept, &key, cubin, &found) == FLP_OK && found) {
        *log = cubin->manifest_text;
        cubin->manifest_text = NULL;
        atomic_fetch_add(&matrix.kept_count, 1);
    } else {
        flp_emitted_free(emitted);
    }
    return found;
}

static flp_status compile_and_keep(const char *variant, flp_emitted *emitted, flp_cubin *cubin, char **log)
{
    const flp_status status = flp_kernel_store_compile(matrix.store, variant, emitted, cubin, log);

    if (status == FLP_OK) {
        const flp_cubin_key key = key_of(emitted);
        flp_cubin file = *cubin;

        file.manifest_text = *log;
        flp_cubin_cache_store(matrix.kept, &key, &file); /* if this fails, the next run compiles it again */
    }
    return status;
}

static outcome compile(job *job)
{
    flp_emitted emitted;
    flp_cubin cubin;
    char *log = NULL;
    flp_status status = find_kept(job->variant, &emitted, &cubin, &log) ? FLP_OK : compile_and_keep(job->variant, &emitted, &cubin, &log);
    outcome outcome;

    if (status == FLP_COMPILE_FAILED && strstr(flp_error_message(), "invalid value for --gpu-architecture")) {
        outcome = UNKNOWN_ARCHITECTURE;
    } else {
        if (status != FLP_OK) {
            flp_text_append(&job->complaints, "%s: %s\n", flp_status_text(status), flp_error_message());
        } else {
            check_report(&emitted, log, job);
            check_cubin(&emitted.manifest, &cubin, job);
        }
        outcome = job->complaints.length ? BAD : GOOD;
    }
    if (status == FLP_OK) {
        flp_emitted_free(&emitted);
        flp_cubin_free(&cubin);
    }
    free(log);
    return outcome;
}

/* Processor time of the calling thread: what else runs does not count. */
static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1e3 + now.tv_nsec * 1e-6;
}

static void *work(void *unused)
{
    int i;

    (void)unused;
    while ((i = atomic_fetch_add(&matrix.next, 1)) < matrix.count) {
        double start = now_ms();
        outcome outcome = compile(&matrix.jobs[i]);
        pthread_mutex_lock(&matrix.mutex);
        matrix.jobs[i].milliseconds = now_ms() - start;
        matrix.jobs[i].outcome = outcome;
        pthread_cond_broadcast(&matrix.finished);
        pthread_mutex_unlock(&matrix.mutex);
    }
    return NULL;
}

/* Prints the case; 1 where it failed. */
static int report(int number, job *job)
{
    pthread_mutex_lock(&matrix.mutex);
    while (job->outcome == WAITING)
        pthread_cond_wait(&matrix.finished, &matrix.mutex);
    pthread_mutex_unlock(&matrix.mutex);
    if (job->outcome == UNKNOWN_ARCHITECTURE)
        printf("ok %d - %s # SKIP this NVRTC does not know the architecture\n", number, job->variant);
    else
        printf("%s %d - %s: %d registers, %.0f ms\n", job->outcome == GOOD ? "ok" : "not ok", number, job->variant, job->registers, job->milliseconds);
    for (const char *line = job->complaints.data; line && *line; line += strcspn(line, "\n") + 1)
        printf("#   %.*s\n", (int)strcspn(line, "\n"), line);
    fflush(stdout);
    flp_text_free(&job->complaints);
    return job->outcome == BAD;
}

/* Keeps every n-th variant. The variants of one pattern are neighbours, so some of each long pattern remain. */
static int thin(void)
{
    const char *text = getenv("FUSEDLOGP_COMPILE_EVERY");
    const int every = text && atoi(text) > 1 ? atoi(text) : 1;

    for (int i = 0; i * every < matrix.count; i++)
        matrix.jobs[i] = matrix.jobs[i * every];
    matrix.count = (matrix.count + every - 1) / every;
    return every;
}

/* Keeps the variants whose names match $FUSEDLOGP_COMPILE_ONLY. 1: it is not set, and all remain. Where none matches, the program ends. */
static int choose(void)
{
    const char *pattern = getenv("FUSEDLOGP_COMPILE_ONLY");
    int count = 0;

    for (int i = 0; pattern && i < matrix.count; i++)
        if (fnmatch(pattern, matrix.jobs[i].variant, 0) == 0)
            matrix.jobs[count++] = matrix.jobs[i];
    if (pattern && count == 0) {
        printf("1..1\nnot ok 1 - FUSEDLOGP_COMPILE_ONLY: no variant matches '%s'\n", pattern);
        exit(1);
    }
    if (pattern)
        matrix.count = count;
    return pattern == NULL;
}

static int worker_count(void)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);

    return cores < 2 ? 2 : cores > MOST_WORKERS ? MOST_WORKERS : (int)cores;
}

/* Checks that the matrix has two variants of every architecture that the generator knows. 1: one is missing. */
static int report_coverage(int number)
{
    const char *names;
    char text[1024], *save;
    int missing = 0;

    if (flp_generator_architectures(flp_kernel_store_generator(matrix.store), &names) != FLP_OK)
        names = "";
    snprintf(text, sizeof(text), "%s", names);
    for (char *name = strtok_r(text, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
        int found = 0;
        for (int i = 0; i < matrix.count; i++)
            found += strcmp(strrchr(matrix.jobs[i].variant, '.') + 1, name) == 0;
        if (found < 2)
            printf("#   %s: %d variants, wanted 2\n", name, found);
        missing += found < 2;
    }
    printf("%s %d - every architecture is compiled for at least twice\n", missing || !*names ? "not ok" : "ok", number);
    return missing || !*names;
}

int main(void)
{
    const flp_context_options options = { .cache_directory = "", .system_cache_directories = "" };
    const char *kept = getenv("FUSEDLOGP_COMPILE_KEPT");
    const flp_cubin_cache_options kept_options = { .directory = kept ? kept : "", .system_directories = "" };
    const int count = worker_count();
    pthread_t workers[MOST_WORKERS];
    int failed = 0, variants, every, all;

    if (flp_nvrtc_find(&matrix.nvrtc) != FLP_OK) {
        printf("1..0 # SKIP %s\n", flp_error_message());
        return 77;
    }
    if (flp_kernel_store_create(&options, &matrix.store) != FLP_OK || flp_cubin_cache_create(&kept_options, &matrix.kept) != FLP_OK) {
        printf("1..1\nnot ok 1 - a kernel store: %s\n", flp_error_message());
        return 1;
    }
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
        expand("", patterns[i]);
    all = choose();
    variants = matrix.count;
    every = thin();
    all = all && every == 1;
    printf("1..%d\n# NVRTC: %s\n", matrix.count + all, matrix.nvrtc.path);
    if (every > 1)
        printf("# in part: %d of %d variants\n", matrix.count, variants);
    for (int i = 0; i < count; i++)
        if (pthread_create(&workers[i], NULL, work, NULL) != 0)
            abort();
    for (int i = 0; i < matrix.count; i++)
        failed += report(i + 1, &matrix.jobs[i]);
    for (int i = 0; i < count; i++)
        pthread_join(workers[i], NULL);
    if (all)
        failed += report_coverage(matrix.count + 1);
    printf("# %d of %d had been compiled before\n", matrix.kept_count, matrix.count);
    flp_cubin_cache_destroy(matrix.kept);
    flp_kernel_store_destroy(matrix.store);
    return failed > 0;
}
