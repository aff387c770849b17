// Encoding of raw values, and class probabilities from scores. MODEL and scoresOf are defined below.

/** Classes, in the order of the results of predictProba. */
export const classes = MODEL.classes;

/** Names of the columns in a row; null if rows are arrays. */
export const columns = MODEL.hasNames ? MODEL.columns.map((column) => column.name) : null;

/** Return the most probable class of a row, an object of raw values by column name; null is a missing value. */
export function predict(row) {
  const scores = shifted(classScores(row));
  return classes[scores.indexOf(Math.max(...scores))];
}

/** Return the probability of each class, in the order of `classes`. */
export function predictProba(row) {
  return predictLogProba(row).map(Math.exp);
}

/** Return the log probability of each class, in the order of `classes`. */
export function predictLogProba(row) {
  const { temperature, power, pivot } = MODEL.calibration;
  const scores = shifted(classScores(row));
  const best = Math.max(...scores);
  const distances = scores.map((score) => best - score);
  if (power === 1) {
    return logPosterior(distances.map((distance) => -distance / temperature));
  }
  const unit = Math.exp((Math.log(temperature) + (power - 1) * Math.log(pivot)) / power);
  return logPosterior(distances.map((distance) => -((distance / unit) ** power)));
}

function classScores(row) {
  const scores = Array.from(scoresOf(encode(row)));
  const isImpossible = MODEL.scoresWithoutFeatures && scores.every((score) => score === -Infinity);
  return isImpossible ? MODEL.scoresWithoutFeatures : scores;
}

function shifted(scores) {
  const shift = MODEL.calibration.prior_shift;
  return shift ? scores.map((score, y) => score + shift[y]) : scores;
}

function logPosterior(scores) {
  const best = Math.max(...scores);
  const total = scores.reduce((sum, score) => sum + Math.exp(score - best), 0);
  return scores.map((score) => score - best - Math.log(total));
}

function encode(row) {
  return MODEL.columns.map((column, i) => {
    const key = MODEL.hasNames ? column.name : i;
    if (row === null || typeof row !== "object" || !(key in row)) {
      throw new TypeError(`the row has no column ${JSON.stringify(key)}. Pass null for a missing value.`);
    }
    return codeOf(column, row[key]);
  });
}

function codeOf(column, given) {
  const value = typeof given === "boolean" || typeof given === "bigint" ? Number(given) : given;
  if (value === null || value === undefined || Number.isNaN(value)) {
    return column.missing;
  }
  const isString = typeof value === "string";
  if (!isString && typeof value !== "number") {
    throw new TypeError(`column ${JSON.stringify(column.name)} has a value that is neither a string nor a number.`);
  }
  if (value === Infinity || value === -Infinity) {
    throw new RangeError(`column ${JSON.stringify(column.name)} is infinite. Pass null for a missing value.`);
  }
  if (column.cutPoints) {
    if (isString) {
      throw new TypeError(`column ${JSON.stringify(column.name)} must be a number, got ${JSON.stringify(value)}.`);
    }
    return countBelow(column.cutPoints, value);
  }
  const code = column.codes.get(value);
  if (code !== undefined) {
    return code;
  }
  if (column.codes.size && isString !== column.isText) {
    const kind = column.isText ? "a string" : "a number";
    throw new TypeError(`column ${JSON.stringify(column.name)} must be ${kind}, got ${JSON.stringify(value)}.`);
  }
  if (column.refusesUnseen) {
    throw new RangeError(`column ${JSON.stringify(column.name)} has an unseen category: ${JSON.stringify(value)}.`);
  }
  return -1;
}

function countBelow(cutPoints, value) {
  let first = 0;
  let last = cutPoints.length;
  while (first < last) {
    const middle = (first + last) >> 1;
    if (cutPoints[middle] < value) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}
