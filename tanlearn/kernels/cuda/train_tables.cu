// Third launch of a training step: gradients and Adam steps of CPTs and priors; and the end of an epoch. Needs
// train.cu.

// Return the derivative of the loss with respect to the choice of a CPT, in all threads of a team. Groups of lanes
// process four samples at a time, and each lane several classes: 50 loads per warp for 100 samples of 10 classes,
// instead of 136 with one number per lane.
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
        for (int chunk = team_warp() * CHUNK; chunk < problem.batch_size; chunk += TEAM_WARPS * CHUNK) {
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
#pragma unroll UNROLLED
                for (int p = first; p < PACKS; p += WARP) {
                    const Pack d = d_rows[(long long)k * PACKS + p], values = rows[(long long)row * PACKS + p];
#pragma unroll
                    for (int e = 0; e < PACK; e++)
                        total += d.value[e] * (is_rounded ? rounded(values.value[e], step, most) : values.value[e]);
                }
            }
        }
    return team_sum(warp_sum((double)total));
}

// Add the rows of the samples to their rows of a table, in order. Each warp of a team has its own rows of the table,
// and each lane its own classes. Many rows are loaded before the first is added, because a compiler does not move loads
// across stores that may overlap.
#define ADDED (48 / (int)sizeof(REAL))

__device__ __forceinline__ void add_rows(const REAL* rows, const int* start, int n, REAL* table) {
    for (int c = lane_number(); c < N_CLASSES; c += WARP)
        for (int first = 0; first < n; first += ADDED) {
            int cell[ADDED];
            REAL value[ADDED];
#pragma unroll
            for (int q = 0; q < ADDED; q++) cell[q] = first + q < n ? start[first + q] : -1;
#pragma unroll
            for (int q = 0; q < ADDED; q++) {
                if (TEAM_WARPS > 1 && cell[q] / N_CLASSES % TEAM_WARPS != team_warp()) cell[q] = -1;
                if (cell[q] >= 0) value[q] = rows[(long long)(first + q) * N_CLASSES + c];
            }
#pragma unroll
            for (int q = 0; q < ADDED; q++)
                if (cell[q] >= 0) table[cell[q] + c] += value[q];
        }
}

// Update the prior of a run, and add the mean loss of the step.
__device__ __forceinline__ void step_prior(
    const Problem& problem, const Parameters& parameters, const Steps& steps, const Scratch& scratch, int run, int s) {
    const REAL* d_scores = d_scores_of(problem, scratch, run);
    const Adam adam = adam_of(problem, steps, run, s);
    const long long begin = problem.prior[run];
    REAL d_theta[PER_LANE], d_total = 0, total = 0;
#pragma unroll UNROLLED
    for (int p = 0; p < PER_LANE; p++) {
        d_theta[p] = 0;
        if (class_of(p) < N_CLASSES)
#pragma unroll 16
            for (int k = 0; k < problem.batch_size; k++) d_theta[p] += d_scores[(long long)k * N_CLASSES + class_of(p)];
        d_total += d_theta[p];
    }
    d_total = warp_sum(d_total);
    REAL moved[PER_LANE];
#pragma unroll UNROLLED
    for (int p = 0; p < PER_LANE; p++)
        if (class_of(p) < N_CLASSES) {
            const long long at = begin + class_of(p);
            const REAL before = parameters.theta[at], d_rho = d_theta[p] - probability_of(before) * d_total;
            REAL &direction = parameters.direction[at], &v = parameters.v[at];
            moved[p] = adam_moved(before, d_rho, adam, adam.beta1, adam.beta2, direction, v);
            total += probability_of(moved[p]);
        }
    const REAL shift = log(warp_sum(total));
#pragma unroll UNROLLED
    for (int p = 0; p < PER_LANE; p++)
        if (class_of(p) < N_CLASSES) parameters.theta[begin + class_of(p)] = moved[p] - shift;
    double loss = 0;
    const double* losses = scratch.losses + (long long)run * problem.batch_size;
    for (int k = lane_number(); k < problem.batch_size; k += WARP) loss += losses[k];
    loss = warp_sum(loss);
    if (lane_number() == 0) scratch.total[run] += loss;
}

// Choice gradient of a CPT within reach of the softmax, and Adam step of a drawn one. One team; `shared` is its own.
__device__ __forceinline__ void step_listed(
    const Problem& problem, const Parameters& parameters, const Steps& steps, const Scratch& scratch, int t, int s,
    REAL* shared) {
    const int thread = team_thread();
    const Table table = problem.tables[t];
    const int f = table.group, run = table.run, i = table.child, width = table.width;
    const bool is_drawn = scratch.selected[f] == t, has_choice = problem.group[f + 1] - problem.group[f] > 1;
    const double lowest = scratch.top[f] + NEGLIGIBLE_LOG_PROBABILITY * steps.temperature[run];
    const bool has_gradient = has_choice && scratch.perturbed[t] > lowest;
    const int n_values = problem.n_states[i], n_undrawn = parameters.n_undrawn[t];
    const long long begin = problem.offset[t];
    const REAL* d_scores = d_scores_of(problem, scratch, run);
    REAL pending = parameters.pending[t];
    team_sync();  // all threads have read `pending` and `n_undrawn`
    double d_choice = 0;
    if (has_gradient) {
        apply_pending(problem, parameters, t, width, n_values, pending);
        if (pending > NEGLIGIBLE_DISTANCE) pending = 0;
        team_sync();
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
    if (thread == 0) scratch.d_choice[t] = d_choice;
    if (!is_drawn) {
        if (thread == 0) defer_update(problem, parameters, steps, run, t, s, pending);
        return;
    }
    const int n_cells = width * n_values;
    REAL* d_table = n_cells <= SHARED_CELLS ? shared : scratch.d_tables + problem.drawn_offset[f];
    for (int j = thread; j < n_cells; j += TEAM) d_table[j] = 0;
    team_sync();
    add_rows(d_scores, scratch.start + (long long)f * problem.batch_size, problem.batch_size, d_table);
    team_sync();
    step_table(
        d_table, parameters.direction + begin, parameters.v + begin, parameters.theta + begin, width, n_values,
        n_undrawn, adam_of(problem, steps, run, s), thread, TEAM);
    if (thread == 0) parameters.n_undrawn[t] = 0;
}

// Third launch: the priors and the listed CPTs of all runs, one team each. The priors come first, because their warps
// take longest; teams without a CPT come last and end at once.
extern "C" __global__ void __launch_bounds__(BLOCK, BLOCKS_AT_ONCE) step_tables(
    long long n, int s, Problem problem, Parameters parameters, Steps steps, Scratch scratch) {
    __shared__ REAL gradients[TEAMS][SHARED_CELLS];
    const long long number = team_number(), n_runs = n / (1 + problem.most_tables);
    if (number >= n) return;
    const int run = number % n_runs, position = (int)(number / n_runs) - 1;
    s += *scratch.position;
    if (!steps.is_active[run] || s >= problem.n_steps) return;
    if (position < 0) {
        if (team_warp() == 0) step_prior(problem, parameters, steps, scratch, run, s);
    } else if (position < scratch.n_listed[run]) {
        const int t = scratch.listed[problem.group[run * problem.n_features] + position];
        step_listed(problem, parameters, steps, scratch, t, s, gradients[threadIdx.x / TEAM]);
    }
}

// After an epoch: take the last step of the logits. One warp per feature.
extern "C" __global__ void finish_structures(
    long long n, Problem problem, Parameters parameters, Steps steps, Scratch scratch) {
    const long long f = warp_number();
    if (f >= n) return;
    const int run = f / problem.n_features;
    if (!steps.is_active[run]) return;
    step_logits(problem, parameters, steps, scratch, run, problem.group[f], problem.group[f + 1], problem.n_steps - 1);
}

// After an epoch: apply all deferred updates, and mark runs with parameters that are not finite. One team per CPT or
// prior.
extern "C" __global__ void apply_all_pending(
    long long n, Problem problem, Parameters parameters, Steps steps, Scratch scratch) {
    const long long number = team_number();
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
        team_sync();
        if (team_thread() == 0 && pending > NEGLIGIBLE_DISTANCE) parameters.pending[t] = 0;
        theta = parameters.theta + problem.offset[t];
        size = problem.offset[t + 1] - problem.offset[t];
    }
    team_sync();
    for (int j = team_thread(); j < size; j += TEAM)
        if (!(theta[j] - theta[j] == 0)) scratch.is_finite[run] = 0;
}
