"""Class entropies within groups of samples: joint entropies of many features without dense joint counts."""
# Shapes: n samples sorted by group, d features, C classes. codes (d, n_all); samples (n,): sample numbers
# start (G + 1,): group g is samples[start[g]:start[g + 1]]; y (n_all,); weight (n_all,) float64
# total: weight of all samples, including those in no group
# counts (K, C), totals (K,) for K the most values: scratch, zero before and after; entropy (d,)

from __future__ import annotations

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.mathematics import nats, unit_scale, xlogx


@kernel
def class_entropies(codes, samples, start, y, weight, total, features, counts, totals, entropy):  # type: ignore[no-untyped-def]
    """Write H(C | group, feature) in nats of each feature, times the weight of the grouped samples over ``total``.

    Only values that occur in a group are visited (order-based, section 4.1, on sparse joint distributions).
    """
    n_classes = counts.shape[1]
    scale = unit_scale(total)
    for f in range(features.shape[0]):
        x = codes[features[f]]
        units = np.int64(0)
        for g in range(start.shape[0] - 1):
            for s in range(start[g], start[g + 1]):
                n = samples[s]
                counts[x[n], y[n]] += weight[n]
                totals[x[n]] += weight[n]
            for s in range(start[g], start[g + 1]):
                v = x[samples[s]]
                if totals[v] > 0.0:
                    units += xlogx(totals[v], scale)
                    row = counts[v]
                    for c in range(n_classes):
                        units -= xlogx(row[c], scale)
                        row[c] = 0.0
                    totals[v] = 0.0
        entropy[f] = nats(units, scale, total)
