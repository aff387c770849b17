// CPT rows of averaged one-dependence estimators for each sample: one thread per sample.

extern "C" __global__ void pick_rows(
    long long n_samples, long long n_features, const CODE* __restrict__ codes, const long long* __restrict__ start,
    const unsigned char* __restrict__ is_parent, long long missing, long long n_classes, long long* parents,
    long long* children, long long* n_parents) {
    const long long k = thread_number();
    if (k >= n_samples) return;
    const long long constant = start[n_features];
    long long n_found = 0;
    for (long long i = 0; i < n_features; i++) {
        const long long x = codes[i * n_samples + k];
        const long long row = x == missing ? constant : start[i] + x;
        children[k * n_features + i] = row * n_classes;
        parents[i * n_samples + k] = is_parent[row] ? row : -1;
        n_found += is_parent[row] != 0;
    }
    parents[n_features * n_samples + k] = n_found == 0 ? constant : -1;
    n_parents[k] = n_found;
}
