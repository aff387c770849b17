// Drawing of a structure with one kernel per equation, as reference for train.cu. Needs trees.cu.

extern "C" __global__ void gumbel(long long n, const float* __restrict__ uniform, float* __restrict__ noise) {
    const long long t = thread_number();
    if (t < n) noise[t] = gumbel_of(uniform[t]);
}

extern "C" __global__ void perturb(
    long long n, const double* __restrict__ phi, const float* __restrict__ noise, const long long* __restrict__ group,
    double* __restrict__ perturbed) {
    const long long f = warp_number();
    if (f >= n) return;
    const double total = log_total(phi, group[f], group[f + 1]);
    for (long long t = group[f] + lane_number(); t < group[f + 1]; t += WARP) perturbed[t] = phi[t] - total + noise[t];
}

extern "C" __global__ void draw_independent(
    long long n, const double* __restrict__ perturbed, const long long* __restrict__ group,
    long long* __restrict__ selected) {
    const long long f = warp_number();
    if (f >= n) return;
    const int best = best_of(perturbed, group[f], group[f + 1]);
    if (lane_number() == 0) selected[f] = best;
}

// One warp for the graph.
extern "C" __global__ void draw_arborescence(
    long long n, const double* __restrict__ perturbed, const long long* __restrict__ group,
    const long long* __restrict__ table_parent, int d, double* weight, int* work, long long* selected) {
    if (warp_number() > 0) return;
    const auto graph = make_graph(d, group, table_parent, 1, weight, work);
    start_graph(graph, perturbed, lane_number(), WARP);
    __syncwarp();
    for (int i = 0; i < d; i++) choose_edge(graph, i, i);
    maximum_arborescence(graph);
    for (int i = lane_number(); i < d; i += WARP) selected[i] = graph.edge[i];
}

extern "C" __global__ void structure_gradient(
    long long n, const double* __restrict__ perturbed, const long long* __restrict__ group, double temperature,
    const double* __restrict__ d_choice, double* __restrict__ d_phi) {
    const long long f = warp_number();
    if (f >= n) return;
    const SoftmaxSums sums = softmax_sums(perturbed, group[f], group[f + 1], temperature, d_choice);
    for (long long t = group[f] + lane_number(); t < group[f + 1]; t += WARP)
        d_phi[t] = structure_gradient_of(sums, perturbed[t], temperature, d_choice[t]);
}

extern "C" __global__ void size_penalty_gradient(
    long long n, const double* __restrict__ perturbed, const float* __restrict__ noise,
    const long long* __restrict__ group, const double* __restrict__ size_penalty, double* __restrict__ d_phi) {
    const long long f = warp_number();
    if (f >= n) return;
    const double mean = mean_size_penalty_of(perturbed, noise, group[f], group[f + 1], size_penalty);
    for (long long t = group[f] + lane_number(); t < group[f + 1]; t += WARP)
        d_phi[t] += size_penalty_gradient_of(perturbed[t], noise[t], size_penalty[t], mean);
}
