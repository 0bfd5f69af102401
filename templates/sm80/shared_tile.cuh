// A stage's two operand tiles in shared memory, swizzled, and their asynchronous copies from global memory.
//
// A line is a row of the operand as stored in memory, cut into 16-byte chunks. A chunk's place in the line is its index xor a function of the line (the
// swizzle), so that the eight lines that an ldmatrix reads, or the four steps of K that fp32 fragments read, are in different banks.
// Config: element, threads, block_rows, block_columns, block_inner, a_transposed, b_transposed, vector_bytes
template <class Element, int line_elements, int line_count> struct SharedTile {
    static constexpr int element_bytes = sizeof(Element);
    static constexpr int line_bytes = line_elements * element_bytes, chunks = line_bytes / 16;
    static constexpr int bytes = line_bytes * line_count;
    static_assert(line_bytes >= 64 && (chunks & (chunks - 1)) == 0, "lines of 64, 128, ... bytes");

    __device__ __forceinline__ static int place(int line, int chunk) {
        int mix = chunks == 4 ? (line >> 1) & 3 : element_bytes == 4 ? (line & 3) * 2 : line & 7;
        return line * line_bytes + ((chunk ^ mix) << 4);
    }
    // The same as place(base + line, chunk), for a base that is a multiple of 8, the period of `mix`: place(line, chunk) is then computed once for many
    // bases.
    __device__ __forceinline__ static int place(int base, int line, int chunk) { return base * line_bytes + place(line, chunk); }

    // Copies a tile. from: the tile's first element; lines, columns: the operand's extent from there on. What lies past it becomes 0.
    template <int threads, int vector_bytes> __device__ __forceinline__ static void load(u32 to, const Element *from, i64 stride, i64 lines, i64 columns) {
        constexpr int total = chunks * line_count;
        static_assert(total % threads == 0, "every thread copies as many chunks");
        int thread = thread_index_reread();
#pragma unroll
        for (int i = 0; i < total / threads; i++) {
            int index = i * threads + thread;
            int line = index / chunks, chunk = index % chunks;
            i64 left = line < lines ? (columns - chunk * (16 / element_bytes)) * element_bytes : 0;
            int valid = left <= 0 ? 0 : left < 16 ? (int)left : 16;
            // An address is computed and read only where it lies within the operand.
            const u8 *source = (const u8 *)(valid > 0 ? from + line * stride + chunk * (16 / element_bytes) : from);
            load_chunk<vector_bytes>(to + place(line, chunk), source, valid);
        }
    }

    template <int vector_bytes> __device__ __forceinline__ static void load_chunk(u32 to, const u8 *source, int valid) {
        if constexpr (vector_bytes >= 4) {
#pragma unroll
            for (int b = 0; b < 16; b += vector_bytes) {
                int part = min(max(valid - b, 0), vector_bytes);
                cp_async<vector_bytes>(to + b, part > 0 ? source + b : source, part);
            }
        } else {
            // Rows that are aligned to two bytes only: no asynchronous copy is that narrow.
            u32 words[4];
#pragma unroll
            for (int w = 0; w < 4; w++) {
                u32 low = 4 * w < valid ? *(const u16 *)(source + 4 * w) : 0;
                u32 high = 4 * w + 2 < valid ? *(const u16 *)(source + 4 * w + 2) : 0;
                words[w] = low | high << 16;
            }
            store_shared_vector(to, words);
        }
    }
};

// The two matrices of a product: A is stored [rows, inner] or, with a_transposed, [inner, rows]; B is stored [columns, inner] or, with b_transposed, [inner,
// columns]. Strides are in elements, from row to row as stored. Nothing is read outside the matrices: there the tiles are zero.
template <class Element> struct OperandMatrices {
    const Element *a, *b;
    i64 a_stride, b_stride;
    i64 rows;
    int columns, inner;
};

template <class Config> struct Operands {
    using element = typename Config::element;
    using Matrices = OperandMatrices<element>;
    static constexpr bool a_transposed = Config::a_transposed, b_transposed = Config::b_transposed;
    using TileA = SharedTile<element, a_transposed ? Config::block_rows : Config::block_inner, a_transposed ? Config::block_inner : Config::block_rows>;
    using TileB = SharedTile<element, b_transposed ? Config::block_columns : Config::block_inner, b_transposed ? Config::block_inner : Config::block_columns>;
    static constexpr int stage_bytes = TileA::bytes + TileB::bytes;
    static constexpr int chunks = Config::block_inner * (int)sizeof(element) / 16; // of the inner size

    // swaps: the tile's lines are steps of the inner size, instead of running along it. outer: the tile's first row (or column), of outer_size.
    template <class Tile, bool swaps>
    __device__ __forceinline__ static void load_tile(u32 to, const element *from, i64 stride, i64 outer, i64 outer_size, int k, int inner) {
        if constexpr (swaps) Tile::template load<Config::threads, Config::vector_bytes>(to, from + k * stride + outer, stride, inner - k, outer_size - outer);
        else Tile::template load<Config::threads, Config::vector_bytes>(to, from + outer * stride + k, stride, outer_size - outer, inner - k);
    }

    __device__ __forceinline__ static void load(u32 stage, const Matrices &of, int row, int column, int k) {
        load_tile<TileA, a_transposed>(stage, of.a, of.a_stride, row, of.rows, k, of.inner);
        load_tile<TileB, b_transposed>(stage + TileA::bytes, of.b, of.b_stride, column, of.columns, k, of.inner);
    }
};
