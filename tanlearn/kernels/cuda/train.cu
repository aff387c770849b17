// Training steps of gradient TAN for several runs on the same rows: the CUDA version of kernels/train.py.
//
// Runs differ in candidates, losses, rates and noise. Their arrays are concatenated: CPTs of all runs are numbered
// consecutively, and so are features (run * n_features + feature). A step is three launches for all runs: one warp per
// feature draws its CPT, one warp per sample scores it, and one warp per CPT computes its gradients and updates it.
// Drawing whole trees takes two more launches. Every sum is computed by one warp.
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
    int n_features, n_tables, n_steps, batch_size, batch_stride, n_samples;
    const CODE* codes;  // (d, n_samples)
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
    float* uniform;  // (S, T)
    const unsigned long long* streams;  // (R, 6)
    const int* is_streamed;  // (R,)
    const REAL* step_sizes;  // (R, S)
    const double* structure_step_sizes;  // (R, S)
    const double* temperature;  // (R,)
    const int* is_active;  // (R,)
    const REAL* decay;  // (n_decay,)
    int n_decay;
    double beta1, beta2, epsilon;
};

struct Scratch {
    CODE* codes;  // (R, S, d, batch_stride): codes of an epoch's batches, zero beyond the batch
    float* noise;  // (T,)
    double *perturbed, *d_choice;  // (T,)
    double* top;  // (F,): largest perturbed logit of each feature
    int* selected;  // (F,)
    long long* begin;  // (F,): start of the drawn CPT in theta
    int* start;  // (F, B): start of each sample's row in the drawn CPT
    REAL* d_scores;  // (R, batch_stride, C), zero beyond the batch
    double* losses;  // (R, B)
    REAL* d_tables;  // (sum of each feature's longest CPT,)
    double* total;  // (R,): sum of the mean losses of an epoch's batches
    double* edges;  // (R, 2 d + 1, 2 d + 1), or empty if no trees are drawn
    int* ends;  // (R, 2, 2 d + 1, 2 d + 1)
    int* work;  // (R, 6, 2 d + 1)
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

// Return the start of sample k's row in a CPT; `codes` are those of the batch.
__device__ __forceinline__ int row_of(const Problem& problem, const CODE* codes, int child, const int* parents, int k) {
    const int position = k / CHUNK * CHUNK + k % PACK_GROUPS * 4 + k % CHUNK / PACK_GROUPS;
    int row = codes_at(problem, codes, child)[position];
    for (int p = 0; p < 2; p++)
        if (parents[p] >= 0) row = row * problem.n_states[parents[p]] + codes_at(problem, codes, parents[p])[position];
    return row * N_CLASSES;
}

__device__ __forceinline__ const CODE* codes_of(const Problem& problem, const Scratch& scratch, int run, int s) {
    return scratch.codes + ((long long)run * problem.n_steps + s) * problem.n_features * problem.batch_stride;
}

// Apply the deferred Adam updates of a CPT; the caller resets `pending`.
__device__ __forceinline__ void apply_pending(
    const Problem& problem, const Parameters& parameters, int t, int width, int n_values, REAL pending) {
    if (pending > NEGLIGIBLE_DISTANCE) {
        const long long begin = problem.offset[t];
        move_along(parameters.direction + begin, parameters.theta + begin, width, n_values, pending);
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

// Once per epoch: copy the codes of each batch, so steps read adjacent memory. One thread per code.
extern "C" __global__ void gather_batches(long long n, Problem problem, Steps steps, Scratch scratch) {
    const long long number = thread_number();
    if (number >= n) return;
    const int position = number % problem.batch_stride;
    const int k = position / CHUNK * CHUNK + position % 4 * PACK_GROUPS + position % CHUNK / 4;
    if (k >= problem.batch_size) return;
    const long long row = number / problem.batch_stride;
    const int i = row % problem.n_features;
    const int sample = steps.order[row / problem.n_features * problem.batch_size + k];
    scratch.codes[number] = problem.codes[(long long)i * problem.n_samples + sample];
}

// Once per epoch: draw the uniform numbers of runs that have their own stream. One thread per number.
extern "C" __global__ void draw_uniform(long long n, Problem problem, Steps steps) {
    const long long number = thread_number();
    if (number >= n) return;
    const int t = number % problem.n_tables, run = problem.tables[t].run;
    if (!steps.is_active[run] || !steps.is_streamed[run]) return;
    const int first = problem.group[run * problem.n_features], last = problem.group[(run + 1) * problem.n_features];
    const long long position = number / problem.n_tables * (last - first) + t - first;
    steps.uniform[number] = uniform_of(steps.streams + 6 * run, position);
}

// Apply the deferred updates of a feature's drawn CPT, and write the start of each sample's row in it.
__device__ __forceinline__ void prepare_table(
    const Problem& problem, const Parameters& parameters, const Scratch& scratch, int run, int i, int t, int s) {
    const int f = run * problem.n_features + i;
    const REAL pending = parameters.pending[t];
    apply_pending(problem, parameters, t, problem.tables[t].width, problem.n_states[i], pending);
    const CODE* codes = codes_of(problem, scratch, run, s);
    for (int k = lane_number(); k < problem.batch_size; k += WARP)
        scratch.start[(long long)f * problem.batch_size + k] = row_of(problem, codes, i, problem.parents + 2 * t, k);
    __syncwarp();  // all lanes have read `pending`
    if (lane_number() == 0) {
        scratch.begin[f] = problem.offset[t];
        if (pending > NEGLIGIBLE_DISTANCE) parameters.pending[t] = 0;
    }
}

// First launch of a step: finish the previous step (if s > 0), and draw CPTs (if s < S). One warp per feature.
extern "C" __global__ void draw_structures(
    long long n, int s, Problem problem, Parameters parameters, Steps steps, Scratch scratch) {
    const long long f = warp_number();
    if (f >= n) return;
    const int run = f / problem.n_features, i = f % problem.n_features;
    if (!steps.is_active[run]) return;
    const int first = problem.group[f], last = problem.group[f + 1];
    if (s > 0) step_logits(problem, parameters, steps, scratch, run, first, last, s - 1);
    if (s >= problem.n_steps) return;
    const double total = log_total(parameters.phi, first, last);  // each lane reads only what it has written
    for (int t = first + lane_number(); t < last; t += WARP) {
        const float noise = gumbel_of(steps.uniform[(long long)s * problem.n_tables + t]);
        scratch.noise[t] = noise;
        scratch.perturbed[t] = parameters.phi[t] - total + noise;
    }
    const int best = best_of(scratch.perturbed, first, last);
    __syncwarp();  // another lane may have written the best
    if (lane_number() == 0) {
        scratch.top[f] = scratch.perturbed[best];
        scratch.selected[f] = best;
    }
    if (!problem.arborescence[run]) prepare_table(problem, parameters, scratch, run, i, best, s);
}

// If whole trees are drawn: select the heaviest tree instead of the best CPT of each feature. One block per run.
extern "C" __global__ void draw_trees(long long n, Problem problem, Steps steps, Scratch scratch) {
    const int run = blockIdx.x, d = problem.n_features;
    if (run >= n || !steps.is_active[run] || !problem.arborescence[run]) return;
    const long long nodes = 2 * d + 1;
    int *ends = scratch.ends + run * 2 * nodes * nodes, *work = scratch.work + run * 6 * nodes;
    const Graph graph = make_graph(d, scratch.edges + run * nodes * nodes, ends, ends + nodes * nodes, work);
    const int* group = problem.group + (long long)run * d;
    clear_edges(graph, threadIdx.x, blockDim.x);
    __syncthreads();
    for (int i = threadIdx.x; i < d; i += blockDim.x)
        for (int t = group[i]; t < group[i + 1]; t++) {
            const int j = problem.parents[2 * t] >= 0 ? problem.parents[2 * t] : d;
            add_edge(graph, i, j, scratch.perturbed[t], t == group[i]);
        }
    __syncthreads();
    if (threadIdx.x >= WARP) return;
    maximum_arborescence(graph);
    for (int i = lane_number(); i < d; i += WARP) {
        const int parent = graph.edge_source[i] == d ? -1 : graph.edge_source[i];
        int t = group[i];
        while (problem.parents[2 * t] != parent) t++;
        scratch.selected[run * d + i] = t;
    }
}

// Prepare the CPTs of drawn trees. One warp per feature.
extern "C" __global__ void prepare_trees(
    long long n, int s, Problem problem, Parameters parameters, Steps steps, Scratch scratch) {
    const long long f = warp_number();
    if (f >= n) return;
    const int run = f / problem.n_features;
    if (!steps.is_active[run] || !problem.arborescence[run]) return;
    prepare_table(problem, parameters, scratch, run, f % problem.n_features, scratch.selected[f], s);
}

// Second launch: scores, losses and their gradients. One warp per sample, whose groups of lanes share the features.
extern "C" __global__ void score_batches(
    long long n, int s, Problem problem, Parameters parameters, Steps steps, Scratch scratch) {
    const long long number = warp_number();
    if (number >= n) return;
    const int run = number / problem.batch_size, k = number % problem.batch_size, lane = lane_number();
    if (!steps.is_active[run]) return;
    const REAL step = problem.rounding[2 * run], most = problem.rounding[2 * run + 1];
    const int group = lane / SPAN, first = lane % SPAN;
    REAL score[PER_LANE], d_score[PER_LANE];
#pragma unroll
    for (int p = 0; p < PER_LANE; p++) score[p] = 0;
    if (group < GROUPS) {
        const REAL* __restrict__ theta = parameters.theta;
        const long long* __restrict__ begin = scratch.begin + (long long)run * problem.n_features;
        const int* __restrict__ start = scratch.start + (long long)run * problem.n_features * problem.batch_size + k;
#pragma unroll 4
        for (int i = group; i < problem.n_features; i += GROUPS) {
            const REAL* row = theta + begin[i] + start[(long long)i * problem.batch_size];
#pragma unroll
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
    const REAL* prior = prior_of(problem, parameters, run);
#pragma unroll
    for (int p = 0; p < PER_LANE; p++)
        score[p] = class_of(p) < N_CLASSES ? score[p] + rounded(prior[class_of(p)], step, most) : REAL(0);
    const int sample = steps.order[((long long)run * problem.n_steps + s) * problem.batch_size + k];
    const REAL* parameter = problem.loss_parameters + 3 * run;
    const REAL value = row_loss(
        problem.loss[run], score, problem.y[sample], parameter[0], parameter[1], parameter[2], d_score);
    const REAL row_weight = problem.weight[sample] / problem.batch_size;
    if (lane == 0) scratch.losses[number] = (double)row_weight * (double)value;
#pragma unroll
    for (int p = 0; p < PER_LANE; p++)
        if (class_of(p) < N_CLASSES)
            d_scores_of(problem, scratch, run)[(long long)k * N_CLASSES + class_of(p)] = row_weight * d_score[p];
}

// Return the derivative of the loss with respect to the choice of a CPT, in all lanes. Groups of lanes process four
// samples at a time, and each lane several classes: 50 loads per warp for 100 samples of 10 classes, instead of 136
// with one number per lane.
template <bool is_rounded, bool two_parents>
__device__ __forceinline__ double choice_gradient_of(
    const Problem& problem, const REAL* theta, const REAL* d_scores, const CODE* codes, int child, const int* parents,
    REAL step, REAL most) {
    const int group = lane_number() / PACK_SPAN, first = lane_number() % PACK_SPAN;
    const bool one = parents[0] >= 0;
    const int width = one ? problem.n_states[parents[0]] : 1, width2 = two_parents ? problem.n_states[parents[1]] : 1;
    const FourCodes* x = (const FourCodes*)codes_at(problem, codes, child);
    const FourCodes* z = (const FourCodes*)codes_at(problem, codes, one ? parents[0] : child);
    const FourCodes* z2 = (const FourCodes*)codes_at(problem, codes, two_parents ? parents[1] : child);
    const Pack *rows = (const Pack*)theta, *d_rows = (const Pack*)d_scores;
    REAL total = 0;
    if (group < PACK_GROUPS)
#pragma unroll 2
        for (int chunk = 0; chunk < problem.batch_size; chunk += CHUNK) {
            const int four = chunk / 4 + group;
            const FourCodes own = x[four], above = z[four];
            FourCodes above2;
            if (two_parents) above2 = z2[four];
#pragma unroll
            for (int q = 0; q < 4; q++) {
                const int k = chunk + q * PACK_GROUPS + group;  // beyond the batch, codes and gradients are zero
                int row = own.value[q];
                if (one) row = row * width + above.value[q];
                if (two_parents) row = row * width2 + above2.value[q];
#pragma unroll
                for (int p = first; p < PACKS; p += WARP) {
                    const Pack d = d_rows[(long long)k * PACKS + p], values = rows[(long long)row * PACKS + p];
#pragma unroll
                    for (int e = 0; e < PACK; e++)
                        total += d.value[e] * (is_rounded ? rounded(values.value[e], step, most) : values.value[e]);
                }
            }
        }
    return warp_sum((double)total);
}

// Add the rows of the samples to their rows of a table, in order; each lane has its own classes. Eight rows are loaded
// before the first is added, because a compiler does not move loads across stores that may overlap.
__device__ __forceinline__ void add_rows(const REAL* rows, const int* start, int n, REAL* table) {
    for (int c = lane_number(); c < N_CLASSES; c += WARP)
        for (int first = 0; first < n; first += 8) {
            int cell[8];
            REAL value[8];
#pragma unroll
            for (int q = 0; q < 8; q++)
                if (first + q < n) {
                    cell[q] = start[first + q] + c;
                    value[q] = rows[(long long)(first + q) * N_CLASSES + c];
                }
#pragma unroll
            for (int q = 0; q < 8; q++)
                if (first + q < n) table[cell[q]] += value[q];
        }
}

// Update the prior of a run, and add the mean loss of the step.
__device__ __forceinline__ void step_prior(
    const Problem& problem, const Parameters& parameters, const Steps& steps, const Scratch& scratch, int run, int s) {
    const REAL* d_scores = d_scores_of(problem, scratch, run);
    const Adam adam = adam_of(problem, steps, run, s);
    const long long begin = problem.prior[run];
    REAL d_theta[PER_LANE], d_total = 0, total = 0;
#pragma unroll
    for (int p = 0; p < PER_LANE; p++) {
        d_theta[p] = 0;
        if (class_of(p) < N_CLASSES)
            for (int k = 0; k < problem.batch_size; k++) d_theta[p] += d_scores[(long long)k * N_CLASSES + class_of(p)];
        d_total += d_theta[p];
    }
    d_total = warp_sum(d_total);
    REAL moved[PER_LANE];
#pragma unroll
    for (int p = 0; p < PER_LANE; p++)
        if (class_of(p) < N_CLASSES) {
            const long long at = begin + class_of(p);
            const REAL before = parameters.theta[at], d_rho = d_theta[p] - probability_of(before) * d_total;
            REAL &direction = parameters.direction[at], &v = parameters.v[at];
            moved[p] = adam_moved(before, d_rho, adam, adam.beta1, adam.beta2, direction, v);
            total += probability_of(moved[p]);
        }
    const REAL shift = log(warp_sum(total));
#pragma unroll
    for (int p = 0; p < PER_LANE; p++)
        if (class_of(p) < N_CLASSES) parameters.theta[begin + class_of(p)] = moved[p] - shift;
    double loss = 0;
    const double* losses = scratch.losses + (long long)run * problem.batch_size;
    for (int k = lane_number(); k < problem.batch_size; k += WARP) loss += losses[k];
    loss = warp_sum(loss);
    if (lane_number() == 0) scratch.total[run] += loss;
}

// Third launch: choice gradients of all CPTs, and Adam steps of the drawn ones. One warp per prior or CPT. The priors
// come first, because their warps take longest.
extern "C" __global__ void __launch_bounds__(256, 4) step_tables(
    long long n, int s, Problem problem, Parameters parameters, Steps steps, Scratch scratch) {
    const long long number = warp_number(), n_runs = n - problem.n_tables;
    if (number >= n) return;
    if (number < n_runs) {
        if (steps.is_active[number]) step_prior(problem, parameters, steps, scratch, number, s);
        return;
    }
    const int t = number - n_runs, lane = lane_number();
    const Table table = problem.tables[t];
    const int f = table.group, run = table.run, i = table.child, width = table.width;
    if (!steps.is_active[run]) return;
    const bool is_drawn = scratch.selected[f] == t, has_choice = problem.group[f + 1] - problem.group[f] > 1;
    const double negligible = NEGLIGIBLE_LOG_PROBABILITY * steps.temperature[run];
    const bool has_gradient = has_choice && scratch.perturbed[t] - scratch.top[f] > negligible;
    const int n_values = problem.n_states[i], n_undrawn = parameters.n_undrawn[t];
    const long long begin = problem.offset[t];
    const REAL* d_scores = d_scores_of(problem, scratch, run);
    REAL pending = parameters.pending[t];
    __syncwarp();  // all lanes have read `pending` and `n_undrawn`
    double d_choice = 0;
    if (has_gradient) {
        apply_pending(problem, parameters, t, width, n_values, pending);
        if (pending > NEGLIGIBLE_DISTANCE) pending = 0;
        __syncwarp();
        const REAL step = problem.rounding[2 * run], most = problem.rounding[2 * run + 1];
        const REAL* theta = parameters.theta + begin;
        const CODE* codes = codes_of(problem, scratch, run, s);
        const int* parents = problem.parents + 2 * t;
        if (parents[1] >= 0)
            d_choice = choice_gradient_of<true, true>(problem, theta, d_scores, codes, i, parents, step, most);
        else if (step == 0)
            d_choice = choice_gradient_of<false, false>(problem, theta, d_scores, codes, i, parents, step, most);
        else
            d_choice = choice_gradient_of<true, false>(problem, theta, d_scores, codes, i, parents, step, most);
    }
    if (lane == 0) scratch.d_choice[t] = d_choice;
    if (!is_drawn) {
        if (lane == 0) {
            parameters.n_undrawn[t] = n_undrawn + 1;
            const REAL decay = n_undrawn + 1 < steps.n_decay ? steps.decay[n_undrawn + 1] : REAL(0);
            parameters.pending[t] = pending + steps.step_sizes[(long long)run * problem.n_steps + s] * decay;
        }
        return;
    }
    REAL* d_table = scratch.d_tables + problem.drawn_offset[f];
    for (int j = lane; j < width * n_values; j += WARP) d_table[j] = 0;
    __syncwarp();
    add_rows(d_scores, scratch.start + (long long)f * problem.batch_size, problem.batch_size, d_table);
    __syncwarp();
    step_table(
        d_table, parameters.direction + begin, parameters.v + begin, parameters.theta + begin, width, n_values,
        n_undrawn, adam_of(problem, steps, run, s));
    if (lane == 0) parameters.n_undrawn[t] = 0;
}

// After an epoch: apply all deferred updates, and mark runs with parameters that are not finite. One warp per CPT or
// prior.
extern "C" __global__ void apply_all_pending(
    long long n, Problem problem, Parameters parameters, Steps steps, Scratch scratch) {
    const long long number = warp_number();
    if (number >= n) return;
    const bool prior = number >= problem.n_tables;
    const int t = prior ? 0 : (int)number;
    const int run = prior ? number - problem.n_tables : problem.tables[t].run;
    if (!steps.is_active[run]) return;
    const REAL* theta = prior_of(problem, parameters, run);
    int size = N_CLASSES;
    if (!prior) {
        const REAL pending = parameters.pending[t];
        const int n_values = problem.n_states[problem.tables[t].child];
        apply_pending(problem, parameters, t, problem.tables[t].width, n_values, pending);
        __syncwarp();
        if (lane_number() == 0 && pending > NEGLIGIBLE_DISTANCE) parameters.pending[t] = 0;
        theta = parameters.theta + problem.offset[t];
        size = problem.offset[t + 1] - problem.offset[t];
    }
    __syncwarp();
    for (int j = lane_number(); j < size; j += WARP)
        if (!(theta[j] - theta[j] == 0)) scratch.is_finite[run] = 0;
}
