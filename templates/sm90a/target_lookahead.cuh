// The targets' contribution to a product's tiles on Hopper, where out's rows or columns are vocabulary entries (target_contribution.cuh), without a wait for
// memory after each tile.
//
// Producer side: a warp of the producer's warpgroup looks up the targets of a tile in the sorted list while the previous tile is multiplied, and writes them
// to one of two buffers in shared memory. Consumer side: where out's rows are vocabulary entries, a consumer warp begins to load the rows of hidden of its
// first two targets before it multiplies a tile. In the ping-pong schedule it does so after the products, during the other warpgroup's.
//
// full[b]: the targets of buffer b's tile have been found. empty[b]: all consumers are done with them. Each thread arrives for itself, because race checkers
// require that.
// Config: element, block_rows, block_columns, fragment_columns, consumer_groups, targets_in_rows, turns
template <class Config> struct ProductTargets<Config, true> {
    static constexpr bool in_rows = Config::targets_in_rows;
    // A tile's targets are in lists: one for each 16 rows, or a single one for all columns. width: the vocabulary entries of a list.
    static constexpr int lists = in_rows ? Config::block_rows / 16 : 1, width = in_rows ? 16 : Config::block_columns;
    static constexpr int kept = 32;    // targets of a tile in a buffer; the consumers read further ones from memory
    static constexpr int together = 2; // rows of hidden that are loaded at once
    static constexpr int row_words = Config::fragment_columns / 2;
    using element = typename Config::element;

    struct Target {
        int target, row;
        float derivative;
    };
    struct alignas(1024) Shared : ProductShared<Config> {
        u64 full[2], empty[2];
        int bound[2][lists + 1]; // list l is [bound[l], bound[l + 1]) of the sorted targets
        Target target[2][kept];  // the tile's first targets, from bound[0] on
    };

    __device__ __forceinline__ static void init(Shared &shared) {
#pragma unroll 1
        for (int b = 0; b < 2; b++) {
            mbarrier_init(shared_address(&shared.full[b]), 32);
            mbarrier_init(shared_address(&shared.empty[b]), Config::consumer_groups * 128);
        }
        mbarrier_init_fence();
    }

    // ---- the producer's warp that looks targets up ----

    // count: the number of all targets.
    template <class Tiles> __device__ __forceinline__ static void look_up(Shared &shared, const MatrixProductParams &params, Tiles tiles, int rank, int count) {
        Unit unit;
        for (int turn = 0; tiles.next(unit); turn++) {
            int b = turn % 2, row = block_row<Config>(unit, rank), column = unit.first_tile * Config::block_columns;
            mbarrier_wait(shared_address(&shared.empty[b]), turn / 2 % 2 ^ 1);
            find(shared.bound[b], shared.target[b], params, column_at(params.first_target, in_rows ? row : column), count);
            mbarrier_arrive(shared_address(&shared.full[b]));
        }
    }

    // Finds the bounds and the first targets of the tile whose first row (or column) is vocabulary entry `first`.
    __device__ __forceinline__ static void find(int (&bound)[lists + 1], Target (&target)[kept], const MatrixProductParams &params, int first, int count) {
        int lane = lane_index(), begin = first_sorted(params.sorted_targets, count, first), before = 0, found = 32;
        for (int at = begin; found == 32; at += 32) {
            int mine = at + lane;
            SortedTarget own = mine < count ? params.sorted_targets[mine] : SortedTarget{column_at(first, lists * width), 0, 0, 0};
            if (at == begin && is_before(own.target, column_at(first, lists * width)))
                target[lane] = Target{own.target, own.row, params.targets[own.at].derivative};
            for (int list = 0; list <= lists; list++) {
                found = __popc(warp_ballot(is_before(own.target, column_at(first, list * width))));
                if (lane == list) before += found;
            }
        }
        if (lane <= lists) bound[lane] = begin + before;
    }

    // ---- a consumer warp ----

    Shared &shared;
    const MatrixProductParams &params;
    int turn = 0;
    Vector ahead[together]; // a lane's neighbouring elements of each of the rows of hidden that are being loaded

    __device__ __forceinline__ ProductTargets(Shared &shared, const MatrixProductParams &params) : shared(shared), params(params) {}

    // In the ping-pong schedule each warpgroup has the tiles of one buffer, and the hand-over's state tells how many tiles it has had (turns.cuh).
    __device__ __forceinline__ int buffer() const { return Config::turns > 1 ? thread_index_reread() / 128 : turn % 2; }
    __device__ __forceinline__ int phase() const {
        if constexpr (Config::turns > 1) return Turns<Config>::tiles_before(shared.stages) % 2;
        else return turn / 2 % 2;
    }
    // row: the warp's first row.
    __device__ __forceinline__ static int list(int row) { return in_rows ? row / 16 % lists : 0; }
    __device__ __forceinline__ int begin(int row) const { return shared.bound[buffer()][list(row)]; }
    __device__ __forceinline__ int end(int row) const { return shared.bound[buffer()][list(row) + 1]; }

    __device__ __forceinline__ Target target(int at) const {
        int of_tile = at - shared.bound[buffer()][0];
        if (of_tile < kept) return shared.target[buffer()][of_tile];
        SortedTarget own = params.sorted_targets[at];
        return Target{own.target, own.row, params.targets[own.at].derivative};
    }

    // Loads a vector from any address, element by element, as few tensors need it: in a loop that begins with the last element and shifts the vector.
    __device__ __forceinline__ static void load_some(const element *from, int valid, Vector &to) {
        static_assert(sizeof(element) == 2, "two elements a word");
#pragma unroll 1
        for (int j = vector_elements<element> - 1; j >= 0; j--) {
            u32 next = j < valid ? from[j].bits : 0;
#pragma unroll
            for (int w = 3; w > 0; w--) to.words[w] = to.words[w] << 16 | to.words[w - 1] >> 16;
            to.words[0] = to.words[0] << 16 | next;
        }
    }

    // Begins to load the rows of hidden of the targets from `at` on, which are below `end`.
    __device__ __forceinline__ void load(int at, int end, int column) {
        int c = lane_index() * vector_elements<element>;
#pragma unroll
        for (int i = 0; i < together; i++) {
            int valid = at + i < end && c < Config::fragment_columns ? params.columns - column - c : 0;
            ahead[i] = Vector{{0, 0, 0, 0}};
            if (valid <= 0) continue;
            const element *from = (const element *)params.others + target(at + i).row * params.others_stride + column + c;
            if (valid >= vector_elements<element> && (u64)from % 16 == 0) ahead[i] = *(const Vector *)from;
            else load_some(from, valid, ahead[i]);
        }
    }

    // Called before the tile's products or, in the ping-pong schedule, after them, during the other warpgroup's. row: the warp's first row; column: the
    // tile's first column.
    __device__ __forceinline__ void start(int row, int column) {
        mbarrier_wait(shared_address(&shared.full[buffer()]), phase());
        if constexpr (in_rows) load(begin(row), end(row), column);
    }

    // Called after the tile's products: adds the contribution. buffer: the warp's buffers for TMA stores, used as scratch: at least
    // [together][fragment_columns] elements.
    template <int count> __device__ __forceinline__ void add(float (&d)[count], int rows, int targets, int row, int column, void *buffer) {
        if constexpr (Config::turns > 1) start(row, column);
        TargetContribution<Config> tile(params, rows, targets, row, column);
        if constexpr (in_rows) add_in_rows(tile, d, (u32 *)buffer);
        else add_in_columns(tile, d);
        mbarrier_arrive(shared_address(&shared.empty[this->buffer()]));
        turn++;
    }

    // Each row of hidden goes through the buffer, from the lanes that have loaded neighbouring elements to the lanes that have the target's row of the
    // fragment.
    __device__ __forceinline__ void add_in_rows(const TargetContribution<Config> &tile, float (&d)[TargetContribution<Config>::count], u32 *buffer) {
        int begin = this->begin(tile.row), end = this->end(tile.row), line = lane_index() / 4, first = params.first_target + tile.row;
#pragma unroll 1
        for (int at = begin; at < end; at++) {
            int i = (at - begin) % together;
            if (i == 0) {
                if (at > begin) load(at, end, tile.column);
                else if (lane_index() == 0) bulk_wait_read<0>(); // TMA has read what the buffer held
                leave(buffer);
            }
            Target own = target(at);
            int distance = own.target - first - line;
            const u32 *from = buffer + i * row_words + lane_index() % 4;
            if (distance == 0) TargetContribution<Config>::template add_pairs<0>(d, own.derivative * tile.factor, from);
            if (distance == 8) TargetContribution<Config>::template add_pairs<1>(d, own.derivative * tile.factor, from);
        }
    }

    // Writes the loaded rows of hidden to the buffer.
    __device__ __forceinline__ void leave(u32 *buffer) const {
        __syncwarp();
#pragma unroll
        for (int i = 0; i < together; i++)
            if (lane_index() * 4 < row_words) *(Vector *)(buffer + i * row_words + lane_index() * 4) = ahead[i];
        __syncwarp();
    }

    __device__ __forceinline__ void add_in_columns(const TargetContribution<Config> &tile, float (&d)[TargetContribution<Config>::count]) const {
        constexpr int group = Config::fragment_columns > 128 && Config::turns > 1 ? 6 : 8; // loads in flight, as many as there are registers for
        int last = end(0), first = params.first_target + tile.column;
        for (int at = begin(0); at < last; at += group) {
            float x[group][2];
#pragma unroll
            for (int i = 0; i < group; i++) tile.pick(at + i < last ? target(at + i).row : -1, x[i]);
#pragma unroll 1 // put() is much code: emit it once
            for (int i = 0; i < min(group, last - at); i++) {
                Target own = target(at + i);
                tile.put(d, own.target - first, own.derivative * tile.factor, x[0]);
#pragma unroll
                for (int j = 1; j < group; j++) x[j - 1][0] = x[j][0], x[j - 1][1] = x[j][1];
            }
        }
    }
};
