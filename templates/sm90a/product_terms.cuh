// The targets' terms of a product's tiles (target_terms.cuh) on Hopper, without waiting for memory behind each tile: a warp of the producer's
// looks them up while the tile before is multiplied, and where out's rows are vocabulary entries the consumers begin to load what the first
// two of their lists bring before they multiply.
//
// full[b]: a tile's terms have been found. empty[b]: all consumers are done with them. Each thread arrives for itself, as race checkers want it.
// Config: element, block_rows, block_vocab, fragment_columns, cluster, consumer_groups, terms_along

template <class Config> struct TermsAhead {
    static constexpr bool is_down = Config::terms_along == terms_down;
    static constexpr int lists = is_down ? Config::block_rows / 16 : 1, width = is_down ? 16 : Config::block_vocab; // a warp's own, or all of the tile
    static constexpr int kept = 32;     // terms of a tile; what there is more of is read by the consumers
    static constexpr int together = 2;  // rows that are loaded at once
    using element = typename Config::element;

    struct Term {
        int target, row;
        float derivative;
    };
    struct Shared {
        u64 full[2], empty[2];
        int bound[2][lists + 1]; // list l is [bound[l], bound[l + 1]) of the ordered terms
        Term term[2][kept];      // the first, from bound[0] on
    };

    __device__ __forceinline__ static void init(Shared &shared) {
        for (int b = 0; b < 2; b++) {
            mbarrier_init(shared_address(&shared.full[b]), 32);
            mbarrier_init(shared_address(&shared.empty[b]), Config::consumer_groups * 128);
        }
        mbarrier_init_fence();
    }

    // ---- the warp that looks up ----

    // count: of all terms.
    __device__ __forceinline__ static void look_up(Shared &shared, const MatrixProductParams &params, ProductTiles<Config> tiles, int rank, int count) {
        int row_block, column_tile;
        for (int turn = 0; tiles.next(row_block, column_tile); turn++) {
            int b = turn % 2, row = (row_block * Config::cluster + rank) * Config::block_rows, column = column_tile * Config::block_vocab;
            mbarrier_wait(shared_address(&shared.empty[b]), turn / 2 % 2 ^ 1);
            find(shared.bound[b], shared.term[b], params, column_at(params.first_target, is_down ? row : column), count);
            mbarrier_arrive(shared_address(&shared.full[b]));
        }
    }

    __device__ __forceinline__ static void find(int (&bound)[lists + 1], Term (&term)[kept], const MatrixProductParams &params, int first, int count) {
        int lane = lane_index(), begin = first_term(params.terms, count, first), before = 0, found = 32;
        for (int at = begin; found == 32; at += 32) {
            int mine = at + lane;
            TargetTerm own = mine < count ? params.terms[mine] : TargetTerm{column_at(first, lists * width), 0, 0, 0};
            if (at == begin && is_before(own.target, column_at(first, lists * width))) term[lane] = Term{own.target, own.row, params.targets[own.at].derivative};
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
    Vector ahead[together]; // of each lane, as many neighbours of a row of hidden

    __device__ __forceinline__ TermsAhead(Shared &shared, const MatrixProductParams &params) : shared(shared), params(params) {}

    __device__ __forceinline__ int list() const { return is_down ? warp_index() : 0; }
    __device__ __forceinline__ int begin() const { return shared.bound[turn % 2][list()]; }
    __device__ __forceinline__ int end() const { return shared.bound[turn % 2][list() + 1]; }

    __device__ __forceinline__ Term term(int at) const {
        int of_tile = at - shared.bound[turn % 2][0];
        if (of_tile < kept) return shared.term[turn % 2][of_tile];
        TargetTerm own = params.terms[at];
        return Term{own.target, own.row, params.targets[own.at].derivative};
    }

    __device__ __forceinline__ void load(int at, int column) {
        int c = lane_index() * vector_elements<element>;
#pragma unroll
        for (int i = 0; i < together; i++) {
            int valid = at + i < end() && c < Config::fragment_columns ? params.columns - column - c : 0;
            ahead[i] = valid <= 0 ? Vector{{0, 0, 0, 0}} : load_anywhere((const element *)params.others + term(at + i).row * params.others_stride + column + c, valid);
        }
    }

    // Before the tile's products. column: the tile's first.
    __device__ __forceinline__ void start(int column) {
        mbarrier_wait(shared_address(&shared.full[turn % 2]), turn / 2 % 2);
        if constexpr (is_down) load(begin(), column);
    }

    // Behind them. buffer: the warp's, from which the copy engine writes: [together][fragment_columns] elements at least.
    __device__ __forceinline__ void add(const TargetTerms<Config> &tile, float (&d)[TargetTerms<Config>::count], void *buffer) {
        if constexpr (is_down) add_down(tile, d, (u32 *)buffer);
        else add_across(tile, d);
        mbarrier_arrive(shared_address(&shared.empty[turn % 2]));
        turn++;
    }

    // A row of hidden goes through the buffer from lanes that have neighbours to those that have its row of the tile.
    __device__ __forceinline__ void add_down(const TargetTerms<Config> &tile, float (&d)[TargetTerms<Config>::count], u32 *buffer) {
        constexpr int row_words = Config::fragment_columns / 2;
        int last = end(), line = lane_index() / 4, first = params.first_target + tile.row;
        for (int at = begin(); at < last; at += together) {
            if (at > begin()) load(at, tile.column);
            else if (lane_index() == 0) bulk_wait_read<0>(); // the engine has read what the buffer held
            __syncwarp();
#pragma unroll
            for (int i = 0; i < together; i++)
                if (lane_index() * 4 < row_words) *(Vector *)(buffer + i * row_words + lane_index() * 4) = ahead[i];
            __syncwarp();
            for (int i = 0; i < together && at + i < last; i++) {
                Term own = term(at + i);
                const u32 *from = buffer + i * row_words + lane_index() % 4;
                if (own.target - first == line) TargetTerms<Config>::template add_pairs<0>(d, own.derivative * tile.factor, from);
                if (own.target - first == line + 8) TargetTerms<Config>::template add_pairs<1>(d, own.derivative * tile.factor, from);
            }
        }
    }

    __device__ __forceinline__ void add_across(const TargetTerms<Config> &tile, float (&d)[TargetTerms<Config>::count]) const {
        constexpr int group = 8; // loads in flight
        int last = end(), first = params.first_target + tile.column;
        for (int at = begin(); at < last; at += group) {
            float x[group][2];
#pragma unroll
            for (int i = 0; i < group; i++) tile.pick(at + i < last ? term(at + i).row : -1, x[i]);
#pragma unroll
            for (int i = 0; i < group; i++) {
                if (at + i >= last) break;
                Term own = term(at + i);
                tile.put(d, own.target - first, own.derivative * tile.factor, x[i]);
            }
        }
    }
};

// Where nothing is looked up.
template <class Config> struct OwnTerms {
    struct Shared {};
    __device__ __forceinline__ OwnTerms(Shared &, const MatrixProductParams &) {}
    __device__ __forceinline__ static void init(Shared &) {}
    __device__ __forceinline__ static void look_up(Shared &, const MatrixProductParams &, const ProductTiles<Config> &, int, int) {}
    __device__ __forceinline__ void start(int) {}
    __device__ __forceinline__ void add(const TargetTerms<Config> &tile, float (&d)[TargetTerms<Config>::count], void *) { tile.add(d); }
};

template <class Config, bool of_vocabulary> struct ChooseTerms { using Type = OwnTerms<Config>; };
template <class Config> struct ChooseTerms<Config, true> { using Type = TermsAhead<Config>; };
template <class Config>
using ProductTerms = typename ChooseTerms<Config, Config::terms_along == terms_down || Config::terms_along == terms_across>::Type;
