// Counts of classes, families and pairs: one block per table or, for integer weights, per table and run of rows.

#define BLOCK 256
#define SHARED_CELLS 4096  // 32 kB, so at least three blocks share a multiprocessor

// Add the weight of each row to its cell, -1 for none. Integers may be added in any order.
template <class Cell>
__device__ __forceinline__ void add_rows(
    long long* __restrict__ table, long long n_cells, const long long* __restrict__ weight, long long first,
    long long last, const Cell& cell_of) {
    unsigned long long* const total = (unsigned long long*)table;
    if (n_cells > SHARED_CELLS) {
        for (long long k = first + threadIdx.x; k < last; k += BLOCK) {
            const long long cell = cell_of(k);
            if (cell >= 0) atomicAdd(total + cell, (unsigned long long)weight[k]);
        }
        return;
    }
    // Two halves, because shared memory adds 32 bits at a time; the high half is rarely written.
    __shared__ unsigned low[SHARED_CELLS], high[SHARED_CELLS];
    for (long long cell = threadIdx.x; cell < n_cells; cell += BLOCK) low[cell] = high[cell] = 0;
    __syncthreads();
    for (long long k = first + threadIdx.x; k < last; k += BLOCK) {
        const long long cell = cell_of(k);
        if (cell < 0) continue;
        const unsigned below = (unsigned)weight[k];
        const unsigned before = atomicAdd(low + cell, below);
        const unsigned above = (unsigned)(weight[k] >> 32) + (before + below < before);
        if (above) atomicAdd(high + cell, above);
    }
    __syncthreads();
    for (long long cell = threadIdx.x; cell < n_cells; cell += BLOCK) {
        const unsigned long long counted = (unsigned long long)high[cell] << 32 | low[cell];
        if (counted) atomicAdd(total + cell, counted);
    }
}

// Add real weights in the order of the rows, as on the CPU: one thread of one warp adds all weights of a cell. A warp
// visits only the rows of its own cells, so that seven of eight warps spend no instructions on a row.
template <class T>
__device__ __forceinline__ void add_ordered(T* __restrict__ table, const long long* cells, const T* weights) {
    // Neighboring cells belong to different warps: the classes of a frequent value are neighbors.
    const int n_warps = BLOCK / WARP, warp = threadIdx.x / WARP, lane = lane_number();
    for (int first = 0; first < BLOCK; first += WARP) {
        const long long own = cells[first + lane];
        unsigned rows = __ballot_sync(ALL_LANES, own >= 0 && own % n_warps == warp);
        for (; rows; rows &= rows - 1) {
            const int i = first + __ffs(rows) - 1;
            if (cells[i] / n_warps % WARP == lane) table[cells[i]] += weights[i];
        }
    }
}

// Copy tables that fit into shared memory there, add all weights, and copy the tables back.
template <class T, class Cell>
__device__ __forceinline__ void add_rows(
    T* __restrict__ table, long long n_cells, const T* __restrict__ weight, long long first, long long last,
    const Cell& cell_of) {
    __shared__ T total[SHARED_CELLS];
    __shared__ long long cells[BLOCK];
    __shared__ T weights[BLOCK];
    const bool is_small = n_cells <= SHARED_CELLS;
    for (long long cell = threadIdx.x; is_small && cell < n_cells; cell += BLOCK) total[cell] = table[cell];
    for (long long start = first; start < last; start += BLOCK) {
        const long long k = start + threadIdx.x;
        cells[threadIdx.x] = k < last ? cell_of(k) : -1;
        weights[threadIdx.x] = k < last ? weight[k] : T(0);
        __syncthreads();
        if (is_small)
            add_ordered(total, cells, weights);
        else
            add_ordered(table, cells, weights);
        __syncthreads();
    }
    for (long long cell = threadIdx.x; is_small && cell < n_cells; cell += BLOCK) table[cell] = total[cell];
}

// One block per `n_rows` rows.
extern "C" __global__ void count_classes(
    long long n_blocks, const long long* __restrict__ y, const WEIGHT* __restrict__ weight, long long n,
    long long n_classes, long long n_rows, WEIGHT* __restrict__ counts) {
    const long long first = blockIdx.x * n_rows;
    add_rows(counts, n_classes, weight, first, min(first + n_rows, n), [&](long long k) { return y[k]; });
}

// One block per table and `n_rows` rows.
extern "C" __global__ void count_families(
    long long n_blocks, const CODE* __restrict__ codes, const long long* __restrict__ y,
    const WEIGHT* __restrict__ weight, long long n, const long long* __restrict__ child, long long n_tables,
    const long long* __restrict__ parents, const long long* __restrict__ n_states,
    const long long* __restrict__ offset, long long missing, long long n_rows, WEIGHT* __restrict__ counts) {
    const long long t = blockIdx.x % n_tables, first = blockIdx.x / n_tables * n_rows, n_classes = offset[0];
    const auto cell_of = [&](long long k) {
        const long long row = family_row(codes, n, k, child[t], parents + t * MAX_PARENTS, n_states, missing);
        return row < 0 ? -1 : row * n_classes + y[k];
    };
    add_rows(counts + offset[t], offset[t + 1] - offset[t], weight, first, min(first + n_rows, n), cell_of);
}

// One block per other feature and `n_rows` rows.
extern "C" __global__ void count_pairs(
    long long n_blocks, const CODE* __restrict__ codes, const long long* __restrict__ y,
    const WEIGHT* __restrict__ weight, long long n, long long i, const long long* __restrict__ others,
    long long n_others, const long long* __restrict__ n_states, long long n_classes,
    const long long* __restrict__ pair_offset, long long missing, long long n_rows, WEIGHT* __restrict__ counts) {
    const long long j = others[blockIdx.x % n_others], first = blockIdx.x / n_others * n_rows;
    const long long begin = pair_offset[i * (i - 1) / 2 + j], end = pair_offset[i * (i - 1) / 2 + j + 1];
    const long long width = n_states[j];
    const auto cell_of = [&](long long k) {
        const long long x = codes[i * n + k], z = codes[j * n + k];
        return x == missing || z == missing ? -1 : (x * width + z) * n_classes + y[k];
    };
    add_rows(counts + begin, end - begin, weight, first, min(first + n_rows, n), cell_of);
}
