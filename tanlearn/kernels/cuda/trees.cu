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

// Maximum-weight arborescence by the algorithm of kernels/trees.py, with one warp.
//
// kernels/trees.py stores a matrix of weights between all nodes. Here, only the candidates have weights, so that shared
// memory can hold them. A contracted node is a ring of features, and its edges are the edges into these features. When
// a node is contracted, the weight of its chosen edge is subtracted from the weights of all edges into it. Lanes
// process the edges of a feature in parallel. The first lane updates the nodes.

template <class Index> struct Graph {
    int d;  // features 0 to d - 1, root d, and the contracted nodes from d + 1 on in the order of their creation
    const Index* group;  // (d + 1,): edges into each feature, which are numbered from group[0] on
    const Index* parents;  // source of each edge at every `stride`-th number; negative for the root
    int stride;
    double* weight;  // (edges,)
    int *edge, *target;  // (2 d + 1,): chosen edge into each node, and the feature that it enters
    int* around;  // (2 d + 1,): contracted node that contains the node, or -1
    int* state;  // (2 d + 1,): 0 unvisited, 1 on the path, 2 connected to the root; position in the cycle if contracted
    int *outer, *next;  // (d,): outermost node around each feature, and the next feature in its ring
};

template <class Index>
__device__ __forceinline__ Graph<Index> make_graph(
    int d, const Index* group, const Index* parents, int stride, double* weight, int* work) {
    const int n = 2 * d + 1;
    return {d, group, parents, stride, weight, work, work + n, work + 2 * n, work + 3 * n, work + 4 * n, work + 5 * n};
}

// Return the first edge into a feature.
template <class Index> __device__ __forceinline__ int first_of(const Graph<Index>& graph, int i) {
    return graph.group[i] - graph.group[0];
}

template <class Index> __device__ __forceinline__ int source_of(const Graph<Index>& graph, int e) {
    const int j = graph.parents[(long long)graph.stride * e];
    return j < 0 ? graph.d : j;
}

template <class Index> __device__ __forceinline__ int outermost(const Graph<Index>& graph, int node) {
    return node == graph.d ? node : graph.outer[node];
}

// Return the source of the edge that is chosen for a node.
template <class Index> __device__ __forceinline__ int above(const Graph<Index>& graph, int node) {
    return outermost(graph, source_of(graph, graph.edge[node]));
}

// Copy the weights of the edges, and make each feature a node.
template <class Index>
__device__ __forceinline__ void start_graph(
    const Graph<Index>& graph, const double* perturbed, int thread, int n_threads) {
    for (int e = thread; e < first_of(graph, graph.d); e += n_threads) graph.weight[e] = perturbed[e];
    for (int i = thread; i <= graph.d; i += n_threads) {
        graph.around[i] = -1;
        graph.state[i] = i == graph.d ? 2 : 0;
        if (i < graph.d) graph.outer[i] = graph.next[i] = i;
    }
}

struct Choice {
    double weight;
    int source, edge, target;  // source is the outermost node; edge is -1 for none
};

// Return the node among the members of a contracted node that contains a node.
template <class Index> __device__ int member_of(const Graph<Index>& graph, int node, int contracted) {
    while (graph.around[node] != contracted) node = graph.around[node];
    return node;
}

// Return whether a choice of the same weight and source goes before another. As in kernels/trees.py, the node that was
// created last decides, by the order of its members in their cycle, and then the members themselves.
template <class Index>
__device__ bool precedes(const Graph<Index>& graph, const Choice& one, const Choice& other, int target) {
    int source = one.source;
    while (target > graph.d || source > graph.d) {
        const bool by_target = target > source;
        const int node = by_target ? target : source;
        const int a = member_of(graph, by_target ? one.target : source_of(graph, one.edge), node);
        const int b = member_of(graph, by_target ? other.target : source_of(graph, other.edge), node);
        if (a != b) return graph.state[a] < graph.state[b];
        if (by_target)
            target = a;
        else
            source = a;
    }
    return one.edge < other.edge;
}

// Return whether the first choice is better. Ties go to the root, then to the source with the lowest number.
template <class Index>
__device__ __forceinline__ bool is_better(
    const Graph<Index>& graph, const Choice& one, const Choice& other, int target) {
    if (one.edge < 0 || one.weight < other.weight) return false;
    if (other.edge < 0 || one.weight > other.weight) return true;
    if (one.source != other.source)
        return one.source == graph.d || (other.source != graph.d && one.source < other.source);
    return one.edge != other.edge && precedes(graph, one, other, target);
}

// Choose the heaviest edge into a node from outside; `feature` belongs to the node. Weights of nan count as -infinity.
template <class Index> __device__ __forceinline__ void choose_edge(const Graph<Index>& graph, int node, int feature) {
    Choice best{MINUS_INFINITY, -1, -1, -1};
    int i = feature;
    do {
        for (int e = first_of(graph, i) + lane_number(); e < first_of(graph, i + 1); e += WARP) {
            const double weight = graph.weight[e] > MINUS_INFINITY ? graph.weight[e] : MINUS_INFINITY;
            const Choice rival{weight, outermost(graph, source_of(graph, e)), e, i};
            if (rival.source != node && is_better(graph, rival, best, node)) best = rival;
        }
        i = graph.next[i];
    } while (i != feature);
    for (int step = WARP / 2; step > 0; step /= 2) {
        const Choice rival{
            __shfl_xor_sync(ALL_LANES, best.weight, step), __shfl_xor_sync(ALL_LANES, best.source, step),
            __shfl_xor_sync(ALL_LANES, best.edge, step), __shfl_xor_sync(ALL_LANES, best.target, step)};
        if (is_better(graph, rival, best, node)) best = rival;
    }
    if (lane_number() == 0) {
        graph.edge[node] = best.edge;
        graph.target[node] = best.target;
    }
    __syncwarp();
}

// Replace the cycle through `member` by the node `top`.
template <class Index> __device__ __forceinline__ void contract(const Graph<Index>& graph, int member, int top) {
    const int feature = graph.target[member];
    int node = member, position = 0;
    do {
        const int source = above(graph, node), own = graph.target[node];
        const double chosen = graph.weight[graph.edge[node]];
        __syncwarp();  // all lanes have read the weight
        int i = own;
        do {
            const int last = first_of(graph, i + 1);
            for (int e = first_of(graph, i) + lane_number(); e < last; e += WARP) graph.weight[e] -= chosen;
            i = graph.next[i];
        } while (i != own);
        __syncwarp();  // all lanes have passed through the ring
        if (lane_number() == 0) {
            graph.around[node] = top;
            graph.state[node] = position;
            if (node != member) {  // join the rings
                const int after = graph.next[own];
                graph.next[own] = graph.next[feature];
                graph.next[feature] = after;
            }
        }
        position++;
        node = source;
    } while (node != member);
    if (lane_number() == 0) {
        graph.around[top] = -1;
        graph.state[top] = 0;
        int i = feature;
        do {
            graph.outer[i] = top;
            i = graph.next[i];
        } while (i != feature);
    }
    __syncwarp();
    choose_edge(graph, top, feature);
}

// Write the edges of the heaviest tree to graph.edge. The edges of all features must have been chosen.
template <class Index> __device__ __forceinline__ void maximum_arborescence(const Graph<Index>& graph) {
    int size = graph.d + 1;
    for (int start = 0; start < graph.d; start++) {
        int node = graph.outer[start];
        while (graph.state[node] != 2) {
            // After contractions, other sources of equally heavy edges may have lower numbers.
            if (node < graph.d && above(graph, node) > graph.d) choose_edge(graph, node, node);
            const int source = above(graph, node), seen = graph.state[source];
            __syncwarp();  // all lanes have read the state
            if (lane_number() == 0) graph.state[node] = 1;
            if (seen == 1) {
                contract(graph, source, size);
                node = size++;
            } else if (seen == 0) {
                node = source;
            } else {  // the whole path is connected to the root now
                node = graph.outer[start];
                if (lane_number() == 0)
                    for (int end = node; graph.state[end] == 1; end = above(graph, end)) graph.state[end] = 2;
            }
            __syncwarp();
        }
    }
    if (lane_number() == 0)
        for (int top = size - 1; top > graph.d; top--) {  // break each cycle at the node that its chosen edge enters
            const int member = member_of(graph, graph.target[top], top);
            graph.edge[member] = graph.edge[top];
            graph.target[member] = graph.target[top];
        }
    __syncwarp();
}
