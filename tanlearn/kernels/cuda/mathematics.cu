// Normalization of CPTs and its adjoint: one block per CPT (k rows of `width` numbers), one thread per column.

extern "C" __global__ void normalize(
    long long n, const REAL* __restrict__ rho, const long long* __restrict__ n_values,
    const long long* __restrict__ offset, REAL* __restrict__ theta) {
    const long long g = blockIdx.x, begin = offset[g], k = n_values[g], width = (offset[g + 1] - begin) / k;
    for (long long j = threadIdx.x; j < width; j += blockDim.x) {
        const REAL* const column = rho + begin + j;
        REAL top = column[0], total = 0;
        for (long long v = 1; v < k; v++) top = max(top, column[v * width]);
        for (long long v = 0; v < k; v++) total += exp(column[v * width] - top);
        top += log(total);
        for (long long v = 0; v < k; v++) theta[begin + v * width + j] = column[v * width] - top;
    }
}

// d_rho may be d_theta itself, so neither is const or restrict.
extern "C" __global__ void normalize_adjoint(
    long long n, const REAL* __restrict__ theta, REAL* d_theta, const long long* __restrict__ groups,
    const long long* __restrict__ n_values, const long long* __restrict__ offset, REAL* d_rho) {
    const long long g = groups[blockIdx.x], begin = offset[g], k = n_values[g], width = (offset[g + 1] - begin) / k;
    for (long long j = begin + threadIdx.x; j < begin + width; j += blockDim.x) {
        REAL total = 0;
        for (long long v = 0; v < k; v++) total += d_theta[v * width + j];
        for (long long v = 0; v < k; v++) {
            const long long cell = v * width + j;
            d_rho[cell] = d_theta[cell] - exp(theta[cell]) * total;
        }
    }
}
