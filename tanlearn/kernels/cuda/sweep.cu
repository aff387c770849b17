// Tables of normalised log-probabilities on their way: rounding, and steps of Adam.
//
// A warp takes a table, k rows of `width` numbers; its lanes take every 32nd column, so that it reads and writes whole
// lines of memory. The formulas, and why the direction is kept in place of the first moment, are in kernels/sweep.py.

#define SLOWEST REAL(1e-25)
#define LOWEST REAL(-86.0)

struct Adam {
    REAL step_size, beta1, beta2, epsilon;
};

// Round to a multiple of `step`, up to `most` of them below zero; without a step, do not.
__device__ __forceinline__ REAL rounded(REAL theta, REAL step, REAL most) {
    if (step == 0) return theta;
    const REAL magnitude = rint(theta * (-1 / step));
    return -(magnitude < most ? (magnitude > 0 ? magnitude : REAL(0)) : most) * step;
}

__device__ __forceinline__ REAL probability_of(REAL theta) { return exp(theta < LOWEST ? LOWEST : theta); }

// Go some way along the direction, and normalise.
__device__ __forceinline__ void go(
    const REAL* __restrict__ direction, REAL* __restrict__ theta, int width, int n_values, REAL way) {
    for (int j = lane_number(); j < width; j += WARP) {
        REAL total = 0;
#pragma unroll 8
        for (int x = 0; x < n_values; x++) total += probability_of(theta[x * width + j] - way * direction[x * width + j]);
        const REAL shift = log(total);
#pragma unroll 8
        for (int x = 0; x < n_values; x++)
            theta[x * width + j] = theta[x * width + j] - way * direction[x * width + j] - shift;
    }
}

// Move one number along its gradient: direction and second moment are written, the result is not normalised.
__device__ __forceinline__ REAL move(
    REAL theta, REAL d_rho, const Adam& adam, REAL decay1, REAL decay2, REAL& direction, REAL& v) {
    const REAL moment = decay1 * direction * (sqrt(v) + adam.epsilon) + (1 - adam.beta1) * d_rho;
    const REAL square = decay2 * v + (1 - adam.beta2) * d_rho * d_rho;
    const REAL ahead = moment / (sqrt(square) + adam.epsilon);
    direction = fabs(ahead) < SLOWEST ? REAL(0) : ahead;
    v = square < REAL(SMALLEST_MOMENT) ? REAL(0) : square;
    return theta - adam.step_size * ahead;
}

// Return a power by squaring: for whole exponents up to some hundreds, far fewer instructions than pow().
__device__ __forceinline__ REAL power(double base, int n) {
    double result = 1;
    for (; n > 0; n /= 2) {
        if (n % 2) result *= base;
        base *= base;
    }
    return result;
}

// Pull the gradient back through the normalisation, take a step, and normalise.
__device__ __forceinline__ void step_table(
    const REAL* __restrict__ d_theta, REAL* __restrict__ direction, REAL* __restrict__ v, REAL* __restrict__ theta,
    int width, int n_values, int n_undrawn, const Adam& adam) {
    const REAL decay1 = power(adam.beta1, n_undrawn + 1);
    const REAL decay2 = power(adam.beta2, n_undrawn + 1);
    for (int j = lane_number(); j < width; j += WARP) {
        REAL d_total = 0, total = 0;
#pragma unroll 8
        for (int x = 0; x < n_values; x++) d_total += d_theta[x * width + j];
#pragma unroll 4
        for (int x = 0; x < n_values; x++) {
            const int at = x * width + j;
            const REAL before = theta[at], d_rho = d_theta[at] - probability_of(before) * d_total;
            REAL ahead = direction[at], square = v[at];
            const REAL moved = move(before, d_rho, adam, decay1, decay2, ahead, square);
            total += probability_of(moved);
            direction[at] = ahead;
            v[at] = square;
            theta[at] = moved;
        }
        const REAL shift = log(total);
#pragma unroll 8
        for (int x = 0; x < n_values; x++) theta[x * width + j] -= shift;
    }
}
