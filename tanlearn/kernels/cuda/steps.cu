// Adam steps and rounding with one kernel per equation, as reference for train.cu. Needs sweep.cu.

extern "C" __global__ void adam_step(
    long long n, REAL* __restrict__ x, const REAL* __restrict__ d_x, double step_size, double beta1, double beta2,
    double epsilon, REAL* __restrict__ m, REAL* __restrict__ v) {
    const long long j = thread_number();
    if (j >= n) return;
    x[j] -= adam_change(d_x[j], (REAL)step_size, (REAL)beta1, (REAL)beta2, (REAL)epsilon, m[j], v[j]);
}

extern "C" __global__ void round_cells(
    long long n, const REAL* __restrict__ theta, REAL step, REAL most, REAL* __restrict__ result) {
    const long long j = thread_number();
    if (j < n) result[j] = rounded(theta[j], step, most);
}

// One warp for one CPT, here and in sweep_drawn.
extern "C" __global__ void sweep_undrawn(
    long long n, const REAL* __restrict__ direction, REAL* __restrict__ theta, int width, int n_values, REAL distance) {
    if (warp_number() < n) move_along<4>(direction, theta, width, n_values, distance, lane_number(), WARP);
}

extern "C" __global__ void sweep_drawn(
    long long n, const REAL* __restrict__ d_theta, REAL* __restrict__ direction, REAL* __restrict__ v,
    REAL* __restrict__ theta, int width, int n_values, int n_undrawn, REAL step_size, REAL beta1, REAL beta2,
    REAL epsilon) {
    const Adam adam{step_size, beta1, beta2, epsilon};
    if (warp_number() < n)
        step_table(d_theta, direction, v, theta, width, n_values, n_undrawn, adam, lane_number(), WARP);
}
