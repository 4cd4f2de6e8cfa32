// What a chart draws of more series than lines can be told apart, of the agent's answer with bands: the lowest, the middle and the
// highest value, with the series that lie apart by name; or, of families with further labels than those of a rank, such as the phase, the
// middle of each.
import { naturally } from './labels.js';

const nameOf = ({ labels }) => Object.values(labels).join(' ') || '–';
const count = (n) => n.toLocaleString('en');

function asGroups(bands, times) {
  const groups = [...bands].sort((a, b) => naturally(nameOf(a), nameOf(b)));
  const by = [...new Set(groups.flatMap(({ labels }) => Object.keys(labels)))];
  return {
    lines: groups.map((band, group) => ({ set: null, group, variant: 0, name: nameOf(band) })),
    rows: times.map((time, i) => [time, ...groups.map(({ median }) => median[i])]),
    hasBand: false,
    manyText: `middle of ${count(bands.reduce((sum, { sets }) => sum + sets, 0))} series by ${by.join(', ')}`,
  };
}

function asBand({ sets, min, median, max, high }, apart, names, times) {
  const edges = [['min', min], ['median', median], ['max', max], ...(high ? [[names.high, high]] : [])];
  return {
    lines: [...edges.map(([name], band) => ({ set: null, band, variant: 0, name })), ...apart],
    rows: times.map((time, i) => [time, ...edges.map(([, values]) => values[i]), ...apart.map(({ values }) => values[i] ?? null)]),
    hasBand: true,
    manyText: [names.middle, `${count(sets)} series`].filter(Boolean).join(' of '),
  };
}

// Members of the card. `sets`: those that the agent has chosen, each with one line. `names`: of the middle and the highest quantile.
export function manyOf({ bands }, sets, names, times) {
  const bandOf = ({ labels }) => bands.find((band) => Object.entries(band.labels).every(([name, value]) => labels[name] === value)) ?? bands[0];
  const ordered = [...sets].sort((a, b) => naturally(nameOf(bandOf(a)), nameOf(bandOf(b))) || naturally(a.place, b.place));
  const lines = ordered.map((set) => set.lines[0]);
  const apart = lines.filter((line) => line.apart);
  const of = ordered.map(bandOf);
  return {
    ...(bands.length > 1 ? asGroups(bands, times) : asBand(bands[0], apart, names, times)),
    sets: ordered,
    heat: { series: lines.map(({ values }) => values), times, middles: of.map(({ median }) => median), usual: of.map(({ usual }) => usual) },
  };
}
