// Losses of one row of scores with their gradients, computed by a warp: lane l holds the classes l, l + 32, and so on.
//
// The equations are those of kernels/losses.py. N_CLASSES is known at compile time, so a lane's classes are in
// registers. Registers beyond the last class are never used. More than four classes per lane are in local memory, and
// their loops are not unrolled. With 128 classes, score_batches needs 40 registers in float32 and 66 in float64. With
// unrolled loops, it would need 56 and 92 registers for 256 classes, and 149 in float32 for 1,000 classes, so that
// fewer warps would share a multiprocessor.

#define PER_LANE ((N_CLASSES + WARP - 1) / WARP)
constexpr int UNROLLED = PER_LANE <= 4 ? PER_LANE : 1;

enum { JOINT_NLL, CONDITIONAL_NLL, HINGE_MARGIN, MARGIN, HYBRID, SOFT_HYBRID };

#define LOWEST_EXPONENT REAL(-43.0)

__device__ __forceinline__ int class_of(int p) { return lane_number() + p * WARP; }

// Return the score of the label, in all lanes.
__device__ __forceinline__ REAL score_of(const REAL (&score)[PER_LANE], int label) {
    if (UNROLLED < PER_LANE) return __shfl_sync(ALL_LANES, score[label / WARP], label % WARP);
    REAL found = 0;
#pragma unroll UNROLLED
    for (int p = 0; p < PER_LANE; p++) {  // score[label / WARP] would move the scores to local memory
        const REAL theirs = __shfl_sync(ALL_LANES, score[p], label % WARP);
        if (label / WARP == p) found = theirs;
    }
    return found;
}

__device__ __forceinline__ REAL soft_margin(
    const REAL (&score)[PER_LANE], int label, int left_out, REAL eta, REAL enough, REAL (&weight)[PER_LANE]) {
    REAL top = REAL(MINUS_INFINITY);
#pragma unroll UNROLLED
    for (int p = 0; p < PER_LANE; p++) {
        const int c = class_of(p);
        if (c < N_CLASSES && c != left_out && score[p] > top) top = score[p];
    }
    top = warp_max(top);
    const REAL own = score_of(score, label);
    const REAL difference = own == top ? REAL(0) : own - top;
    const REAL bound = difference - log(REAL(N_CLASSES - 1)) / eta;
    if (bound >= enough) {
#pragma unroll UNROLLED
        for (int p = 0; p < PER_LANE; p++) weight[p] = 0;
        return bound;
    }
    REAL total = 0;
#pragma unroll UNROLLED
    for (int p = 0; p < PER_LANE; p++) {
        const int c = class_of(p);
        weight[p] = 0;
        if (c < N_CLASSES && c != left_out) {
            const REAL exponent = score[p] == top ? REAL(0) : eta * (score[p] - top);
            if (!(exponent <= LOWEST_EXPONENT)) weight[p] = exp(exponent);  // nan stays nan
        }
        total += weight[p];
    }
    total = warp_sum(total);
#pragma unroll UNROLLED
    for (int p = 0; p < PER_LANE; p++) weight[p] /= total;
    return difference - log(total) / eta;
}

__device__ __forceinline__ void add_to_label(REAL (&d_score)[PER_LANE], int label, REAL value) {
#pragma unroll UNROLLED
    for (int p = 0; p < PER_LANE; p++)
        if (class_of(p) == label) d_score[p] += value;
}

__device__ __forceinline__ REAL joint_nll(const REAL (&score)[PER_LANE], int label, REAL (&d_score)[PER_LANE]) {
#pragma unroll UNROLLED
    for (int p = 0; p < PER_LANE; p++) d_score[p] = class_of(p) == label ? REAL(-1) : REAL(0);
    return -score_of(score, label);
}

// The label's own weight is 0 in the margins, so adding to it sets it.
__device__ __forceinline__ REAL hinge_margin(
    const REAL (&score)[PER_LANE], int label, REAL gamma, REAL eta, REAL (&d_score)[PER_LANE]) {
    const REAL value = gamma - soft_margin(score, label, label, eta, gamma, d_score);
    if (value <= 0) {
#pragma unroll UNROLLED
        for (int p = 0; p < PER_LANE; p++) d_score[p] = 0;
        return 0;
    }
    add_to_label(d_score, label, REAL(-1));
    return value;
}

__device__ __forceinline__ REAL margin(
    const REAL (&score)[PER_LANE], int label, REAL scale, REAL kappa, REAL eta, REAL (&d_score)[PER_LANE]) {
    const REAL position = scale * soft_margin(score, label, label, eta, REAL(-MINUS_INFINITY), d_score);
    const REAL below = 1 - position;
    REAL value, slope;
    if (below <= 0) {
        value = -1;
        slope = 0;
    } else if (below < kappa + kappa) {
        slope = scale * below / (kappa + kappa);
        value = below * below / (kappa + kappa + kappa + kappa) - 1;
    } else {
        slope = scale;
        value = -position - kappa;
    }
#pragma unroll UNROLLED
    for (int p = 0; p < PER_LANE; p++) d_score[p] *= slope;
    add_to_label(d_score, label, -slope);
    return value;
}

__device__ __forceinline__ REAL soft_hybrid(
    const REAL (&score)[PER_LANE], int label, REAL trade_off, REAL gamma, REAL eta, REAL (&d_score)[PER_LANE]) {
    const REAL d = soft_margin(score, label, label, eta, REAL(-MINUS_INFINITY), d_score);
    const REAL shortfall = eta * (gamma - d);
    const REAL small = exp(shortfall > 0 ? -shortfall : shortfall);  // the exponential that cannot overflow
    const REAL slope = trade_off * (shortfall > 0 ? REAL(1) : small) / (1 + small);
#pragma unroll UNROLLED
    for (int p = 0; p < PER_LANE; p++) d_score[p] *= slope;
    add_to_label(d_score, label, -slope - 1);
    return trade_off * ((shortfall < 0 ? REAL(0) : shortfall) + log1p(small)) / eta - score_of(score, label);
}

// Return the loss of one row, in all lanes, and write its gradient.
__device__ __forceinline__ REAL row_loss(
    int kind, const REAL (&score)[PER_LANE], int label, REAL p0, REAL p1, REAL p2, REAL (&d_score)[PER_LANE]) {
    if (kind == JOINT_NLL) return joint_nll(score, label, d_score);
    if (kind == CONDITIONAL_NLL) {
        const REAL value = -soft_margin(score, label, -1, REAL(1), REAL(-MINUS_INFINITY), d_score);
        add_to_label(d_score, label, REAL(-1));
        return value;
    }
    if (kind == HINGE_MARGIN) return hinge_margin(score, label, p1, p2, d_score);
    if (kind == MARGIN) return margin(score, label, p0, p1, p2, d_score);
    if (p0 == 0) return joint_nll(score, label, d_score);  // 0 times an infinite hinge would be nan
    if (kind == SOFT_HYBRID) return soft_hybrid(score, label, p0, p1, p2, d_score);
    const REAL value = p0 * hinge_margin(score, label, p1, p2, d_score) - score_of(score, label);
#pragma unroll UNROLLED
    for (int p = 0; p < PER_LANE; p++) d_score[p] *= p0;
    add_to_label(d_score, label, REAL(-1));
    return value;
}

extern "C" __global__ void loss_rows(
    long long n, int kind, const REAL* __restrict__ parameters, const REAL* __restrict__ scores,
    const long long* __restrict__ y, REAL* __restrict__ loss, REAL* __restrict__ d_scores) {
    const long long row = warp_number();
    if (row >= n) return;
    REAL score[PER_LANE], d_score[PER_LANE];
#pragma unroll UNROLLED
    for (int p = 0; p < PER_LANE; p++) {
        const int c = class_of(p);
        score[p] = c < N_CLASSES ? scores[row * N_CLASSES + c] : REAL(0);
    }
    const REAL value = row_loss(kind, score, (int)y[row], parameters[0], parameters[1], parameters[2], d_score);
    if (lane_number() == 0) loss[row] = value;
#pragma unroll UNROLLED
    for (int p = 0; p < PER_LANE; p++) {
        const int c = class_of(p);
        if (c < N_CLASSES) d_scores[row * N_CLASSES + c] = d_score[p];
    }
}
