// Joint probabilities of averaged one-dependence estimators. One thread adds all terms of a sample and class, in the
// order of the CPU. Neighboring threads have neighboring classes, which are adjacent in memory.

#define TERMS 16  // number of terms that are summed in float before they are added to the larger sum, as on the CPU

extern "C" __global__ void log_sum_joint(
    long long n_scores, long long n_estimators, long long n_samples, long long n_features, long long n_classes,
    const long long* __restrict__ parents, const long long* __restrict__ children,
    const float* __restrict__ log_parent, const float* __restrict__ log_child, long long width, double* scores) {
    const long long number = thread_number();
    if (number >= n_scores) return;
    const long long k = number / n_classes, c = number % n_classes;
    const long long* values = children + k * n_features;
    double top = MINUS_INFINITY, total = 0.0;
    for (long long e = 0; e < n_estimators; e++) {
        const long long parent = parents[e * n_samples + k];
        if (parent < 0) continue;
        const float* table = log_child + parent * width + c;
        float whole = log_parent[parent * n_classes + c];
        for (long long first = 0; first < n_features; first += TERMS) {
            const long long last = min(first + TERMS, n_features);
            float part = 0.0f;
            for (long long j = first; j < last; j++) part += table[values[j]];
            whole += part;
        }
        const double term = whole;
        if (term > top) {
            total = total * exp(top - term) + 1.0;
            top = term;
        } else if (term > MINUS_INFINITY) {
            total += exp(term - top);
        }
    }
    scores[number] = total > 0.0 ? top + log(total) : top;
}
