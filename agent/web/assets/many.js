// What a chart draws of more series than lines can be told apart: a band with outliers by name, or, of families with further labels
// than those of a rank, such as the phase, the middle of all ranks for each of their values.
import { bandOf, outliersOf } from './bands.js';
import { naturally } from './labels.js';

const OF_RANK = ['job', 'role', 'instance', 'ip_addr', 'process'];
const MAX_GROUPS = 12;

const valueAt = (values, i) => values[i] ?? null;

// By the values of the labels that are not the rank's; of one group: a band says more.
function groupsOf(sets) {
  const names = [...new Set(sets.flatMap(({ labels }) => Object.keys(labels)))].filter((name) => !OF_RANK.includes(name));
  const differ = names.filter((name) => new Set(sets.map(({ labels }) => labels[name])).size > 1);
  const groups = new Map();
  for (const set of sets) {
    const name = differ.map((label) => set.labels[label] ?? '–').join(' ');
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(set);
  }
  const isUsual = groups.size < 2 || groups.size > MAX_GROUPS;
  return { by: differ.join(', '), groups: isUsual ? [] : [...groups].sort(([a], [b]) => naturally(a, b)) };
}

function asGroups({ by, groups }, lineOf, times) {
  const sets = groups.flatMap(([, of]) => of);
  const middles = groups.map(([, of]) => bandOf(of.map((set) => lineOf(set).values), times.length).map(([, middle]) => middle));
  return {
    sets,
    lines: groups.map(([name], group) => ({ set: null, group, variant: 0, name })),
    rows: times.map((time, i) => [time, ...middles.map((of) => of[i])]),
    heat: { series: sets.map((set) => lineOf(set).values), times, middles: groups.flatMap(([, of], group) => of.map(() => middles[group])) },
    hasBand: false,
    manyText: `middle of ${sets.length.toLocaleString('en')} series by ${by}`,
  };
}

// Lines of the lowest, the middle and the highest value, and of the series that lie apart.
function asBand(sets, lineOf, times) {
  const of = sets.map(lineOf);
  const series = of.map(({ values }) => values);
  const band = bandOf(series, times.length);
  const edges = ['min', 'median', 'max'].map((name, i) => ({ set: null, band: i, variant: 0, name }));
  const outliers = outliersOf(series, times.length).map((i) => of[i]);
  const middle = band.map(([, each]) => each);
  return {
    sets,
    lines: [...edges, ...outliers],
    rows: times.map((time, i) => [time, ...band[i], ...outliers.map(({ values }) => valueAt(values, i))]),
    heat: { series, times, middles: series.map(() => middle) },
    hasBand: true,
    manyText: [of[0].name, `${sets.length.toLocaleString('en')} series`].filter(Boolean).join(' of '),
  };
}

// Members of the card. `variants`: null, the mean or the only value, then the quantiles in ascending order. Of these, the middle one
// is shown if there is no mean.
export function manyOf(sets, variants, times) {
  const distance = (q) => (q === null ? -1 : Math.abs(q - 0.5));
  const shown = [...variants.keys()].sort((a, b) => distance(variants[a]) - distance(variants[b]))[0];
  const lineOf = (set) => set.lines.find(({ variant }) => variant === shown) ?? set.lines[0];
  const groups = groupsOf(sets);
  return groups.groups.length > 0 ? asGroups(groups, lineOf, times) : asBand(sets, lineOf, times);
}
