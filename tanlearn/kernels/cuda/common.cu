// Functions shared by all CUDA files. Each program consists of this file and the files named in its launch.
//
// A worker is a thread, a warp or a block, numbered consecutively over the grid. The first argument of a kernel is the
// number of workers; the other threads of the last block return at once. Floating-point numbers are never added in an
// order that the device chooses.

#define WARP 32
#define ALL_LANES 0xffffffffu

#define MINUS_INFINITY __longlong_as_double(0xfff0000000000000ll)

__device__ __forceinline__ long long thread_number() { return (long long)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ long long warp_number() { return thread_number() / WARP; }
__device__ __forceinline__ int lane_number() { return threadIdx.x % WARP; }

// Return the sum over a warp, the same in all lanes.
template <class T> __device__ __forceinline__ T warp_sum(T value) {
    for (int step = WARP / 2; step > 0; step /= 2) value += __shfl_xor_sync(ALL_LANES, value, step);
    return value;
}

// Return the largest value of a warp, the same in all lanes.
template <class T> __device__ __forceinline__ T warp_max(T value) {
    for (int step = WARP / 2; step > 0; step /= 2) {
        const T other = __shfl_xor_sync(ALL_LANES, value, step);
        value = other > value ? other : value;
    }
    return value;
}

// Moments below the smallest normal float32 are set to 0; see kernels/adam.py.
#define SMALLEST_MOMENT 1.1754943508222875e-38

// Update the Adam moments of one parameter by its gradient, and return the amount that is subtracted from it.
template <class T>
__device__ __forceinline__ T adam_change(T gradient, T step_size, T beta1, T beta2, T epsilon, T& m, T& v) {
    const T first = beta1 * m + (1 - beta1) * gradient;
    const T second = beta2 * v + (1 - beta2) * gradient * gradient;
    m = fabs(first) < T(SMALLEST_MOMENT) ? T(0) : first;
    v = second < T(SMALLEST_MOMENT) ? T(0) : second;
    return step_size * first / (sqrt(second) + epsilon);
}
