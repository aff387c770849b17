// CUDA's words for a C++ compiler: a grid runs on the host, one block after the other, one thread at a time.
//
// Every thread of a block is a coroutine with a stack of its own. It runs until it waits for others, at a barrier or in
// a shuffle, and the next one is resumed. The order in which threads are resumed is the caller's: results that depend on
// it are races. Barriers that not all threads of a warp or block reach are errors.
#include <math.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <csetjmp>
#include <string>
#include <type_traits>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __global__ static
#define __device__ static
#define __forceinline__ inline
#define __shared__ __attribute__((section("shared_memory"))) static
#define __launch_bounds__(...)

// First and last byte of all shared memory of the text, from the linker; null if there is none.
extern "C" {
extern char __start_shared_memory[] __attribute__((weak, visibility("hidden")));
extern char __stop_shared_memory[] __attribute__((weak, visibility("hidden")));
}

struct dim3 { unsigned x, y, z; };
static dim3 threadIdx{0, 0, 0}, blockIdx{0, 0, 0}, blockDim{1, 1, 1}, gridDim{1, 1, 1};

namespace host {

constexpr int WARP = 32;
constexpr size_t STACK = 1 << 18;
enum State { READY, AT_WARP, AT_BLOCK, DONE };

struct Thread {
    State state;
    bool started;
    jmp_buf here;
    ucontext_t context;
    unsigned n_exchanges;
    unsigned long long slot[2];  // of even and odd shuffles: one is read while the next one is written
};

static std::vector<Thread> threads;
static std::vector<char> stacks;
static std::vector<int> order;
static jmp_buf scheduler;
static ucontext_t scheduler_context;
static int current;
static void (*body)(void*);
static void* arguments;
static std::string error;

static void leave(State state) {
    threads[current].state = state;
    if (!_setjmp(threads[current].here)) _longjmp(scheduler, 1);
}

static void entry() {
    body(arguments);
    leave(DONE);
}

static void resume(int thread) {
    current = thread;
    threadIdx.x = thread;
    Thread& t = threads[thread];
    if (_setjmp(scheduler)) return;
    if (t.started) _longjmp(t.here, 1);
    t.started = true;
    getcontext(&t.context);
    t.context.uc_stack.ss_sp = stacks.data() + thread * STACK;
    t.context.uc_stack.ss_size = STACK;
    t.context.uc_link = nullptr;
    makecontext(&t.context, entry, 0);
    setcontext(&t.context);
}

// Let go on what waits for each other; say what is wrong if nothing can.
static bool release() {
    const int n = (int)threads.size();
    int n_done = 0, n_block = 0;
    bool any = false;
    for (int first = 0; first < n; first += WARP) {
        int done = 0, at_warp = 0, at_block = 0;
        for (int t = first; t < first + WARP; t++) {
            done += threads[t].state == DONE;
            at_warp += threads[t].state == AT_WARP;
            at_block += threads[t].state == AT_BLOCK;
        }
        if (at_warp == WARP) {
            for (int t = first; t < first + WARP; t++) threads[t].state = READY;
            any = true;
        } else if (at_warp) {
            error = "a barrier or shuffle of a whole warp that " + std::to_string(WARP - at_warp) + " lanes never reach";
            return false;
        }
        n_done += done;
        n_block += at_block;
    }
    if (any || n_done == n) return any;
    if (n_block != n) {
        error = "__syncthreads that " + std::to_string(n - n_block) + " threads never reach";
        return false;
    }
    for (Thread& t : threads) t.state = READY;
    return true;
}

static void run_block() {
    // Numbers that no kernel writes: what is read before it is written must be noticed.
    if (__start_shared_memory) std::memset(__start_shared_memory, 0xCD, __stop_shared_memory - __start_shared_memory);
    for (Thread& t : threads) t.state = READY, t.started = false, t.n_exchanges = 0;
    static size_t i;  // beyond the reach of longjmp
    do {
        for (i = 0; i < order.size(); i++)
            if (threads[order[i]].state == READY) resume(order[i]);
    } while (release());
}

static unsigned long long exchange(unsigned mask, unsigned long long value, int lane) {
    if (mask != 0xffffffffu) {
        error = "a shuffle of a part of a warp";
        leave(DONE);
    }
    Thread& t = threads[current];
    const unsigned side = t.n_exchanges++ % 2;
    t.slot[side] = value;
    leave(AT_WARP);
    return threads[current / WARP * WARP + lane % WARP].slot[side];
}

template <class T> static T shuffle(unsigned mask, T value, int lane) {
    static_assert(sizeof(T) <= 8);
    unsigned long long bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    bits = exchange(mask, bits, lane);
    std::memcpy(&value, &bits, sizeof(T));
    return value;
}

static int lane() { return current % WARP; }

static unsigned ballot(unsigned mask, bool value) {
    exchange(mask, value, lane());
    const unsigned side = (threads[current].n_exchanges - 1) % 2;
    unsigned bits = 0;
    for (int other = 0; other < WARP; other++)
        bits |= (unsigned)threads[current / WARP * WARP + other].slot[side] << other;
    return bits;
}

template <class T> static std::string type_name() {
    using Plain = std::remove_cv_t<T>;
    const char* kind = std::is_floating_point_v<Plain> ? "f" : std::is_unsigned_v<Plain> ? "u" : "i";
    return kind + std::to_string(sizeof(Plain));
}

template <class T> static std::string argument_name() {
    if constexpr (std::is_class_v<T>) {
        return "s" + std::to_string(sizeof(T));
    } else if constexpr (std::is_pointer_v<T>) {
        using Pointed = std::remove_pointer_t<T>;
        return (std::is_const_v<Pointed> ? "<" : ">") + type_name<Pointed>();
    } else {
        return type_name<T>();
    }
}

template <class... T> static const char* types_of(void (*)(T...)) {
    static std::string names;
    names.clear();
    ((names += argument_name<T>() + " "), ...);
    return names.c_str();
}

template <class... T> struct Call {
    void (*kernel)(T...);
    void** values;
    template <size_t... I> void with(std::index_sequence<I...>) { kernel(*static_cast<T*>(values[I])...); }
    static void run(void* self) { static_cast<Call*>(self)->with(std::index_sequence_for<T...>{}); }
};

template <class... T>
static const char* launch(void (*kernel)(T...), unsigned blocks, const int* resumed, int n_threads, void** values) {
    Call<T...> call{kernel, values};
    body = Call<T...>::run;
    arguments = &call;
    threads.resize(n_threads);
    stacks.resize(n_threads * STACK);
    order.assign(resumed, resumed + n_threads);
    gridDim = {blocks, 1, 1};
    blockDim = {(unsigned)n_threads, 1, 1};
    error.clear();
    static unsigned b;
    for (b = 0; b < blocks && error.empty(); b++) {
        blockIdx.x = b;
        run_block();
    }
    return error.c_str();
}

}  // namespace host

static inline void __syncthreads() { host::leave(host::AT_BLOCK); }
static inline void __syncwarp(unsigned = 0xffffffffu) { host::leave(host::AT_WARP); }
template <class T> static T __shfl_sync(unsigned mask, T value, int lane) { return host::shuffle(mask, value, lane); }
template <class T> static T __shfl_xor_sync(unsigned mask, T value, int bits) {
    return host::shuffle(mask, value, host::lane() ^ bits);
}
static inline unsigned __ballot_sync(unsigned mask, bool value) { return host::ballot(mask, value); }
static inline int __ffs(unsigned bits) { return __builtin_ffs(bits); }
static inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
template <class T> static T atomicAdd(T* place, T value) { T before = *place; *place += value; return before; }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned __int128)a * b >> 64;
}
static inline double __longlong_as_double(long long bits) {
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
}
template <class T> static T min(T a, T b) { return b < a ? b : a; }
template <class T> static T max(T a, T b) { return a < b ? b : a; }
