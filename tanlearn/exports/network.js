
// Log joint of a network; missing values are marginalized by variable elimination.

const MOST_OPERATIONS = 1e9;

function networkScores(network, codes) {
  const scores = Float64Array.from(network.prior);
  const isMissing = codes.map((code) => code < 0);
  if (!isMissing.includes(true)) {
    network.families.forEach((_, i) => addFamily(network, i, codes, scores));
    return scores;
  }
  if (!network.isAcyclic) {
    throw new RangeError("a value is missing or unseen, and the network has a cycle. Impute the value.");
  }
  const isUsed = usedFeatures(network, isMissing);
  let factors = [];
  network.families.forEach((_, i) => {
    if (!isUsed[i]) {
      return;
    }
    const scope = familyOf(network, i).filter((j) => isMissing[j]);
    if (scope.length) {
      factors.push(familyFactor(network, i, scope, codes));
    } else {
      addFamily(network, i, codes, scores);
    }
  });
  const left = new Set([...codes.keys()].filter((i) => isMissing[i] && isUsed[i]));
  while (left.size) {
    const [feature, scope] = cheapest(network, left, factors);
    left.delete(feature);
    const joined = factors.filter((factor) => factor.scope.includes(feature));
    factors = factors.filter((factor) => !factor.scope.includes(feature));
    factors.push(sumOver(network, feature, scope, joined));
  }
  for (const { table } of factors) {
    scores.forEach((_, y) => {
      scores[y] += table[y];
    });
  }
  return scores;
}

/** Return which features matter: in normalized CPTs, missing features without observed descendants sum to one. */
function usedFeatures(network, isMissing) {
  const isUsed = isMissing.map(() => true);
  if (network.isNormalized) {
    for (const i of network.upward) {
      isUsed[i] = !isMissing[i] || network.children[i].some((child) => isUsed[child]);
    }
  }
  return isUsed;
}

function familyOf(network, i) {
  return [i, ...network.families[i].parents];
}

/** Add log P(feature | parents, class) to scores, from entry `at` on. */
function addFamily(network, i, codes, scores, at = 0) {
  const nClasses = network.prior.length;
  for (const { features, groups, sizes, cells } of network.families[i].terms) {
    let cell = 0;
    for (let k = 0; k < features.length; k++) {
      const code = codes[features[k]];
      cell = cell * sizes[k] + (groups ? groups[k][code] : code);
    }
    for (let y = 0; y < nClasses; y++) {
      scores[at + y] += cells[cell * nClasses + y];
    }
  }
}

function sizeOf(network, scope) {
  return scope.reduce((size, j) => size * network.nStates[j], network.prior.length);
}

/** Call a function with the number of each combination of values of some features, which are set in `codes`. */
function forEachValue(network, scope, codes, visit) {
  const n = sizeOf(network, scope) / network.prior.length;
  for (let number = 0; number < n; number++) {
    let rest = number;
    for (let k = scope.length - 1; k >= 0; k--) {
      codes[scope[k]] = rest % network.nStates[scope[k]];
      rest = Math.floor(rest / network.nStates[scope[k]]);
    }
    visit(number);
  }
}

function checkedTable(network, scope, nValues) {
  if (sizeOf(network, scope) * nValues > MOST_OPERATIONS) {
    throw new RangeError("too many values are missing or unseen to marginalize them. Impute some of them.");
  }
  return new Float64Array(sizeOf(network, scope));
}

function familyFactor(network, i, scope, codes) {
  const table = checkedTable(network, scope, 1);
  const own = codes.slice();
  forEachValue(network, scope, own, (number) => addFamily(network, i, own, table, number * network.prior.length));
  return { scope, table };
}

/** Return the feature whose elimination gives the smallest table, and the features of that table. */
function cheapest(network, left, factors) {
  let best = null;
  for (const feature of left) {
    const joined = factors.filter((factor) => factor.scope.includes(feature));
    const scope = [...new Set(joined.flatMap((factor) => factor.scope))].filter((j) => j !== feature);
    const size = sizeOf(network, scope) * network.nStates[feature];
    if (best === null || size < best[2]) {
      best = [feature, scope, size];
    }
  }
  return best;
}

function position(network, scope, codes) {
  return scope.reduce((number, j) => number * network.nStates[j] + codes[j], 0);
}

/** Return the log of the sum, over the values of a feature, of the product of factors. */
function sumOver(network, feature, scope, factors) {
  const nClasses = network.prior.length;
  const nValues = network.nStates[feature];
  const table = checkedTable(network, scope, nValues);
  const codes = [];
  const logs = new Float64Array(nValues * nClasses);
  forEachValue(network, scope, codes, (number) => {
    logs.fill(0);
    for (let v = 0; v < nValues; v++) {
      codes[feature] = v;
      for (const factor of factors) {
        const at = position(network, factor.scope, codes) * nClasses;
        for (let y = 0; y < nClasses; y++) {
          logs[v * nClasses + y] += factor.table[at + y];
        }
      }
    }
    for (let y = 0; y < nClasses; y++) {
      let most = -Infinity;
      for (let v = 0; v < nValues; v++) {
        most = Math.max(most, logs[v * nClasses + y]);
      }
      let sum = 0;
      for (let v = 0; v < nValues && most > -Infinity; v++) {
        sum += Math.exp(logs[v * nClasses + y] - most);
      }
      table[number * nClasses + y] = most > -Infinity ? most + Math.log(sum) : most;
    }
  });
  return { scope, table };
}
