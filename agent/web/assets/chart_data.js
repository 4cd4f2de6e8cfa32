// What a chart draws of the agent's answers: its rows, the range of its values, and the values that are no numbers.

const ODD_VALUES = { NaN, '+Inf': Infinity, '-Inf': -Infinity };

// The part of `rows` to draw, for slice(): the window, and a row on either side to which the lines lead.
export function drawnRows(rows, { from, to }) {
  const inside = rows.findIndex(([time]) => time >= from);
  return [Math.max((inside < 0 ? rows.length : inside) - 1, 0), rows.findLastIndex(([time]) => time <= to) + 2];
}

export function valueRange(rows, fromZero, isTime) {
  const values = rows.flatMap(([, ...each]) => each.filter(Number.isFinite));
  if (values.length === 0) return [0, 1];
  const low = values.reduce((a, b) => Math.min(a, b));
  const high = values.reduce((a, b) => Math.max(a, b));
  if (isTime) return [low - 10, high + 10];
  if (low >= 0 && (fromZero || low < high / 2 || low === high)) return [0, high === 0 ? 1 : high * 1.12];
  const margin = (high - low || Math.abs(high)) * 0.12;
  return [low - margin, high + margin];
}

// The values of a series; those that JSON cannot have are listed beside them.
export function withOdd({ values, not_finite: odd = [] }) {
  if (odd.length === 0) return values;
  const all = [...values];
  for (const [i, text] of odd) all[i] = ODD_VALUES[text];
  return all;
}

// The times at which lines have a value that is no number: [{set, value, from, to, goesOn}], the newest first. `goesOn`: at the end.
export function oddOf(lines, times) {
  const found = [];
  for (const { set, values } of lines) {
    let span = null;
    values.forEach((value, i) => {
      const isOdd = value !== null && value !== undefined && !Number.isFinite(value);
      if (isOdd && span?.value === String(value)) {
        span.to = times[i];
      } else {
        span = isOdd ? { set, value: String(value), from: times[i], to: times[i] } : null;
        if (span) found.push(span);
      }
    });
  }
  const last = times.at(-1) - 3 * ((times[1] ?? times[0]) - times[0]); // the newest points may have no value yet
  for (const span of found) span.goesOn = span.to >= last;
  return found.sort((a, b) => b.to - a.to);
}

// [first, end) of the rows that have a band.
export function partsOf(rows) {
  const parts = [];
  rows.forEach(([, low], i) => {
    if (low === null) return;
    if (parts.at(-1)?.[1] === i) parts.at(-1)[1] = i + 1;
    else parts.push([i, i + 1]);
  });
  return parts;
}

// The rows in which a column has a number, and the rows beside them have none.
export function aloneIn(rows, column) {
  const isNumber = (at) => Number.isFinite(rows[at]?.[column]);
  return rows.map((_, at) => at).filter((at) => isNumber(at) && !isNumber(at - 1) && !isNumber(at + 1));
}
