// Rounding and Adam steps of one CPT of normalized log probabilities.
//
// `n_threads` threads process a CPT of k rows of `width` numbers, each every n_threads-th column, so whole lines of
// memory are read and written. kernels/sweep.py explains the equations, and why the direction is stored instead of the
// first moment.

#define SLOWEST REAL(1e-25)
#define LOWEST REAL(-86.0)

struct Adam {
    REAL step_size, beta1, beta2, epsilon;
};

// Round to a multiple of `step`, from -most * step to 0. A step of 0 means no rounding.
__device__ __forceinline__ REAL rounded(REAL theta, REAL step, REAL most) {
    if (step == 0) return theta;
    const REAL magnitude = rint(theta * (-1 / step));
    return -(magnitude < most ? (magnitude > 0 ? magnitude : REAL(0)) : most) * step;
}

__device__ __forceinline__ REAL probability_of(REAL theta) { return exp(theta < LOWEST ? LOWEST : theta); }

// Number of rows that Adam steps load before the first of them is used; more would spill registers.
#define STEP_ROWS 2

// Move a CPT by `distance` along its direction, and normalize it. ROWS rows are loaded before the first of them is
// used, so CPTs with at most as many wait for memory once.
template <int ROWS>
__device__ __forceinline__ void move_along(
    const REAL* __restrict__ direction, REAL* __restrict__ theta, int width, int n_values, REAL distance, int thread,
    int n_threads) {
    for (int j = thread; j < width; j += n_threads) {
        REAL moved[ROWS], total = 0;
        for (int x = 0; x < n_values; x += ROWS) {
#pragma unroll
            for (int q = 0; q < ROWS; q++)
                if (x + q < n_values) {
                    const int at = (x + q) * width + j;
                    moved[q] = theta[at] - distance * direction[at];
                }
#pragma unroll
            for (int q = 0; q < ROWS; q++)
                if (x + q < n_values) total += probability_of(moved[q]);
        }
        const REAL shift = log(total);
        for (int x = 0; x < n_values; x += ROWS) {
#pragma unroll
            for (int q = 0; q < ROWS; q++)
                if (x + q < n_values && n_values > ROWS) {  // if there are few rows, all of them are still in registers
                    const int at = (x + q) * width + j;
                    moved[q] = theta[at] - distance * direction[at];
                }
#pragma unroll
            for (int q = 0; q < ROWS; q++)
                if (x + q < n_values) theta[(x + q) * width + j] = moved[q] - shift;
        }
    }
}

// Return one parameter after an Adam step, not normalized; update its direction and its second moment.
__device__ __forceinline__ REAL adam_moved(
    REAL theta, REAL d_rho, const Adam& adam, REAL decay1, REAL decay2, REAL& direction, REAL& v) {
    const REAL moment = decay1 * direction * (sqrt(v) + adam.epsilon) + (1 - adam.beta1) * d_rho;
    const REAL square = decay2 * v + (1 - adam.beta2) * d_rho * d_rho;
    const REAL ahead = moment / (sqrt(square) + adam.epsilon);
    direction = fabs(ahead) < SLOWEST ? REAL(0) : ahead;
    v = square < REAL(SMALLEST_MOMENT) ? REAL(0) : square;
    return theta - adam.step_size * ahead;
}

// Return an integer power by squaring: for exponents up to some hundreds, far fewer instructions than pow().
__device__ __forceinline__ REAL power(double base, int n) {
    double result = 1;
    for (; n > 0; n /= 2) {
        if (n % 2) result *= base;
        base *= base;
    }
    return result;
}

// Apply the adjoint of the normalization to the gradient, take an Adam step, and normalize.
__device__ __forceinline__ void step_table(
    const REAL* __restrict__ d_theta, REAL* __restrict__ direction, REAL* __restrict__ v, REAL* __restrict__ theta,
    int width, int n_values, int n_undrawn, const Adam& adam, int thread, int n_threads) {
    const REAL decay1 = power(adam.beta1, n_undrawn + 1);
    const REAL decay2 = power(adam.beta2, n_undrawn + 1);
    for (int j = thread; j < width; j += n_threads) {
        REAL d_total = 0, total = 0;
#pragma unroll 4
        for (int x = 0; x < n_values; x++) d_total += d_theta[x * width + j];
        for (int x = 0; x < n_values; x += STEP_ROWS) {
            REAL before[STEP_ROWS], d_rho[STEP_ROWS], ahead[STEP_ROWS], square[STEP_ROWS];
#pragma unroll
            for (int q = 0; q < STEP_ROWS; q++)
                if (x + q < n_values) {
                    const int at = (x + q) * width + j;
                    before[q] = theta[at];
                    d_rho[q] = d_theta[at];
                    ahead[q] = direction[at];
                    square[q] = v[at];
                }
#pragma unroll
            for (int q = 0; q < STEP_ROWS; q++)
                if (x + q < n_values) {
                    const int at = (x + q) * width + j;
                    d_rho[q] -= probability_of(before[q]) * d_total;
                    const REAL moved = adam_moved(before[q], d_rho[q], adam, decay1, decay2, ahead[q], square[q]);
                    total += probability_of(moved);
                    direction[at] = ahead[q];
                    v[at] = square[q];
                    theta[at] = moved;
                }
        }
        const REAL shift = log(total);
#pragma unroll 8
        for (int x = 0; x < n_values; x++) theta[x * width + j] -= shift;
    }
}
