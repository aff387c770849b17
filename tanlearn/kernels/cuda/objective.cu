// Row weights in the objective of a fixed structure.

// Multiply the gradient of each row by the row's weight in the mean. One thread per sample and class.
extern "C" __global__ void weigh_rows(
    long long n, const double* __restrict__ row_weight, long long n_classes, double* __restrict__ d_scores) {
    const long long number = thread_number();
    if (number < n) d_scores[number] *= row_weight[number / n_classes];
}
