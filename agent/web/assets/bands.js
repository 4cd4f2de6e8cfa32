// Many series as a band: the lowest, the middle and the highest value of each moment, and by name the series that lie apart.

const MAX_OUTLIERS = 4;
const NEWEST_SHARE = 4; // a quarter of the points tells which series lie apart
const APART = 6; // times the usual distance from the middle
const LEAST_APART = 0.1; // of the middle: below this, ranks are alike

const isNumber = (value) => Number.isFinite(value);

export function median(values) {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

// [[lowest, middle, highest], ...] of each point of the series, [null, null, null] where none has a number. `series`: arrays of values.
export function bandOf(series, points) {
  return Array.from({ length: points }, (_, i) => {
    const values = series.map((each) => each[i]).filter(isNumber).sort((a, b) => a - b);
    return values.length === 0 ? [null, null, null] : [values[0], median(values), values.at(-1)];
  });
}

// The indexes of the series that lie apart from the others in the newest points, the farthest first: those with a value that is no
// number, and those that are far from the middle.
export function outliersOf(series, points) {
  const first = points - Math.max(Math.ceil(points / NEWEST_SHARE), 1);
  const means = series.map((values) => {
    const newest = values.slice(first);
    const numbers = newest.filter(isNumber);
    if (newest.some((value) => value !== null && value !== undefined && !isNumber(value))) return Infinity;
    return numbers.length === 0 ? null : numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
  });
  const known = means.filter(isNumber);
  const areOdd = means.filter((mean) => mean === Infinity).length > means.length / 2; // they are no exception
  const middle = median(known) ?? 0;
  const usual = median(known.map((mean) => Math.abs(mean - middle))) ?? 0;
  const apart = Math.max(APART * usual, LEAST_APART * Math.abs(middle));
  const distance = (i) => Math.abs(means[i] - middle);
  return means
    .map((mean, i) => i)
    .filter((i) => means[i] !== null && distance(i) > apart && !(areOdd && means[i] === Infinity))
    .sort((a, b) => (distance(a) === distance(b) ? a - b : distance(b) - distance(a)))
    .slice(0, MAX_OUTLIERS);
}
