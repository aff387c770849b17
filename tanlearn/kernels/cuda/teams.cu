// Teams: the threads that process one CPT or one feature, a warp (TEAM = 32) or a whole block (TEAM = 256). All threads
// of a team reach its barriers together.

#define BLOCK 256
#define TEAMS (BLOCK / TEAM)
#define TEAM_WARPS (TEAM / WARP)

__device__ __forceinline__ int team_thread() { return threadIdx.x % TEAM; }
__device__ __forceinline__ int team_warp() { return threadIdx.x % TEAM / WARP; }
__device__ __forceinline__ long long team_number() { return thread_number() / TEAM; }

__device__ __forceinline__ void team_sync() {
    if (TEAM == WARP)
        __syncwarp();
    else
        __syncthreads();
}

// Return the value of the team's first thread, in all threads.
__device__ __forceinline__ int team_broadcast(int value) {
    if (TEAM == WARP) return __shfl_sync(ALL_LANES, value, 0);
    __shared__ int first;
    __syncthreads();  // the previous value has been read
    if (threadIdx.x == 0) first = value;
    __syncthreads();
    return first;
}

// Return the sum over the warps of a team, in the order of the warps, in all threads.
__device__ __forceinline__ double team_sum(double value) {
    if (TEAM == WARP) return value;
    __shared__ double parts[TEAM_WARPS];
    __syncthreads();  // the previous parts have been read
    if (lane_number() == 0) parts[team_warp()] = value;
    __syncthreads();
    double total = 0;
    for (int warp = 0; warp < TEAM_WARPS; warp++) total += parts[warp];
    return total;
}
