// CPT row of a sample.

#define MAX_PARENTS 2

// Return the row of sample k, from child value and then parent values; -1 if one is missing. Codes are (d, n_all).
__device__ __forceinline__ long long family_row(
    const CODE* __restrict__ codes, long long n_all, long long k, long long child,
    const long long* __restrict__ parents, const long long* __restrict__ n_states, long long missing) {
    long long row = codes[child * n_all + k];
    if (row == missing) return -1;
    for (int p = 0; p < MAX_PARENTS; p++) {
        if (parents[p] < 0) continue;
        const long long x = codes[parents[p] * n_all + k];
        if (x == missing) return -1;
        row = row * n_states[parents[p]] + x;
    }
    return row;
}
