// Scores, their transpose, and the choice gradient; CELL is the type of CPT entries, SUM that of scores.

// One thread per sample and class.
extern "C" __global__ void log_joint(
    long long n, const CODE* __restrict__ codes, long long n_all, long long first, const CELL* __restrict__ cells,
    const long long* __restrict__ child, const long long* __restrict__ parents, const long long* __restrict__ n_states,
    const long long* __restrict__ offset, const long long* __restrict__ selected, long long n_selected,
    long long missing, long long n_classes, SUM* __restrict__ scores) {
    const long long number = thread_number();
    if (number >= n) return;
    const long long k = number / n_classes, c = number % n_classes;
    SUM total = cells[c];
    for (long long s = 0; s < n_selected; s++) {
        const long long t = selected[s];
        const long long row =
            family_row(codes, n_all, first + k, child[t], parents + t * MAX_PARENTS, n_states, missing);
        total += cells[offset[t] + row * n_classes + c];
    }
    scores[number] = total;
}

struct Run {
    long long begin, end;
};

// Return the positions of a CPT's cells; the prior is table -1, with one row.
__device__ __forceinline__ Run cells_of(const long long* offset, long long t) {
    return t < 0 ? Run{0, offset[0]} : Run{offset[t], offset[t + 1]};
}

// Write the transpose of each run of `n_rows` rows to a chunk of `n_cells` numbers. One warp per chunk and selected
// table, the last one for the prior. Each lane has every 32nd class, so it adds in the order of the rows.
extern "C" __global__ void log_joint_adjoint(
    long long n, const CODE* __restrict__ codes, long long n_all, long long first, const SUM* __restrict__ d_scores,
    long long n_samples, long long n_classes, const long long* __restrict__ child,
    const long long* __restrict__ parents, const long long* __restrict__ n_states,
    const long long* __restrict__ offset, const long long* __restrict__ selected, long long n_selected,
    long long missing, long long n_rows, long long n_cells, CELL* __restrict__ chunks) {
    if (warp_number() >= n) return;
    const long long s = warp_number() % (n_selected + 1), chunk = warp_number() / (n_selected + 1);
    const long long t = s < n_selected ? selected[s] : -1;
    const Run run = cells_of(offset, t);
    CELL* const table = chunks + chunk * n_cells + run.begin;
    const long long size = run.end - run.begin, last = min((chunk + 1) * n_rows, n_samples);
    for (long long c = lane_number(); c < n_classes; c += WARP) {
        for (long long cell = c; cell < size; cell += n_classes) table[cell] = 0;
#pragma unroll 4
        for (long long k = chunk * n_rows; k < last; k++) {
            const long long row =
                t < 0 ? 0 : family_row(codes, n_all, first + k, child[t], parents + t * MAX_PARENTS, n_states, missing);
            table[row * n_classes + c] += d_scores[k * n_classes + c];
        }
    }
}

// Add the chunks in their order. One block per selected table, and the last block for the prior.
extern "C" __global__ void add_chunks(
    long long n, const CELL* __restrict__ chunks, long long n_chunks, long long n_cells,
    const long long* __restrict__ offset, const long long* __restrict__ selected, long long n_selected,
    CELL* __restrict__ d_cells) {
    const Run run = cells_of(offset, blockIdx.x < n_selected ? selected[blockIdx.x] : -1);
    for (long long cell = run.begin + threadIdx.x; cell < run.end; cell += blockDim.x) {
        CELL total = d_cells[cell];
        for (long long chunk = 0; chunk < n_chunks; chunk++) total += chunks[chunk * n_cells + cell];
        d_cells[cell] = total;
    }
}

// One warp per table; each lane processes every 32nd sample.
extern "C" __global__ void choice_gradient(
    long long n, const CODE* __restrict__ codes, long long n_all, long long first, const SUM* __restrict__ d_scores,
    long long n_samples, long long n_classes, const CELL* __restrict__ cells, const long long* __restrict__ child,
    const long long* __restrict__ parents, const long long* __restrict__ n_states,
    const long long* __restrict__ offset, long long missing, double* __restrict__ d_choice) {
    const long long t = warp_number();
    if (t >= n) return;
    double total = 0;
    for (long long k = lane_number(); k < n_samples; k += WARP) {
        const long long row =
            family_row(codes, n_all, first + k, child[t], parents + t * MAX_PARENTS, n_states, missing);
        const CELL* const values = cells + offset[t] + row * n_classes;
        for (long long c = 0; c < n_classes; c++) total += d_scores[k * n_classes + c] * values[c];
    }
    total = warp_sum(total);
    if (lane_number() == 0) d_choice[t] = total;
}
