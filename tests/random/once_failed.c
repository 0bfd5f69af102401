/* Problems that failed once. Each stays here, with what it was. */
#include "random/once_failed.h"

#include <stddef.h>

const char *const flp_random_once_failed[] = {
    /* What makes up for the tensor cores' truncation takes whole numbers, which lose nothing, 2^-30 of themselves a product too far. */
    "linear_logp v=6 values=2 d=502 data=965531907",
    /* The largest logit lies 2^48 above the offset: the sum's logarithm and the moment are 48 and more, and have fp32's digits of that. */
    "linear_logp n=54 v=90 likely=2 margin=74.882795093963665 entropy=1 d=4 dtype=f32 data=549894393",
    "linear_cross_entropy n=26 v=113 scale=20 entropy=1 d=4 dtype=f32 data=821493609",
    /* fp16's subnormal numbers lie 2^-24 apart, where the largest derivative is 2^14. */
    "linear_cross_entropy v=4 values=2 grad_bias=f32 bias=f32 d=10 dtype=f16 data=589690777",
    /* What smoothing spreads evenly is rounded alike in all rows. */
    "linear_cross_entropy n=47 v=83 shape=3 smoothing=1 label_smoothing=0.20257957736616064 grad_bias=f32 bias=f32 dtype=f16 data=6082084",
    /* The CPU path's forward handed one fp32 lse over: 1 - p of likely targets, and all of large logits, had no digits left. */
    "linear_logp_backward row_temperature=1 forward=1 grad_hidden=f32 d=28 data=729473390",
    "linear_logp_backward v=2 shape=7 shift=-3.4028234663852886e+38 forward=1 grad_hidden=f32 bias=f32 dtype=f16 data=688020979",
    /* lse^2 is infinite, and lse_square_scale 0. */
    "linear_cross_entropy shape=7 shift=-3.4028234663852886e+38 bias=f32 dtype=f32 data=19358789",
    /* A second backward: what it looks at has no life. */
    "linear_logp_backward again=1 forward=1 grad_hidden=f32 dtype=f32 data=688737207",
    /* A row temperature without bound took lowest numbers, which are masks, for 0 on the CPU path and in logits_logp. */
    "linear_logp n=9 v=2 row_temperature=3 shape=8 shift=-3.4028234663852886e+38 bias=f32 dtype=f32 data=541767474",
    "logits_logp n=9 v=2 row_temperature=3 shape=8 shift=-3.4028234663852886e+38 dtype=f32 data=541767474",
    /* Gradients at large logits, all equal: forward and backward that belong together hand over more than one fp32 lse. */
    "linear_logp_backward n=5 v=40 shape=7 values=1 shift=100000 forward=1 grad_bias=f32 bias=f32 d=8 dtype=bf16 data=21",
    "linear_logp_backward n=5 v=40 shape=7 values=1 shift=-1000000 forward=1 grad_bias=f32 bias=f32 d=8 dtype=bf16 data=22",
    "linear_logp_backward n=5 v=40 temperature=0.7 shape=7 values=1 shift=16000000 forward=1 grad_bias=f32 bias=f32 d=8 dtype=bf16 data=23",
    "linear_cross_entropy n=5 v=40 shape=7 values=1 shift=100000 grad_bias=f32 bias=f32 d=8 dtype=f32 data=24",
    "linear_cross_entropy n=5 v=40 temperature=0.7 shape=7 values=1 shift=-16000000 grad_bias=f32 bias=f32 d=8 dtype=f32 data=25",
    "logits_logp_backward n=5 v=40 shape=7 shift=100000 fused=1 dtype=f32 data=26",
    "logits_logp_backward n=5 v=40 temperature=0.7 shape=7 shift=16000000 fused=1 dtype=f32 data=27",
    /* Row temperatures without bound, and as small as there are. */
    "linear_logp n=20 v=40 row_temperature=3 entropy=1 d=8 dtype=f32 data=28",
    "linear_logp_backward n=20 v=40 row_temperature=3 forward=1 grad_hidden=f32 d=8 dtype=f32 data=29",
    "logits_logp_backward n=20 v=40 row_temperature=3 fused=1 dtype=f32 data=30",
    /* Label smoothing in the problem, 0 in the call, beside -inf. */
    "linear_cross_entropy n=5 v=40 shape=3 smoothing=1 grad_hidden=f32 grad_bias=f32 bias=f32 d=8 dtype=f32 data=31",
    /* The mean of losses of which one is beyond fp32: infinite, or not. */
    "linear_cross_entropy n=65 v=33 shape=8 shift=-3.4028234663852886e+38 lse_square_scale=0.001 classes=f32 grad_bias=f32 bias=f32 d=64 dtype=f16 data=677875554",
    /* The z-loss of an lse beyond fp32, with a scale of 0. */
    "linear_cross_entropy row_temperature=1 shape=7 shift=-3.4028234663852886e+38 bias=f32 dtype=f32 data=691695265",
    /* A softcapped logit taken from itself: one product rounded, the other fused with the difference. */
    "logits_logp n=24 v=2 row_temperature=3 likely=1 margin=74.11857732909111 softcap=30 dtype=f32 data=827422332",
    "logits_logp n=7 v=18 row_temperature=3 outputs=10 entropy=1 softcap=30 dtype=f32 data=690354147",
    "logits_logp_backward v=45 temperature=7.1912588260619734e-07 fused=1 softcap=30 dtype=f32 data=522928582",
    "logits_logp_backward v=64 temperature=7.7041760847583159e-11 outputs=2 fused=1 softcap=30 dtype=f32 data=254929384",
    /* What has no probability may have some where logits are off by a softcap's rounding over the temperature. */
    "linear_logp_backward n=3 v=78 temperature=6.2228983019995447e-10 scale=10000 g_entropy=1 softcap=30 grad_weight=f32 d=2 data=436751002",
    "logits_logp_backward n=11 v=185 row_temperature=3 scale=1000 entropy=1 g_entropy=1 softcap=1.5 dtype=f32 data=742597588",
    /* A small logit is off by the tanh of the row's largest. */
    "logits_logp_backward n=14 v=116 row_temperature=1 fused=1 softcap=30 dtype=f32 data=965042591",
    /* The target's tanh was the library's, the others' our own. */
    "logits_logp n=4 v=2 temperature=7.3856099916301796e-11 values=2 softcap=1.5 dtype=f32 data=658483978",
    /* exp(logp - old_logp) where logp has no digits before the point: any ratio is right, clipped or not. */
    "linear_cross_entropy n=4 v=2 shape=8 shift=-1000000000 loss=1 reduction=2 bias=f32 dtype=f32 data=685585571",
    "linear_cross_entropy n=7 v=2 shape=8 shift=-3.3895313892515355e+38 loss=1 reduction=1 grad_hidden=f32 bias=f32 dtype=f32 data=281790108",
    /* One entry has all the probability: derivatives are equal, and rounded alike in all rows. */
    "linear_cross_entropy n=53 v=2 shape=5 grad_bias=f32 bias=f32 dtype=f16 data=813763684",
    "linear_cross_entropy n=47 v=7 shape=5 grad_bias=f32 bias=f32 dtype=f16 data=813763684",
    /* A given lse is rounded by many powers: 2^x of what then lies above it was infinite, and that times 0, or less another one, NaN. */
    "linear_logp_backward n=24 row_temperature=3 upstream=3 grad_hidden=f32 d=74 data=25886864",
    "linear_logp_backward n=9 row_temperature=3 upstream=3 grad_hidden=f32 d=11 dtype=f32 data=25886864",
    "linear_logp_backward n=129 v=143 row_temperature=2 upstream=2 shape=11 shift=-100000 poison=2 give_logp=1 g_lse=1 g_entropy=1 accumulate=1 "
    "grad_hidden=f16 bias=f32 d=40 dtype=f32 data=218444739",
    /* The target's logp from such an lse: far above 0. */
    "logits_logp_backward n=11 temperature=2.1926998361707669e-09 dtype=f32 data=816626616",
    "logits_logp_backward temperature=3.2831406552278467e-05 shape=7 shift=-1000000000 dtype=f32 data=420349692",
    /* Beside one large term many small ones of the same size, all rounded alike. */
    "logits_logp n=10 v=256 temperature=2.5866343729637884 shape=5 softcap=30 dtype=f32 data=395851789",
    "logits_logp v=256 row_temperature=1 shape=5 values=1 softcap=1.5 dtype=f32 data=84295983",
    /* A given lse that fp32 has no room for. */
    "linear_logp_backward n=2 row_temperature=2 shape=7 shift=-3.4028234663852886e+38 grad_hidden=f32 bias=f32 dtype=f32 data=812823957",
    /* The slope of a softcap, which is off by itself, times a p that is off. */
    "linear_logp_backward n=3 v=15 row_temperature=3 likely=2 margin=74.670305373979858 softcap=1 grad_weight=f32 dtype=f32 data=31932209",
    /* A token weight of 0 times an infinite loss. */
    "linear_cross_entropy n=4 v=3 shape=5 loss=2 tokens=1 grad_hidden=f32 bias=f32 dtype=f32 data=308957883",
    /* A target among masks of the lowest number: the logarithm to base 2 is beyond fp32, that to base e is not. */
    "linear_logp n=9 v=5 shape=8 shift=-3.4028234663852886e+38 bias=f32 dtype=f32 data=1",
    /* A z-loss' derivative by lse is off by what lse is. */
    "linear_cross_entropy n=25 lse_square_scale=0.001 grad_hidden=f32 d=64 dtype=f32 data=226548029",
    /* Logits that a softcap makes equal in fp32, at the least temperature: any p is right, of a target whose p is 0 too. */
    "linear_cross_entropy n=55 v=13 row_temperature=3 scale=5 shape=1 shift=50 softcap=1.5 grad_hidden=f32 bias=f32 d=100 dtype=f32 data=292525388",
    /* A part of a sum is beyond fp32. */
    "linear_cross_entropy n=13 row_temperature=2 scale=10000 shape=7 shift=-1e+30 lse_square_scale=0.001 grad_weight=f32 bias=f32 d=13 dtype=f32 data=418609077",
    /* fp16 derivatives at the least temperature: the power of two that takes them into fp16's range was bounded above what was needed. */
    "linear_cross_entropy n=7 v=3 row_temperature=3 lse_square_scale=0.001 grad_weight=f32 dtype=f16 data=197059536",
    /* exp(reference_logp - logp), of a logp that logits of 1e30 leave no digits. */
    "linear_cross_entropy v=2 row_temperature=1 shape=8 shift=-1e+30 loss=2 grad_hidden=f32 bias=f32 dtype=f32 data=458238053",
    "linear_cross_entropy v=5 temperature=2.3763982036058455 shape=8 shift=-3.4028234663852886e+38 loss=2 grad_hidden=f32 bias=f32 dtype=f32 data=786166068",
    /* The entropy of ignored rows, in whose moment the likely target is, on a GPU. */
    "logits_logp n=9 v=5003 ignores=1 ignore_index=2501 likely=1 margin=15.559364684721961 entropy=1 data=917618556",
    /* The entropy of rows whose largest entry, not the target, stands far above the row's offset. */
    "linear_cross_entropy n=29 v=256 likely=1 margin=22.186042398426107 entropy=1 bias=f32 d=40 dtype=f16 data=920179357",
    "linear_cross_entropy n=13 v=144 temperature=2.8271522852746691 likely=1 margin=55.252877278645023 entropy=1 bias=f32 d=4 dtype=f32 data=330654901",
    "linear_logp n=2 v=118 scale=20 shape=8 shift=-10000 entropy=1 bias=f32 d=64 data=513014678",
    /* A target 2^116 times as likely as its others, whose saved exponentials stand far above their offset. */
    "linear_logp_backward n=4 v=436 temperature=0.24413194101272953 likely=2 margin=47.144509075164706 forward=1 grad_weight=f32 d=11 data=523292329",
    /* Beside one large term many small ones, in a segment beyond the softcap, where one sum had a lane's 64. */
    "logits_logp v=12996 temperature=1.8103085614877243 shape=5 softcap=30 data=926416048",
    "logits_logp n=2 v=4372 temperature=1.7779430425345071 shape=5 softcap=30 data=799043378",
    /* p is found to be 1, of logits that leave it no digits, where it should be 0, and is rounded once more. */
    "logits_logp_backward n=2 v=2 temperature=2.20692096088026 likely=1 margin=45.868153910171614 shape=7 shift=-1000000000 g_lse=1 dtype=f32 "
    "data=901426568",
    "linear_cross_entropy n=45 v=96 shards=5 ignored=70 ignores=1 scale=10000 shape=7 shift=-1000000000 dispatched=1 grad_weight=f32 bias=f32 d=64 "
    "data=105172578",
    "linear_logp_backward n=14 v=47 row_temperature=3 values=2 softcap=1.5 grad_weight=f32 d=14 data=783161312",
    "linear_logp_backward n=36 v=101 scale=1000 shape=7 shift=-1000000000 grad_weight=f32 bias=f32 d=55 data=112145355",
    /* An upstream gradient that is found as large as it may be takes fp16's range from the others; chunks of rows are added one by one. */
    "linear_cross_entropy n=24 v=6 row_temperature=1 likely=1 margin=15.499540212352825 shape=8 shift=-1000000000 loss=2 grad_hidden=f32 bias=f32 "
    "dtype=f16 data=566890381",
    "linear_cross_entropy n=1094 v=781 likely=2 margin=32.451060050334505 budget=0.3882298213750065 accumulate=2 grad_weight=f32 d=2 data=332767501",
    /* Rows of hidden times saved exponentials' factors that are beyond the range of bf16: NaN, where a bound of them would pass for a number. */
    "linear_cross_entropy n=24 v=7 row_temperature=3 scale=20 reduction=1 lse_square_scale=0.001 grad_weight=f32 data=924065204",
    "linear_cross_entropy n=13 v=3 row_temperature=3 scale=1000 lse_square_scale=0.001 grad_weight=f32 data=192174732",
    "linear_cross_entropy n=6 v=8 temperature=9.9999999999999995e-07 scale=100000 shape=11 shift=1e+30 lse_square_scale=0.001 grad_weight=f32 bias=f32 "
    "d=3 data=854578703",
    /* Such a row of an infinite upstream gradient is infinite. */
    "linear_logp_backward v=3 upstream=5 forward=1 grad_weight=f32 data=636136695",
    /* A row of a small hidden number, among others: its saved exponentials hardly differ, and are all rounded the same way. */
    "linear_cross_entropy n=191 v=440 temperature=4.8566461708599098 reduction=2 g_loss=1 grad_hidden=f32 data=161324762", NULL
};
