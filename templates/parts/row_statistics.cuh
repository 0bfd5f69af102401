// The forward's epilogue: from accumulator tiles to each row's offset and sum of exponentials, the target's logit and the largest logit.
//
// A fragment is the accumulators that wgmma and mma.sync m16n8 both leave in a thread: of the warp's 16 rows it has rows lane / 4 and lane / 4 + 8, and of
// each 8 columns the two from 2 (lane % 4) on. fragment[4 j + 0, 1] belong to the first row, fragment[4 j + 2, 3] to the second.
//
// With z2 = z log2(e) / temperature, a row's sum is that of 2^(z2 - k). The offset k is an integer, so that rescaling by 2^(k - k') is exact. It is taken
// from the maximum of the first columns of a unit (a split's tiles of one row block) and then kept, so that tiles need no pass for their maximum. Terms far
// above k make the tile's sum leave the safe range; only then are the tile's maximum and sum computed again, from the accumulators, which are still there.
// Each row decides this by itself, so the other rows in the warp never change its bits. Terms far below k round to nothing beside the first columns' terms,
// whose sum is at least 1/2.
//
// The tensor cores truncate what they accumulate, so products come out a little too small. Config::correction restores their mean
// (gen/kernels/tile_config.lua), without an extra instruction: it is part of a factor that is applied anyway.
//
// The target's logit is stored for the combine and is no term of the sums: beside a likely target's term, the sum of the others would lose its digits.
//
// For the entropy, the moment, the sum of (z2 - k) 2^(z2 - k), is computed along with the sum. For label smoothing, the logits themselves are summed up too,
// each times the weight of its class.
//
// Config: fragment_columns, has_bias, bias_element, has_softcap, wants_argmax, wants_entropy, wants_logit_sum, has_class_weights,
// class_element, correction
constexpr float safe_sum = 1152921504606846976.0f; // 2^60: 2^67 such tiles stay finite

// softcap.cuh, emitted where Config::has_softcap.
template <class Config> struct Softcap;

template <class Config> struct RowStatistics {
    static constexpr int count = Config::fragment_columns / 2; // accumulators of a thread
    // The largest divisor of `count` that is at most `most` and a multiple of 4, the accumulators in each eight columns. most: a multiple of 4.
    __device__ __forceinline__ static constexpr int divisor_up_to(int most) {
        while (count % most != 0) most -= 4;
        return most;
    }
    static constexpr int first_look = count < 32 ? count : 32; // 64 columns give a good enough offset
    // What options do with each logit is done in chunks of accumulators. Each chunk has a branch, which keeps the compiler from interleaving it with the
    // next: unrolled over all accumulators, the code takes long to compile and more registers than there are.
    static constexpr bool by_chunks = Config::has_bias || Config::has_softcap || Config::wants_argmax || Config::wants_logit_sum;
    // Where chunks find the maximum or apply the softcap, they also mask the columns past the vocabulary; otherwise amend() masks them once.
    static constexpr bool masks_by_chunks = Config::has_softcap || Config::wants_argmax;
    static constexpr int unroll_chunk = by_chunks ? (count % 32 == 0 ? 32 : divisor_up_to(16)) : count;
    static constexpr int merge_floats = 4 + Config::wants_entropy + Config::wants_logit_sum;
    float offset[2], sum[2], moment[2], logit_sum[2]; // of the thread's two rows; all but offset only over this thread's columns
    int target[2];                                    // column in the vocabulary; -1: none here
    float best[2];
    int best_index[2];
    int first_row; // of the warp's 16

    __device__ __forceinline__ int row(int h) const { return first_row + lane_index_reread() / 4 + 8 * h; }

    // Four lanes share two rows. An even lane loads and stores for the first row, an odd one for the second, which halves the code. own_of_two: which of the
    // two rows this lane takes; for_both: exchanges loaded values with the neighbouring lane, so that both have those of both rows.
    __device__ __forceinline__ static int own_of_two() { return lane_index_reread() % 2; }
    template <class T> __device__ __forceinline__ static void for_both(T own, T (&rows)[2]) {
        T other = shuffle_xor(own, 1);
        bool is_first = own_of_two() == 0;
        rows[0] = is_first ? own : other;
        rows[1] = is_first ? other : own;
    }
    template <class T> __device__ __forceinline__ static T own_of(const T (&rows)[2]) { return own_of_two() == 0 ? rows[0] : rows[1]; }
    __device__ __forceinline__ static bool is_writer() { return lane_index_reread() % 4 < 2; }

    __device__ __forceinline__ void begin(const LinearLogpParams &params, int first) {
        load_targets(params, first);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            offset[h] = -infinity;
            sum[h] = 0;
            if constexpr (Config::wants_entropy) moment[h] = 0;
            if constexpr (Config::wants_logit_sum) logit_sum[h] = 0;
            best[h] = -infinity;
            best_index[h] = 0;
        }
    }

    __device__ __forceinline__ void load_targets(const LinearLogpParams &params, int first) {
        first_row = first;
        int r = row(own_of_two());
        i64 t = r < row_count<Config>(params) ? load_target(params.target, params.target_bytes, source_row<Config>(params, r)) : -1;
        for_both((u64)t < (u32)params.vocab ? (int)t : -1, target);
    }

    // log2(e) / temperature, times the correction where no bias or softcap has applied it. Loaded again for each tile rather than held in registers during
    // the products.
    __device__ __forceinline__ void load_scale(const LinearLogpParams &params, float (&scale)[2]) const {
        scale[0] = scale[1] = params.scale;
        if (params.row_temperature != nullptr) {
            int r = row(own_of_two());
            float temperature = r < row_count<Config>(params) ? row_temperature(params.row_temperature[source_row<Config>(params, r)]) : 1;
            for_both(params.scale / temperature, scale);
        }
        if constexpr (!Config::has_bias && !Config::has_softcap) {
            scale[0] *= Config::correction;
            scale[1] *= Config::correction;
        }
    }

    // Accumulator i's column relative to the thread's first one. Comparisons are of this compile-time constant with a distance: each column itself would take
    // an instruction and a register.
    __device__ __forceinline__ static constexpr int place(int i) { return (i / 4) * 8 + (i & 1); }
    __device__ __forceinline__ static int thread_column(int first_column) { return column_at(first_column, 2 * (lane_index() % 4)); }

    // Adds the bias to `some` accumulators from z on. Here and below, first_column is the warp's first column in them.
    template <int some = count> __device__ __forceinline__ static void add_bias(const LinearLogpParams &params, float *z, int first_column) {
        u32 at = (u32)first_column;
        // The compiler would split the addresses into several parts, for which there are no registers.
        if constexpr (sizeof(typename Config::bias_element) == 4 && !Config::wants_logit_sum) make_opaque(at);
        int column = thread_column((int)at), left = columns_left(column, params.vocab);
        auto bias = (const typename Config::bias_element *)params.bias + column;
#pragma unroll
        for (int i = 0; i < some; i += 4) {
#pragma unroll
            for (int c = 0; c < 2; c++) {
                float b = place(i + c) < left ? to_float(bias[place(i + c)]) : 0;
                z[i + c] = fmaf(z[i + c], Config::correction, b);
                z[i + 2 + c] = fmaf(z[i + 2 + c], Config::correction, b);
            }
            keep_order();
        }
    }

    // Sets columns past the vocabulary to -inf, so that they are neither the maximum nor a term of the sum.
    template <int some = count> __device__ __forceinline__ static void mask(const LinearLogpParams &params, float *z, int first_column) {
        if (columns_left(first_column, params.vocab) >= 2 * some) return;
        int left = columns_left(thread_column(first_column), params.vocab);
#pragma unroll
        for (int i = 0; i < some; i++)
            if (place(i) >= left) z[i] = -infinity;
    }

    // A new best is rare after the first tiles, so look for its column only where there is one.
    template <int some> __device__ __forceinline__ void find_best(const float *z, int first_column) {
        float largest[2];
        thread_maximum<some>(z, largest);
        if (!warp_any(largest[0] > best[0] || largest[1] > best[1])) return;
#pragma unroll
        for (int i = 0; i < some; i++) {
            int h = (i >> 1) & 1;
            if (z[i] > best[h]) {
                best[h] = z[i];
                best_index[h] = thread_column(first_column) + place(i);
            }
        }
    }

    template <int some> __device__ __forceinline__ static void thread_maximum(const float *z, float (&largest)[2]) {
        largest[0] = largest[1] = -infinity;
#pragma unroll
        for (int i = 0; i < some; i++) largest[(i >> 1) & 1] = fmaxf(largest[(i >> 1) & 1], z[i]);
    }

    // Whether a row's target lies between the thread's first and last columns of this tile, in this lane's columns or another's.
    __device__ __forceinline__ bool is_near_target(int first_column) const {
        int first = thread_column(first_column);
        return (unsigned)columns_left(first, target[0]) < Config::fragment_columns || (unsigned)columns_left(first, target[1]) < Config::fragment_columns;
    }

    // Raises the offset of each `wanted` row to at least the largest logit of the four lanes that share it, and rescales the row's sums.
    __device__ __forceinline__ void raise_offsets(float (&largest)[2], const float (&scale)[2], const bool (&wanted)[2]) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            largest[h] = fmaxf(largest[h], shuffle_xor(largest[h], 1));
            largest[h] = fmaxf(largest[h], shuffle_xor(largest[h], 2));
            float k = fmaxf(rintf(finite_product(largest[h], scale[h])), offset[h]);
            if (wanted[h] && k > offset[h]) {
                if constexpr (Config::wants_entropy) {
                    if (offset[h] != -infinity) moment[h] = move_moment(moment[h], sum[h], offset[h] - k);
                }
                if (offset[h] != -infinity) sum[h] *= exp2_approximate(offset[h] - k);
                offset[h] = k;
            }
        }
    }

    // The unit's first offsets, from its first columns.
    __device__ __forceinline__ void find_offset(const float (&z)[count], const float (&scale)[2]) {
        float largest[2];
        bool all[2] = {true, true};
        thread_maximum<first_look>(z, largest);
        raise_offsets(largest, scale, all);
    }

    __device__ __forceinline__ bool has_large() const { return is_large(offset[0]) || is_large(offset[1]); }
    // Whether some of the tile's columns are past the vocabulary and have not been masked in chunks.
    __device__ __forceinline__ static bool has_end(const LinearLogpParams &params, int first_column) {
        return !masks_by_chunks && columns_left(first_column, params.vocab) < 2 * count;
    }

    // Work that only few tiles need. Columns past the vocabulary become -inf. So does the target's logit, which is first stored for the combine (where
    // `stores`) with the scale that makes it z2. scales_large: in a row with a large offset, the logits are replaced by their z2 and the scale by 1.
    template <bool scales_large> __device__ __forceinline__ void amend(const LinearLogpParams &params, float (&z)[count], ValuesInMemory<count> &in_memory,
                                                                       float (&scale)[2], int first_column, bool stores) {
        if (!rarely(warp_any(has_end(params, first_column) || is_near_target(first_column) || (scales_large && has_large())))) return;
        in_memory.lay_down(z);
        int column = thread_column(first_column), left = masks_by_chunks ? 2 * count : columns_left(column, params.vocab);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int i = in_memory.place_of(h, columns_left(column, target[h]));
            if (i < 0) continue;
            if (stores) params.target_logit[row(h)] = make_float2(in_memory.value[i], scale[h]);
            in_memory.value[i] = -infinity;
        }
        bool large[2] = {scales_large && is_large(offset[0]), scales_large && is_large(offset[1])};
        if (left < 2 * count || large[0] || large[1]) {
            in_memory.visit([&](float &value, int j, int place) {
                if (place >= left) value = -infinity;
                if (large[j / 2]) value = finite_product(value, scale[j / 2]);
            });
        }
#pragma unroll
        for (int h = 0; h < 2; h++)
            if (large[h]) scale[h] = 1;
        in_memory.take_up(z);
    }

    // Sums of a tile's terms 2^x and of their parts of the moment, in four accumulators of each: two for each of the thread's rows.
    struct TileSums {
        float part[4] = {0, 0, 0, 0}, moment_part[4] = {0, 0, 0, 0};

        __device__ __forceinline__ float add(int j, float x) {
            float power = exp2_approximate(x);
            part[j] += power;
            if constexpr (Config::wants_entropy) {
                // Below -126 2^x is 0, and x may be -inf.
                moment_part[j] = fmaf(power, fmaxf(x, -126.0f), moment_part[j]);
                pin_value(moment_part[j]);
            }
            return power;
        }
        __device__ __forceinline__ float sum(int h) const { return part[2 * h] + part[2 * h + 1]; }
        __device__ __forceinline__ float moment(int h) const { return moment_part[2 * h] + moment_part[2 * h + 1]; }
    };

    // Without an offset all logits so far are -inf or NaN: with k = 0 each term 2^z2 is then 0 or NaN, as the sum must be.
    __device__ __forceinline__ float offset_of_terms(int h) const { return offset[h] == -infinity ? 0 : offset[h]; }

    __device__ __forceinline__ void add_exponentials(const float (&z)[count], const float (&scale)[2], TileSums &sums) const {
        float k[2] = {offset_of_terms(0), offset_of_terms(1)};
#pragma unroll
        for (int i = 0; i < count; i++) sums.add(i & 3, fmaf(z[i], scale[(i >> 1) & 1], -k[(i >> 1) & 1]));
    }

    // Computes the tile's sums again, after raising the offsets of the `wanted` rows to the tile's largest logit. In a row with a large offset, z2 is rounded
    // before the offset is subtracted (row_offset.cuh).
    __device__ __forceinline__ void add_anew(const float (&z)[count], ValuesInMemory<count> &in_memory, const float (&scale)[2], const bool (&wanted)[2],
                                             TileSums &sums) {
        in_memory.lay_down(z);
        float largest[2] = {-infinity, -infinity};
        in_memory.visit([&](float &value, int j, int) { largest[j / 2] = fmaxf(largest[j / 2], value); });
        raise_offsets(largest, scale, wanted);
        float k[2] = {offset_of_terms(0), offset_of_terms(1)};
        bool large[2] = {is_large(offset[0]), is_large(offset[1])};
        sums = TileSums();
        in_memory.visit([&](float &value, int j, int) {
            int h = j / 2;
            sums.add(j, large[h] ? fmaf(finite_product(value, scale[h]), 1.0f, -k[h]) : fmaf(value, scale[h], -k[h]));
        });
    }

    __device__ __forceinline__ void add_tile(const TileSums &sums) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            sum[h] += sums.sum(h);
            if constexpr (Config::wants_entropy) moment[h] += sums.moment(h);
        }
    }

    template <int some> __device__ __forceinline__ void add_logits(const LinearLogpParams &params, const float *z, const float (&scale)[2], int first_column) {
        int v = thread_column(first_column), left = columns_left(v, params.vocab);
#pragma unroll
        for (int i = 0; i < some; i++) {
            int h = (i >> 1) & 1;
            if (place(i) >= left) continue;
            float z2 = z[i] * scale[h];
            if constexpr (Config::has_class_weights) z2 *= to_float(((const typename Config::class_element *)params.class_weights)[v + place(i)]);
            logit_sum[h] += z2;
            pin_value(logit_sum[h]);
        }
    }

    // Applies bias, mask and softcap to `some` logits, and takes from them the requested outputs other than the sums of exponentials.
    template <int some> __device__ __forceinline__ void transform(const LinearLogpParams &params, float *z, const float (&scale)[2], int first_column) {
        if constexpr (Config::has_bias) add_bias<some>(params, z, first_column);
        // With a softcap only the branch in mask() matters, which keeps a chunk from being interleaved with the next: 1.5 % of the forward at the power
        // limit.
        if constexpr (masks_by_chunks) mask<some>(params, z, first_column);
        if constexpr (Config::wants_argmax) find_best<some>(z, first_column);
        if constexpr (Config::has_softcap) {
            Softcap<Config>::of_products(params).template change<some>(z);
            mask<some>(params, z, first_column); // again: softcap(-inf) is finite
        }
        if constexpr (Config::wants_logit_sum) add_logits<some>(params, z, scale, first_column);
    }

    // Adds a tile to the rows' statistics. z: hidden . weight^T of this warp's rows and the columns from first_column on; overwritten. first: this is the
    // unit's first tile.
    __device__ __forceinline__ void absorb(const LinearLogpParams &params, float (&z)[count], int first_column, bool first) {
        float scale[2];
        load_scale(params, scale);
#pragma unroll
        for (int i = 0; i < count; i += unroll_chunk) transform<unroll_chunk>(params, &z[i], scale, column_at(first_column, place(i)));
        ValuesInMemory<count> in_memory;
        amend<false>(params, z, in_memory, scale, first_column, true);
        if (first) find_offset(z, scale);
        TileSums sums;
        add_exponentials(z, scale, sums);
        // Rows without an offset or with a large one are computed again too. As this is tested only after the sums, it costs the other rows nothing.
        bool wanted[2];
#pragma unroll
        for (int h = 0; h < 2; h++) wanted[h] = quad_any(!(sums.sum(h) < safe_sum)) || !(fabsf(offset[h]) < large_offset);
        if (rarely(warp_any(wanted[0] || wanted[1]))) add_anew(z, in_memory, scale, wanted, sums);
        add_tile(sums);
    }

    // Adds up the statistics of the four lanes that share a row. All four then have the totals.
    __device__ __forceinline__ void finish() {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            sum[h] += shuffle_xor(sum[h], 1);
            sum[h] += shuffle_xor(sum[h], 2);
            if constexpr (Config::wants_entropy) {
                moment[h] += shuffle_xor(moment[h], 1);
                moment[h] += shuffle_xor(moment[h], 2);
            }
            if constexpr (Config::wants_logit_sum) {
                logit_sum[h] += shuffle_xor(logit_sum[h], 1);
                logit_sum[h] += shuffle_xor(logit_sum[h], 2);
            }
            if constexpr (Config::wants_argmax) {
#pragma unroll
                for (int lane_mask = 1; lane_mask <= 2; lane_mask *= 2) {
                    float other = shuffle_xor(best[h], lane_mask);
                    int other_index = shuffle_xor(best_index[h], lane_mask);
                    merge_best(h, other, other_index);
                }
            }
        }
    }

    __device__ __forceinline__ void merge_best(int h, float other, int other_index) {
        if (other > best[h] || (other == best[h] && other_index < best_index[h])) {
            best[h] = other;
            best_index[h] = other_index;
        }
    }

    // Writes the rows' statistics to to[0 .. 15], for a warp that has other columns of the same rows and merges them.
    __device__ __forceinline__ void leave(float (*to)[merge_floats]) const {
        if (lane_index() % 4 != 0) return;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float *entry = to[lane_index() / 4 + 8 * h];
            entry[0] = offset[h];
            entry[1] = sum[h];
            if constexpr (Config::wants_argmax) {
                entry[2] = best[h];
                entry[3] = __int_as_float(best_index[h]);
            }
            if constexpr (Config::wants_entropy) entry[4] = moment[h];
            if constexpr (Config::wants_logit_sum) entry[merge_floats - 1] = logit_sum[h];
        }
    }

    __device__ __forceinline__ void merge(const float (*from)[merge_floats]) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float *entry = from[lane_index() / 4 + 8 * h];
            float k = fmaxf(offset[h], entry[0]);
            float mine = offset[h] == -infinity ? sum[h] : sum[h] * exp2_approximate(offset[h] - k);
            float theirs = entry[0] == -infinity ? entry[1] : entry[1] * exp2_approximate(entry[0] - k);
            if constexpr (Config::wants_entropy) {
                float moved = offset[h] == -infinity ? moment[h] : move_moment(moment[h], sum[h], offset[h] - k);
                moment[h] = moved + (entry[0] == -infinity ? entry[4] : move_moment(entry[4], entry[1], entry[0] - k));
            }
            if constexpr (Config::wants_logit_sum) logit_sum[h] += entry[merge_floats - 1];
            offset[h] = k;
            sum[h] = mine + theirs;
            if constexpr (Config::wants_argmax) merge_best(h, entry[2], __float_as_int(entry[3]));
        }
    }

    __device__ __forceinline__ void store(const LinearLogpParams &params, int split) const {
        int r = row(own_of_two());
        if (!is_writer() || r >= row_count<Config>(params)) return;
        i64 at = ((i64)r * params.split.splits + split) * 2;
        *(float2 *)(params.partial + at) = make_float2(own_of(offset), own_of(sum));
        if constexpr (Config::wants_entropy) params.moment[at / 2] = own_of(moment);
        if constexpr (Config::wants_logit_sum) params.logit_sums[at / 2] = own_of(logit_sum);
        if constexpr (Config::wants_argmax) *(float2 *)(params.best + at) = make_float2(own_of(best), __int_as_float(own_of(best_index)));
    }
};
