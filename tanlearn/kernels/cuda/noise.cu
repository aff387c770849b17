// Uniform numbers of NumPy's Generator.random(dtype=float32) with PCG64, one thread per number.
//
// The state is a linear congruential generator of 128 bits, which can be advanced by n steps in log n operations (Brown
// 1994). A word of 64 bits gives two numbers, the lower half first. The stream may begin with the upper half of an
// earlier word.

struct Wide {
    unsigned long long high, low;
};

__device__ __forceinline__ Wide plus(Wide a, Wide b) {
    const unsigned long long low = a.low + b.low;
    return {a.high + b.high + (low < a.low), low};
}

__device__ __forceinline__ Wide times(Wide a, Wide b) {
    return {__umul64hi(a.low, b.low) + a.high * b.low + a.low * b.high, a.low * b.low};
}

// Return the state after `n_steps` steps of state * multiplier + increment.
__device__ __forceinline__ Wide ahead(Wide state, Wide increment, unsigned long long n_steps) {
    Wide factor{0, 1}, term{0, 0}, multiplier{0x2360ed051fc65da4ull, 0x4385df649fccf645ull};
    for (; n_steps > 0; n_steps /= 2) {
        if (n_steps % 2) {
            factor = times(factor, multiplier);
            term = plus(times(term, multiplier), increment);
        }
        increment = times(plus(multiplier, {0, 1}), increment);
        multiplier = times(multiplier, multiplier);
    }
    return plus(times(factor, state), term);
}

// Return number `position` of a stream. A stream has the state, the increment, whether half a word is left, and it.
__device__ __forceinline__ float uniform_of(const unsigned long long* stream, unsigned long long position) {
    unsigned int bits;
    if (stream[4] && position == 0) {
        bits = stream[5];
    } else {
        position -= stream[4];
        const Wide state = ahead({stream[0], stream[1]}, {stream[2], stream[3]}, position / 2 + 1);
        const unsigned long long mixed = state.high ^ state.low;
        const int turn = state.high >> 58;
        const unsigned long long word = mixed >> turn | mixed << (64 - turn) % 64;
        bits = position % 2 ? word >> 32 : word;
    }
    return (bits >> 8) * 0x1p-24f;
}
