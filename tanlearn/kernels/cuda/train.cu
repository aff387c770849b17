// Training steps of gradient TAN for several runs on the same rows: the CUDA version of kernels/train.py.
//
// Runs differ in candidates, losses, rates and noise. Their arrays are concatenated: CPTs of all runs are numbered
// consecutively, and so are features (run * n_features + feature). A step is three launches for all runs: one team per
// feature draws its CPT, one warp or block per sample scores it, and one team per CPT computes its gradients and
// updates it. Drawing whole trees takes two more launches. Sums over several warps are added in the order of the warps.
//
// R runs, d features, F = R d, T CPTs of all runs, S steps of an epoch, B samples of a batch, C classes

#define NEGLIGIBLE_DISTANCE REAL(4e-9)
#define NEGLIGIBLE_LOG_PROBABILITY (-36.0)
// Number of classes that a group of lanes processes at a time, and number of groups per warp.
#define SPAN (N_CLASSES < WARP ? N_CLASSES : WARP)
#define GROUPS (WARP / SPAN)
// A load reads a pack of PACK numbers of a row. Packs per row, lanes per group with one pack each, groups per warp.
#define PACKS (N_CLASSES / PACK)
#define PACK_SPAN (PACKS < WARP ? PACKS : WARP)
#define PACK_GROUPS (WARP / PACK_SPAN)
// Samples per chunk. Codes of a chunk are in the order in which groups of lanes read them: four codes per load, and
// neighboring groups at neighboring addresses.
#define CHUNK (4 * PACK_GROUPS)
#define SAMPLE_WARPS (SAMPLE_TEAM / WARP)
// Size of the longest CPT whose gradient is added in shared memory instead of d_tables. 20 kB per block hold letter's
// longest CPT, and leave enough memory for the first-level cache.
#define SHARED_CELLS (20480 / (int)sizeof(REAL) / TEAMS)
// Blocks that share a multiprocessor: more registers for float64.
#define BLOCKS_AT_ONCE (16 / (int)sizeof(REAL))
// Rows that deferred updates load together, so that a CPT waits for memory once: letter's CPTs have up to 14 rows,
// those of usps, which teams of one warp process, up to 6. More rows would spill registers.
#define MOVE_ROWS ((TEAM == WARP ? 24 : 56) / (int)sizeof(REAL))

struct alignas(PACK * sizeof(REAL)) Pack {
    REAL value[PACK];
};

struct alignas(4 * sizeof(CODE)) FourCodes {
    CODE value[4];
};

// Description of a CPT, read in one load: feature among those of all runs, run, feature, and numbers per row.
struct alignas(16) Table {
    int group, run, child, width;
};

struct Problem {
    int n_features, n_tables, most_tables, n_steps, block_steps, batch_size, batch_stride, n_samples, team;
    const CODE* codes;  // (n_samples, d)
    const int* y;  // (n_samples,)
    const float* weight;  // (n_samples,)
    const int* n_states;  // (d,)
    const int* group;  // (F + 1,)
    const Table* tables;  // (T,)
    const int* parents;  // (T, 2): features, or -1
    const long long* offset;  // (T + 1,): start of each CPT in theta
    const long long* prior;  // (R,): start of each run's prior in theta
    const int* arborescence;  // (R,): whether to draw whole trees
    const int* loss;  // (R,)
    const REAL* loss_parameters;  // (R, 3)
    const REAL* rounding;  // (R, 2)
    const int* has_size_penalty;  // (R,)
    const double* size_penalty;  // (T,)
    const long long* drawn_offset;  // (F + 1,): start of the gradient of each feature's drawn CPT in d_tables
};

struct Parameters {
    REAL *theta, *direction, *v;  // (cells of all runs,)
    int* n_undrawn;  // (T,)
    REAL* pending;  // (T,)
    double *phi, *phi_m, *phi_v;  // (T,)
};

struct Steps {
    const int* order;  // (R, S, B)
    float* uniform;  // (uniform_steps, T)
    const unsigned long long* streams;  // (R, 6)
    const int* is_streamed;  // (R,)
    const REAL* step_sizes;  // (R, S)
    const double* structure_step_sizes;  // (R, S)
    const double* temperature;  // (R,)
    const int* is_active;  // (R,)
    const REAL* decay;  // (n_decay,)
    int n_decay, uniform_steps;
    double beta1, beta2, epsilon;
};

struct Scratch {
    int* position;  // (1,): first step of the block of steps
    CODE* codes;  // (R, block_steps, d, batch_stride): codes of a block's batches, zero beyond the batch
    float* noise;  // (T,)
    double *perturbed, *d_choice;  // (T,)
    double* top;  // (F,): largest perturbed logit of each feature
    int* selected;  // (F,)
    int* listed;  // (T,): CPTs with a gradient or an Adam step, in any order, from each run's first CPT on
    int *n_found, *n_listed;  // (R,): their number, while they are found and for the third launch
    long long* begin;  // (F,): start of the drawn CPT in theta
    int* start;  // (F, B): start of each sample's row in the drawn CPT
    REAL* d_scores;  // (R, batch_stride, C), zero beyond the batch
    double* losses;  // (R, B)
    REAL* d_tables;  // (sum of each feature's longest CPT,)
    double* total;  // (R,): sum of the mean losses of an epoch's batches
    double* edges;  // (T,): weights of the edges of trees; empty if no trees are drawn
    int* work;  // (R, 6, 2 d + 1): arrays of their nodes
    int* is_finite;  // (R,)
};

__device__ __forceinline__ REAL* prior_of(const Problem& problem, const Parameters& parameters, int run) {
    return parameters.theta + problem.prior[run];
}

__device__ __forceinline__ Adam adam_of(const Problem& problem, const Steps& steps, int run, int s) {
    const REAL size = steps.step_sizes[(long long)run * problem.n_steps + s];
    return {size, (REAL)steps.beta1, (REAL)steps.beta2, (REAL)steps.epsilon};
}

__device__ __forceinline__ REAL* d_scores_of(const Problem& problem, const Scratch& scratch, int run) {
    return scratch.d_scores + (long long)run * problem.batch_stride * N_CLASSES;
}

// Return the codes of one feature in a batch.
__device__ __forceinline__ const CODE* codes_at(const Problem& problem, const CODE* codes, int feature) {
    return codes + (long long)feature * problem.batch_stride;
}

// Return the sample of a batch whose codes are at a position of each feature, and the inverse.
__device__ __forceinline__ int sample_at(int position) {
    return position / CHUNK * CHUNK + position % 4 * PACK_GROUPS + position % CHUNK / 4;
}

__device__ __forceinline__ int position_of(int k) {
    return k / CHUNK * CHUNK + k % PACK_GROUPS * 4 + k % CHUNK / PACK_GROUPS;
}

// Return the uniform numbers of a step, one per CPT.
__device__ __forceinline__ float* uniform_at(const Problem& problem, const Steps& steps, int s) {
    return steps.uniform + (long long)(s % steps.uniform_steps) * problem.n_tables;
}

// Return the start of sample k's row in a CPT; `codes` are those of the batch.
__device__ __forceinline__ int row_of(const Problem& problem, const CODE* codes, int child, const int* parents, int k) {
    const int position = position_of(k);
    int row = codes_at(problem, codes, child)[position];
    for (int p = 0; p < 2; p++)
        if (parents[p] >= 0) row = row * problem.n_states[parents[p]] + codes_at(problem, codes, parents[p])[position];
    return row * N_CLASSES;
}

__device__ __forceinline__ const CODE* codes_of(const Problem& problem, const Scratch& scratch, int run, int s) {
    const long long batch = (long long)run * problem.block_steps + s % problem.block_steps;
    return scratch.codes + batch * problem.n_features * problem.batch_stride;
}

// Return the number of steps of an undrawn CPT, one more, and defer the update.
__device__ __forceinline__ void defer_update(
    const Problem& problem, const Parameters& parameters, const Steps& steps, int run, int t, int s, REAL pending) {
    const int n_undrawn = parameters.n_undrawn[t] + 1;
    const REAL decay = n_undrawn < steps.n_decay ? steps.decay[n_undrawn] : REAL(0);
    parameters.n_undrawn[t] = n_undrawn;
    parameters.pending[t] = pending + steps.step_sizes[(long long)run * problem.n_steps + s] * decay;
}

// Apply the deferred Adam updates of a CPT, with a team; the caller resets `pending`.
__device__ __forceinline__ void apply_pending(
    const Problem& problem, const Parameters& parameters, int t, int width, int n_values, REAL pending) {
    if (pending > NEGLIGIBLE_DISTANCE) {
        const long long begin = problem.offset[t];
        move_along<MOVE_ROWS>(
            parameters.direction + begin, parameters.theta + begin, width, n_values, pending, team_thread(), TEAM);
    }
}

// Take an Adam step of the logits of one feature, by the structure gradient and that of the expected size penalty.
__device__ __forceinline__ void step_logits(
    const Problem& problem, const Parameters& parameters, const Steps& steps, const Scratch& scratch, int run,
    int first, int last, int s) {
    const double temperature = steps.temperature[run];
    const double step_size = steps.structure_step_sizes[(long long)run * problem.n_steps + s];
    const SoftmaxSums sums = softmax_sums(scratch.perturbed, first, last, temperature, scratch.d_choice);
    const bool has_size_penalty = problem.has_size_penalty[run];
    double mean = 0;
    if (has_size_penalty)
        mean = mean_size_penalty_of(scratch.perturbed, scratch.noise, first, last, problem.size_penalty);
    for (int t = first + lane_number(); t < last; t += WARP) {
        double d_phi = structure_gradient_of(sums, scratch.perturbed[t], temperature, scratch.d_choice[t]);
        if (has_size_penalty)
            d_phi += size_penalty_gradient_of(scratch.perturbed[t], scratch.noise[t], problem.size_penalty[t], mean);
        parameters.phi[t] -= adam_change(
            d_phi, step_size, steps.beta1, steps.beta2, steps.epsilon, parameters.phi_m[t], parameters.phi_v[t]);
    }
}

// Once per block of steps: copy the codes of each batch, so that steps read adjacent memory. A block copies 32 features
// at 32 positions of a batch through shared memory: it reads neighboring features of a sample, and writes neighboring
// positions of a feature.
extern "C" __global__ void gather_batches(long long n, Problem problem, Steps steps, Scratch scratch) {
    __shared__ CODE tile[WARP][WARP + 4 / sizeof(CODE)];  // columns are in different banks
    const long long number = blockIdx.x;
    if (number >= n) return;
    const int across = (problem.batch_stride + WARP - 1) / WARP, down = (problem.n_features + WARP - 1) / WARP;
    const int batch = number / across / down, run = batch / problem.block_steps;
    const int s = *scratch.position + batch % problem.block_steps;
    if (!steps.is_active[run] || s >= problem.n_steps) return;
    const int start = number % across * WARP, feature = number / across % down * WARP;
    const int lane = lane_number(), warp = threadIdx.x / WARP;
    const int* __restrict__ order = steps.order + ((long long)run * problem.n_steps + s) * problem.batch_size;
    for (int row = warp; row < WARP; row += BLOCK / WARP) {
        const int k = sample_at(start + row), i = feature + lane;
        if (start + row < problem.batch_stride && k < problem.batch_size && i < problem.n_features)
            tile[row][lane] = problem.codes[(long long)order[k] * problem.n_features + i];
    }
    __syncthreads();
    CODE* __restrict__ codes = scratch.codes + (long long)batch * problem.n_features * problem.batch_stride;
    for (int row = warp; row < WARP; row += BLOCK / WARP) {
        const int k = sample_at(start + lane), i = feature + row;
        if (start + lane < problem.batch_stride && k < problem.batch_size && i < problem.n_features)
            codes[(long long)i * problem.batch_stride + start + lane] = tile[lane][row];
    }
}

// Once per block of steps: draw the uniform numbers of runs that have their own stream. One thread per number.
extern "C" __global__ void draw_uniform(long long n, Problem problem, Steps steps, Scratch scratch) {
    const long long number = thread_number();
    if (number >= n) return;
    const int t = number % problem.n_tables, s = *scratch.position + number / problem.n_tables;
    const int run = problem.tables[t].run;
    if (s >= problem.n_steps || !steps.is_active[run] || !steps.is_streamed[run]) return;
    const int first = problem.group[run * problem.n_features], last = problem.group[(run + 1) * problem.n_features];
    const long long position = (long long)s * (last - first) + t - first;
    uniform_at(problem, steps, s)[t] = uniform_of(steps.streams + 6 * run, position);
}

// List the CPTs of a feature that the third launch processes: the drawn CPT, and CPTs within reach of the softmax.
// Defer the updates of all others. One warp.
__device__ __forceinline__ void list_tables(
    const Problem& problem, const Parameters& parameters, const Steps& steps, const Scratch& scratch, int run, int f,
    int drawn, int s) {
    const int first = problem.group[f], last = problem.group[f + 1];
    int* listed = scratch.listed + problem.group[run * problem.n_features];
    const double lowest = scratch.top[f] + NEGLIGIBLE_LOG_PROBABILITY * steps.temperature[run];
    for (int start = first; start < last; start += WARP) {
        const int t = start + lane_number();
        const bool is_listed = t < last && (t == drawn || scratch.perturbed[t] > lowest);
        const unsigned lanes = __ballot_sync(ALL_LANES, is_listed);
        int begin = 0;
        if (lane_number() == 0) begin = atomicAdd(scratch.n_found + run, __popc(lanes));
        begin = __shfl_sync(ALL_LANES, begin, 0);
        if (is_listed) {
            listed[begin + __popc(lanes & ((1u << lane_number()) - 1))] = t;
        } else if (t < last) {
            scratch.d_choice[t] = 0;
            defer_update(problem, parameters, steps, run, t, s, parameters.pending[t]);
        }
    }
}

// Apply the deferred updates of a feature's drawn CPT, and write the start of each sample's row in it. One team.
__device__ __forceinline__ void prepare_table(
    const Problem& problem, const Parameters& parameters, const Scratch& scratch, int run, int i, int t, int s) {
    const int f = run * problem.n_features + i;
    const REAL pending = parameters.pending[t];
    const CODE* __restrict__ codes = codes_of(problem, scratch, run, s);
    int* __restrict__ start = scratch.start + (long long)f * problem.batch_size;
    const int parents[2] = {problem.parents[2 * t], problem.parents[2 * t + 1]};
#pragma unroll 4
    for (int k = team_thread(); k < problem.batch_size; k += TEAM) start[k] = row_of(problem, codes, i, parents, k);
    apply_pending(problem, parameters, t, problem.tables[t].width, problem.n_states[i], pending);
    team_sync();  // all threads have read `pending`
    if (team_thread() == 0) {
        scratch.begin[f] = problem.offset[t];
        if (pending > NEGLIGIBLE_DISTANCE) parameters.pending[t] = 0;
    }
}

// After a block of steps, so that one graph of a block serves all epochs: go on to the next block, or to the first.
extern "C" __global__ void next_block(long long n, Problem problem, Scratch scratch) {
    const int next = *scratch.position + problem.block_steps;
    if (thread_number() < n) *scratch.position = next < problem.n_steps ? next : 0;
}

// Draw the CPT of a feature, and return it in the first lane.
__device__ __forceinline__ int draw_table(
    const Problem& problem, const Parameters& parameters, const Steps& steps, const Scratch& scratch, int run, int f,
    int s) {
    const int first = problem.group[f], last = problem.group[f + 1], own = first + lane_number();
    const float* uniform = uniform_at(problem, steps, s);
    // The previous step is finished while this number is loaded.
    const float own_noise = own < last ? gumbel_of(uniform[own]) : 0;
    if (s > 0) step_logits(problem, parameters, steps, scratch, run, first, last, s - 1);
    const double total = log_total(parameters.phi, first, last);  // each lane reads only what it has written
    for (int t = own; t < last; t += WARP) {
        const float noise = t == own ? own_noise : gumbel_of(uniform[t]);
        scratch.noise[t] = noise;
        scratch.perturbed[t] = parameters.phi[t] - total + noise;
    }
    const int best = best_of(scratch.perturbed, first, last);
    __syncwarp();  // another lane may have written the best
    if (lane_number() == 0) {
        scratch.top[f] = scratch.perturbed[best];
        scratch.selected[f] = best;
    }
    return best;
}

// First launch of a step: finish the previous step of the epoch, and draw CPTs. In all launches, `s` counts from the
// first step of the block, and steps beyond the epoch do nothing. One team per feature.
extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS_AT_ONCE) draw_structures(
    long long n, int s, Problem problem, Parameters parameters, Steps steps, Scratch scratch) {
    const long long f = team_number();
    if (f >= n) return;
    const int run = f / problem.n_features, i = f % problem.n_features;
    s += *scratch.position;
    if (!steps.is_active[run] || s >= problem.n_steps) return;
    int best = -1;
    if (team_warp() == 0) best = draw_table(problem, parameters, steps, scratch, run, f, s);
    if (problem.arborescence[run]) return;
    best = team_broadcast(best);
    prepare_table(problem, parameters, scratch, run, i, best, s);
    if (team_warp() == 0) list_tables(problem, parameters, steps, scratch, run, f, best, s);
}

// Shared memory holds the nodes of up to 256 features and the weights of up to 4,352 edges: 17 candidates for each of
// 256 features, or all candidates of 65 features. Larger graphs are in global memory. A block takes 46 kB; without an
// attribute, a kernel has at most 48 kB.
#define SHARED_NODES 513
#define SHARED_EDGES 4352

// If whole trees are drawn: select the heaviest tree instead of the best CPT of each feature. One block per run.
extern "C" __global__ void draw_trees(long long n, int s, Problem problem, Steps steps, Scratch scratch) {
    __shared__ int shared_work[6 * SHARED_NODES];
    __shared__ double shared_weight[SHARED_EDGES];
    const int run = blockIdx.x, d = problem.n_features;
    s += *scratch.position;
    if (run >= n || s >= problem.n_steps || !steps.is_active[run] || !problem.arborescence[run]) return;
    const int* group = problem.group + (long long)run * d;
    const int first = group[0], n_edges = group[d] - first, nodes = 2 * d + 1;
    int* work = nodes <= SHARED_NODES ? shared_work : scratch.work + (long long)run * 6 * nodes;
    double* weight = n_edges <= SHARED_EDGES ? shared_weight : scratch.edges + first;
    const auto graph = make_graph(d, group, problem.parents + 2ll * first, 2, weight, work);
    start_graph(graph, scratch.perturbed + first, threadIdx.x, BLOCK);
    __syncthreads();
    for (int i = threadIdx.x / WARP; i < d; i += BLOCK / WARP) choose_edge(graph, i, i);
    __syncthreads();
    if (threadIdx.x >= WARP) return;
    maximum_arborescence(graph);
    for (int i = lane_number(); i < d; i += WARP) scratch.selected[run * d + i] = first + graph.edge[i];
}

// Prepare the CPTs of drawn trees. One team per feature.
extern "C" __global__ void prepare_trees(
    long long n, int s, Problem problem, Parameters parameters, Steps steps, Scratch scratch) {
    const long long f = team_number();
    if (f >= n) return;
    const int run = f / problem.n_features, t = scratch.selected[f];
    s += *scratch.position;
    if (s >= problem.n_steps || !steps.is_active[run] || !problem.arborescence[run]) return;
    prepare_table(problem, parameters, scratch, run, f % problem.n_features, t, s);
    if (team_warp() == 0) list_tables(problem, parameters, steps, scratch, run, f, t, s);
}

// Second launch: scores, losses and their gradients. SAMPLE_TEAM threads per sample, whose groups of lanes share the
// features.
extern "C" __global__ void score_batches(
    long long n, int s, Problem problem, Parameters parameters, Steps steps, Scratch scratch) {
    const long long number = thread_number() / SAMPLE_TEAM;
    if (number >= n) return;
    const int run = number / problem.batch_size, k = number % problem.batch_size, lane = lane_number();
    s += *scratch.position;
    if (!steps.is_active[run] || s >= problem.n_steps) return;
    const int warp = threadIdx.x % SAMPLE_TEAM / WARP;
    if (k == 0 && threadIdx.x % SAMPLE_TEAM == 0) {  // all CPTs of the step have been found
        scratch.n_listed[run] = scratch.n_found[run];
        scratch.n_found[run] = 0;
    }
    const REAL step = problem.rounding[2 * run], most = problem.rounding[2 * run + 1];
    const int group = lane / SPAN, first = lane % SPAN;
    REAL score[PER_LANE], d_score[PER_LANE];
#pragma unroll UNROLLED
    for (int p = 0; p < PER_LANE; p++) score[p] = 0;
    if (group < GROUPS) {
        const REAL* __restrict__ theta = parameters.theta;
        const long long* __restrict__ begin = scratch.begin + (long long)run * problem.n_features;
        const int* __restrict__ start = scratch.start + (long long)run * problem.n_features * problem.batch_size + k;
#pragma unroll 8
        for (int i = warp * GROUPS + group; i < problem.n_features; i += SAMPLE_WARPS * GROUPS) {
            const REAL* row = theta + begin[i] + start[(long long)i * problem.batch_size];
#pragma unroll UNROLLED
            for (int p = 0; p < PER_LANE; p++)
                if (first + p * WARP < N_CLASSES) score[p] += rounded(row[first + p * WARP], step, most);
        }
    }
    if (GROUPS > 1) {
        const REAL part = score[0];
        for (int other = 1; other < GROUPS; other++) {
            const REAL theirs = __shfl_sync(ALL_LANES, part, (lane + other * SPAN) % WARP);
            score[0] += theirs;
        }
    }
    if (SAMPLE_WARPS > 1) {
        __shared__ REAL parts[SAMPLE_WARPS][N_CLASSES];
#pragma unroll UNROLLED
        for (int p = 0; p < PER_LANE; p++)
            if (class_of(p) < N_CLASSES) parts[warp][class_of(p)] = score[p];
        __syncthreads();
        if (warp > 0) return;
        for (int other = 1; other < SAMPLE_WARPS; other++)
#pragma unroll UNROLLED
            for (int p = 0; p < PER_LANE; p++)
                if (class_of(p) < N_CLASSES) score[p] += parts[other][class_of(p)];
    }
    const REAL* prior = prior_of(problem, parameters, run);
#pragma unroll UNROLLED
    for (int p = 0; p < PER_LANE; p++)
        score[p] = class_of(p) < N_CLASSES ? score[p] + rounded(prior[class_of(p)], step, most) : REAL(0);
    const int sample = steps.order[((long long)run * problem.n_steps + s) * problem.batch_size + k];
    const REAL* parameter = problem.loss_parameters + 3 * run;
    const REAL value = row_loss(
        problem.loss[run], score, problem.y[sample], parameter[0], parameter[1], parameter[2], d_score);
    const REAL row_weight = problem.weight[sample] / problem.batch_size;
    if (lane == 0) scratch.losses[number] = (double)row_weight * (double)value;
#pragma unroll UNROLLED
    for (int p = 0; p < PER_LANE; p++)
        if (class_of(p) < N_CLASSES)
            d_scores_of(problem, scratch, run)[(long long)k * N_CLASSES + class_of(p)] = row_weight * d_score[p];
}
