
// Scores of a forest: weighted gains of the contexts of each family in each network.

function merged(merging, codes) {
  return codes.map((code, i) => {
    const last = merging.start[i + 1] - 1;
    return merging.merged[code < 0 ? last : merging.start[i] + code];
  });
}

function forestScores(forest, codes) {
  const nClasses = forest.logPrior.length;
  const mean = new Float64Array(nClasses);
  const groups = forest.isAverage ? forest.networks.map((network) => [network]) : [forest.networks];
  for (const group of groups) {
    const scores = Float64Array.from(forest.logPrior);
    for (const network of group) {
      addGains(network, merged(network, codes), scores);
    }
    const best = Math.max(...scores);
    const total = scores.reduce((sum, score) => sum + Math.exp(score - best), 0);
    scores.forEach((score, y) => {
      mean[y] += Math.exp(score - best) / total / groups.length;
    });
  }
  const noise = forest.labelNoise;
  return mean.map((p, y) => Math.log(p * (1 - noise) + noise / nClasses) + forest.shift[y]);
}

function find(values, first, last, value) {
  while (first < last) {
    const middle = (first + last) >> 1;
    if (values[middle] < value) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}

/** Add the weighted gains of a row; values of at least the number of values of a feature are missing. */
function addGains(network, codes, scores) {
  const { root, children, branch, classStart, classes: known, valueStart, values, entryStart, gain, unseen } = network;
  const nClasses = scores.length;
  for (let f = 0; f < root.length; f++) {
    const x = codes[f];
    if (x >= network.nStates[f]) {
      continue;
    }
    const stop = f + 1 < root.length ? root[f + 1] : branch.length;
    const weights = network.weights[f];
    const top = entryStart[valueStart[root[f]]] + x * nClasses; // a root has all values and classes
    for (let y = 0; y < nClasses; y++) {
      scores[y] += weights[0] * gain[top + y];
    }
    let node = root[f];
    for (let level = 1; level < weights.length && network.parents[f][level - 1] >= 0; level++) {
      const value = codes[network.parents[f][level - 1]];
      const end = Math.min(children[node + 1], stop);
      node = find(branch, children[node], end, value);
      if (node === end || branch[node] !== value) {
        break;
      }
      const place = find(values, valueStart[node], valueStart[node + 1], x);
      const isSeen = place < valueStart[node + 1] && values[place] === x;
      let entry = isSeen ? entryStart[place] : 0;
      for (let q = classStart[node]; q < classStart[node + 1]; q++) {
        scores[known[q]] += weights[level] * (isSeen ? gain[entry++] : unseen[q]);
      }
    }
  }
}
