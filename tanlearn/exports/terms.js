
// Scores of boosted terms: tables over the sides of some splits.

/** Return the mean value of the cells on the sides of the known values, with their weights; 0 without weight. */
function meanOfAgreeing({ weights, values }, cell, known, y, nClasses) {
  let total = 0;
  let sum = 0;
  for (let other = 0; other < weights.length; other++) {
    if (((other ^ cell) & known) === 0) {
      total += weights[other];
      sum += weights[other] * values[other * nClasses + y];
    }
  }
  return total > 0 ? sum / total : 0;
}

function termScores({ logPrior, splits, terms }, codes) {
  const scores = Float64Array.from(logPrior);
  const nClasses = scores.length;
  const sides = splits.map(([feature, sidesOfCodes]) => (codes[feature] < 0 ? -1 : Number(sidesOfCodes[codes[feature]])));
  for (const term of terms) {
    let cell = 0;
    let known = 0;
    term.splits.forEach((split, s) => {
      if (sides[split] >= 0) {
        cell += sides[split] << s;
        known += 1 << s;
      }
    });
    const isComplete = known + 1 === term.weights.length;
    for (let y = 0; y < nClasses; y++) {
      const own = isComplete ? term.values[cell * nClasses + y] : meanOfAgreeing(term, cell, known, y, nClasses);
      scores[y] += own;
    }
  }
  return scores;
}
