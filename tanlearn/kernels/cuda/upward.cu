// Marginalization of missing features in a forest in one upward pass: the CUDA version of kernels/upward.py, which
// explains the rules.
//
// A warp processes one sample after another, and its lanes share the cells of a row. Each lane always has the same
// cells of beliefs and products. Only sums over the values of a feature read cells of other lanes and need a barrier.
// Lanes read 32 features at once and exchange them by shuffles, so there is one wait for memory instead of 32.

#define IN_LOGS (-1)

// Return the logarithm of a belief, the product of `count` probabilities.
__device__ __forceinline__ double as_logarithm(double belief, int count) {
    return count == IN_LOGS ? belief : count > 0 ? log(belief) : 0.0;
}

// Return a belief with one more factor. With `in_logs`, the factor and the result are logarithms.
__device__ __forceinline__ double joined(double belief, int count, double factor, bool in_logs) {
    if (in_logs) return as_logarithm(belief, count) + factor;
    return count == 0 ? factor : belief * factor;
}

// Return the sum over a feature's values of CPT entry times belief, for one cell of their rows.
__device__ double sum_values(const double* probabilities, const double* belief, int count, int n_values, int n_classes,
                             int width, int cell, int c) {
    double total = 0.0;
    for (int s = 0; s < n_values; s++)
        total += joined(belief[s * n_classes + c], count, probabilities[(long long)s * width + cell], false);
    return total;
}

// Return the logarithm of that sum, computed with logarithms.
__device__ double log_sum_values(const double* cells, const double* belief, int count, int n_values, int n_classes,
                                 int width, int cell, int c) {
    double top = MINUS_INFINITY, total = 0.0;
    for (int s = 0; s < n_values; s++)
        top = max(top, joined(belief[s * n_classes + c], count, cells[(long long)s * width + cell], true));
    if (top == MINUS_INFINITY) return top;
    for (int s = 0; s < n_values; s++)
        total += exp(joined(belief[s * n_classes + c], count, cells[(long long)s * width + cell], true) - top);
    return top + log(total);
}

// Add the logarithm of a product to the log joint, and reset the product to 1.
__device__ void take_logarithm(int n_classes, double* product, double* scores) {
    for (int c = lane_number(); c < n_classes; c += WARP) {
        scores[c] += log(product[c]);
        product[c] = 1.0;
    }
}

// Write the log prior plus the cells of a sample's observed families, added in the order of the features.
__device__ void add_complete(long long n_samples, int n_features, int n_classes, const CODE* __restrict__ codes,
                             const double* __restrict__ cells, const long long* __restrict__ parent,
                             const long long* __restrict__ n_states, const long long* __restrict__ offset, int missing,
                             double* scores) {
    for (int first_class = 0; first_class < n_classes; first_class += WARP) {
        const int c = first_class + lane_number();
        const bool is_class = c < n_classes;
        double total = is_class ? cells[c] : 0.0;
        for (int first = 0; first < n_features; first += WARP) {
            const int i = first + lane_number();
            long long mine = -1;
            if (i < n_features) {
                const long long j = parent[i];
                const int x = codes[i * n_samples], z = j >= 0 ? codes[j * n_samples] : 0;
                const long long n_above = j >= 0 ? n_states[j] : 1;
                if (x != missing && (j < 0 || z != missing)) mine = offset[i] + (x * n_above + z) * n_classes;
            }
            for (int s = 0; s < WARP; s++) {
                const long long start = __shfl_sync(ALL_LANES, mine, s);
                total += start >= 0 && is_class ? cells[start + c] : 0.0;
            }
        }
        if (is_class) scores[c] = total;
    }
}

extern "C" __global__ void log_joint_upward(
    long long n_workers, long long n_samples, long long n_features, long long n_all_classes,
    const CODE* __restrict__ all_codes, const double* __restrict__ cells, const double* __restrict__ probabilities,
    const long long* __restrict__ parent, const long long* __restrict__ upward, const long long* __restrict__ n_states,
    const long long* __restrict__ offset, const long long* __restrict__ start, long long is_normalized,
    long long most_factors, long long missing_code, long long* all_counts, double* all_beliefs, double* all_products,
    double* all_scores) {
    const long long worker = warp_number();
    if (worker >= n_workers) return;
    const int lane = lane_number(), d = (int)n_features, n_classes = (int)n_all_classes;
    const int most = (int)most_factors, missing = (int)missing_code;
    long long* count = all_counts + worker * d;  // after initialization, used by the first lane only
    double* belief = all_beliefs + worker * start[d];
    double* product = all_products + worker * n_classes;
    for (int i = lane; i < d; i += WARP) count[i] = 0;
    for (int c = lane; c < n_classes; c += WARP) product[c] = 1.0;
    for (long long k = worker; k < n_samples; k += n_workers) {
        const CODE* codes = all_codes + k;
        double* scores = all_scores + k * n_classes;
        add_complete(n_samples, d, n_classes, codes, cells, parent, n_states, offset, missing, scores);
        __syncwarp();  // all lanes have finished the previous sample
        int n_factors = 0;
        for (int first = 0; first < d; first += WARP) {
            int mine = -1, my_parent = -1, my_x = 0, my_z = 0;
            if (first + lane < d) {
                mine = (int)upward[first + lane];
                my_parent = (int)parent[mine];
                my_x = codes[mine * n_samples];
                my_z = my_parent >= 0 ? codes[my_parent * n_samples] : 0;
                if (my_x != missing && (my_parent < 0 || my_z != missing)) mine = -1;
            }
            for (int s = 0; s < WARP; s++) {
                const int i = __shfl_sync(ALL_LANES, mine, s);
                if (i < 0) continue;
                const int j = __shfl_sync(ALL_LANES, my_parent, s);
                const int x = __shfl_sync(ALL_LANES, my_x, s), z = __shfl_sync(ALL_LANES, my_z, s);
                const bool to_parent = j >= 0 && z == missing;
                const int width = (j >= 0 ? (int)n_states[j] : 1) * n_classes;
                double* above = to_parent ? belief + start[j] : nullptr;
                const int n_above = __shfl_sync(ALL_LANES, lane == 0 && to_parent ? (int)count[j] : 0, 0);
                if (x != missing) {
                    const long long row = offset[i] + (long long)x * width;
                    const bool in_logs = n_above == IN_LOGS || n_above + 1 > most;
                    const double* values = in_logs ? cells + row : probabilities + row;
                    for (int a = lane; a < width; a += WARP) above[a] = joined(above[a], n_above, values[a], in_logs);
                    if (lane == 0) count[j] = in_logs ? IN_LOGS : n_above + 1;
                    continue;
                }
                const int n_own = __shfl_sync(ALL_LANES, lane == 0 ? (int)count[i] : 0, 0);
                if (n_own == 0 && is_normalized) continue;
                const int used = n_own >= 0 && n_own < most ? n_own + 1 : IN_LOGS;
                const bool in_logs = used == IN_LOGS || n_above == IN_LOGS || n_above + used > most;
                if (!to_parent && used != IN_LOGS && n_factors + used > most) {
                    take_logarithm(n_classes, product, scores);
                    n_factors = 0;
                }
                const int row = to_parent ? 0 : z * n_classes;
                const double* own = belief + start[i];
                __syncwarp();  // the belief is complete
                for (int a = lane; a < (to_parent ? width : n_classes); a += WARP) {
                    const int c = a % n_classes;
                    double message;
                    if (used == IN_LOGS) {
                        message = log_sum_values(cells + offset[i], own, n_own, (int)n_states[i], n_classes, width,
                                                 row + a, c);
                    } else {
                        message = sum_values(probabilities + offset[i], own, n_own, (int)n_states[i], n_classes, width,
                                             row + a, c);
                        if (to_parent && in_logs) message = log(message);
                    }
                    if (to_parent) above[a] = joined(above[a], n_above, message, in_logs);
                    else if (used == IN_LOGS) scores[c] += message;
                    else product[c] *= message;
                }
                if (!to_parent && used != IN_LOGS) n_factors += used;
                if (lane == 0) {
                    count[i] = 0;
                    if (to_parent) count[j] = in_logs ? IN_LOGS : n_above + used;
                }
            }
        }
        if (n_factors > 0) take_logarithm(n_classes, product, scores);
    }
}
