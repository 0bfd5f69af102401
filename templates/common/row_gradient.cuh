// What linear_logp's backward needs of one row that counts: dz[v] = level w[v] + 2^x (spread + tilt x) + [v = target] direct with x = scale z[v] - offset,
// an integer; by the target's logit, where is_whole, level w[v] + direct alone.
//
// Before that is known, a forward hands over in its place what it knows of the row: in offset and spread the log2 of its sum, which is theirs, and
// in direct logp.
// KEEP IN STEP: row gradients (runtime/ops/linear_logp_backward_params.h).
// Config: none
struct RowGradient {
    float scale, offset, spread, tilt, direct;
    int target;
    float level;
    int is_whole;
};
static_assert(sizeof(RowGradient) == 32, "runtime/ops/linear_logp_backward_params.h disagrees");
