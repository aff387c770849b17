// Drawing of structures: Gumbel-max choices, maximum-weight arborescences, and the straight-through gradient.
//
// A warp processes the candidate CPTs of one feature, group[f] to group[f + 1] - 1, and each of its lanes every 32nd of
// them. The equations are those of kernels/trees.py.

// Return Gumbel(0, 1) noise from a uniform number with 24 bits; see kernels/trees.py.
__device__ __forceinline__ float gumbel_of(float uniform) {
    const float u = uniform + 0x1p-25f;
    return -logf(-logf(u < 1.0f - 0x1p-24f ? u : 1.0f - 0x1p-24f));
}

// Return log sum exp of the logits of a group, in all lanes.
__device__ __forceinline__ double log_total(const double* phi, int first, int last) {
    double top = MINUS_INFINITY, total = 0;
    for (int t = first + lane_number(); t < last; t += WARP) top = phi[t] > top ? phi[t] : top;
    top = warp_max(top);
    for (int t = first + lane_number(); t < last; t += WARP) total += exp(phi[t] - top);
    return top + log(warp_sum(total));
}

// Return the index of the largest value, in all lanes; ties go to the first.
__device__ __forceinline__ int best_of(const double* perturbed, int first, int last) {
    double value = MINUS_INFINITY;
    int best = last;
    for (int t = first + lane_number(); t < last; t += WARP)
        if (best == last || perturbed[t] > value) {
            value = perturbed[t];
            best = t;
        }
    for (int step = WARP / 2; step > 0; step /= 2) {
        const double other = __shfl_xor_sync(ALL_LANES, value, step);
        const int rival = __shfl_xor_sync(ALL_LANES, best, step);
        if (rival < last && (best == last || other > value || (other == value && rival < best))) {
            value = other;
            best = rival;
        }
    }
    return __shfl_sync(ALL_LANES, best, 0);  // lanes differ if logits are nan
}

// Sums over a group for the structure gradient: largest perturbed logit, softmax normalizer, and mean of d_choice.
struct SoftmaxSums {
    double top, total, mean;
};

__device__ __forceinline__ double softmax_weight(const SoftmaxSums& sums, double perturbed, double temperature) {
    return exp((perturbed - sums.top) / temperature);
}

__device__ __forceinline__ SoftmaxSums softmax_sums(
    const double* perturbed, int first, int last, double temperature, const double* d_choice) {
    SoftmaxSums sums{MINUS_INFINITY, 0, 0};
    for (int t = first + lane_number(); t < last; t += WARP)
        sums.top = perturbed[t] > sums.top ? perturbed[t] : sums.top;
    sums.top = warp_max(sums.top);
    for (int t = first + lane_number(); t < last; t += WARP) {
        const double weight = softmax_weight(sums, perturbed[t], temperature);
        sums.total += weight;
        sums.mean += weight * d_choice[t];
    }
    sums.total = warp_sum(sums.total);
    sums.mean = warp_sum(sums.mean) / sums.total;
    return sums;
}

__device__ __forceinline__ double structure_gradient_of(
    const SoftmaxSums& sums, double perturbed, double temperature, double d_choice) {
    return softmax_weight(sums, perturbed, temperature) / sums.total * (d_choice - sums.mean) / temperature;
}

// Return the expected size penalty of a group, in all lanes.
__device__ __forceinline__ double mean_size_penalty_of(
    const double* perturbed, const float* noise, int first, int last, const double* size_penalty) {
    double mean = 0;
    for (int t = first + lane_number(); t < last; t += WARP) mean += exp(perturbed[t] - noise[t]) * size_penalty[t];
    return warp_sum(mean);
}

__device__ __forceinline__ double size_penalty_gradient_of(
    double perturbed, float noise, double size_penalty, double mean) {
    return exp(perturbed - noise) * (size_penalty - mean);
}

// Maximum-weight arborescence by the algorithm of kernels/trees.py, with one warp. Lanes process the other ends of a
// node's edges in parallel; decisions are made by the first lane, for which the others wait.

struct Graph {
    int d, nodes;  // root d; 2 d + 1 nodes including the contracted ones
    double* weight;  // (nodes, nodes): [i][j] is the edge j -> i
    int *source, *target;  // (nodes, nodes): ends of edges of contracted nodes, see source_of
    int *pointer, *state, *around, *edge_source, *edge_target, *best;  // (nodes,)
};

__device__ __forceinline__ Graph make_graph(int d, double* weight, int* source, int* target, int* work) {
    const int n = 2 * d + 1;
    return {d, n, weight, source, target, work, work + n, work + 2 * n, work + 3 * n, work + 4 * n, work + 5 * n};
}

// Remove all edges between features and root. Rows and columns of contracted nodes are written when they are created.
__device__ __forceinline__ void clear_edges(const Graph& graph, int thread, int n_threads) {
    for (int i = 0; i <= graph.d; i++)
        for (int j = thread; j <= graph.d; j += n_threads)
            graph.weight[(long long)i * graph.nodes + j] = MINUS_INFINITY;
}

// Return the ends among features and root of the edge j -> i. Only those of contracted nodes are stored.
__device__ __forceinline__ int source_of(const Graph& graph, int i, int j) {
    return i <= graph.d && j <= graph.d ? j : graph.source[(long long)i * graph.nodes + j];
}

__device__ __forceinline__ int target_of(const Graph& graph, int i, int j) {
    return i <= graph.d && j <= graph.d ? i : graph.target[(long long)i * graph.nodes + j];
}

// Write an edge from the root or another feature, and store the source of the feature's heaviest edge. Ties go to the
// root, then to the lowest number. One thread adds all edges of a feature.
__device__ __forceinline__ void add_edge(const Graph& graph, int i, int j, double weight, bool is_first) {
    graph.weight[(long long)i * graph.nodes + j] = weight;
    if (!is_first) {
        const int best = graph.best[i];
        const double most = graph.weight[(long long)i * graph.nodes + best];
        if (!(weight > most || (weight == most && best != graph.d && (j == graph.d || j < best)))) return;
    }
    graph.best[i] = j;
}

__device__ __forceinline__ int outermost(const Graph& graph, int node) {
    while (graph.around[node] >= 0) node = graph.around[node];
    return node;
}

// Return the source of the heaviest edge into a node. Ties go to the root, then to the lowest number.
__device__ __forceinline__ int best_source(const Graph& graph, int node, int size) {
    // It is nearly always the edge that was heaviest at the beginning, which saves a scan of all nodes.
    if (node < graph.d && graph.state[graph.best[node]] != 3) return graph.best[node];
    const double* weight = graph.weight + (long long)node * graph.nodes;
    double value = weight[graph.d];
    int best = graph.d;
    for (int j = lane_number(); j < size; j += WARP)
        if (graph.state[j] != 3 && j != node && weight[j] > value) {
            value = weight[j];
            best = j;
        }
    for (int step = WARP / 2; step > 0; step /= 2) {
        const double other = __shfl_xor_sync(ALL_LANES, value, step);
        const int rival = __shfl_xor_sync(ALL_LANES, best, step);
        const bool wins_tie = rival == graph.d || (best != graph.d && rival < best);
        if (other > value || (other == value && wins_tie)) {
            value = other;
            best = rival;
        }
    }
    return __shfl_sync(ALL_LANES, best, 0);
}

__device__ __forceinline__ void contract(const Graph& graph, int member, int top) {
    const long long n = graph.nodes;
    if (lane_number() == 0) {
        for (int node = member; graph.state[node] == 1; node = graph.pointer[node]) {
            graph.state[node] = 3;
            graph.around[node] = top;
        }
        graph.state[top] = 1;
    }
    __syncwarp();
    for (int j = lane_number(); j < top; j += WARP) {
        double in = MINUS_INFINITY, out = MINUS_INFINITY;
        if (graph.state[j] != 3) {
            if (graph.state[j] == 1 && graph.around[graph.pointer[j]] == top) graph.pointer[j] = top;
            int node = member;
            do {
                const double gain = graph.weight[node * n + j] - graph.weight[node * n + graph.pointer[node]];
                if (gain > in) {
                    in = gain;
                    graph.source[top * n + j] = source_of(graph, node, j);
                    graph.target[top * n + j] = target_of(graph, node, j);
                }
                if (graph.weight[j * n + node] > out) {
                    out = graph.weight[j * n + node];
                    graph.source[j * n + top] = source_of(graph, j, node);
                    graph.target[j * n + top] = target_of(graph, j, node);
                }
                node = graph.pointer[node];
            } while (node != member);
        }
        graph.weight[top * n + j] = in;
        graph.weight[j * n + top] = out;
    }
    __syncwarp();
}

// Write the parent of each node i, or the root, to edge_source[i]. All edges must have been added.
__device__ __forceinline__ void maximum_arborescence(const Graph& graph) {
    const int d = graph.d, lane = lane_number();
    for (int i = lane; i < graph.nodes; i += WARP) {
        graph.state[i] = i == d ? 2 : 0;  // 0 unvisited, 1 on the path, 2 connected to the root, 3 contracted
        graph.around[i] = -1;
    }
    __syncwarp();
    int size = d + 1;
    for (int start = 0; start < d; start++) {
        int node = outermost(graph, start);
        while (graph.state[node] != 2) {
            const int best = best_source(graph, node, size);
            const int seen = graph.state[best];
            __syncwarp();  // all lanes have read the state
            if (lane == 0) {
                graph.state[node] = 1;
                graph.pointer[node] = best;
                graph.edge_source[node] = source_of(graph, node, best);
                graph.edge_target[node] = target_of(graph, node, best);
            }
            __syncwarp();
            if (seen == 0) {
                node = best;
            } else if (seen == 1) {
                contract(graph, best, size);
                node = size++;
            } else {
                node = outermost(graph, start);
                __syncwarp();
                if (lane == 0)
                    for (int end = node; graph.state[end] == 1; end = graph.pointer[end]) graph.state[end] = 2;
                __syncwarp();
            }
        }
        __syncwarp();
    }
    if (lane == 0)
        for (int top = size - 1; top > d; top--) {  // break each cycle at the node that its chosen edge enters
            int member = graph.edge_target[top];
            while (graph.around[member] != top) member = graph.around[member];
            graph.edge_source[member] = graph.edge_source[top];
            graph.edge_target[member] = graph.edge_target[top];
        }
    __syncwarp();
}
