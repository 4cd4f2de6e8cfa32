// The legend of a chart: the lines by name, each with its value.
import { make, setText, svg } from './dom.js';
import { nameSets } from './labels.js';
import { lineStyle } from './line_style.js';
import { view } from './view.js';

const MAX_VALUES = 5; // beyond them: those that lie apart, the first others, and how many more there are

// The rows to show, of which each has the lines of a label set. "1 more" would take the place of a row.
function shownRows(rows) {
  const most = Math.max(2, Math.floor(MAX_VALUES / (rows[0]?.length || 1)));
  if (rows.length <= most + 1) return rows;
  const apart = rows.filter((of) => of.some((line) => line.apart)).slice(0, most);
  const others = rows.filter((row) => !apart.includes(row)).slice(0, most - apart.length);
  return rows.filter((row) => apart.includes(row) || others.includes(row));
}

function showRows(card, rows) {
  const shown = card.isBand ? rows : shownRows(rows);
  rows.forEach((row, i) => {
    card.legend.children[i].hidden = !card.isLegendOpen && !shown.includes(row);
  });
  const rest = card.legend.lastChild;
  rest.hidden = shown.length === rows.length;
  setText(rest.firstChild, card.isLegendOpen ? 'fewer' : `and ${rows.length - shown.length} more`);
}

function makeEntry(card, line, name) {
  const { color, dash, width } = lineStyle(card, line);
  const swatch = svg('svg', { viewBox: '0 0 18 4', class: 'swatch', 'aria-hidden': 'true' });
  swatch.append(svg('path', { d: 'M0 2h18', stroke: color, 'stroke-width': width + 0.6, 'stroke-dasharray': dash?.join(' ') ?? 'none' }));
  line.output = make('b');
  return make('span.line', {}, swatch, ...(name ? [make('span', {}, name)] : []), line.output);
}

// A row for each label set, with the name and the value of each of its lines; of a band, a row for its edges. Returns the elements of
// the values, in the order of the lines.
export function showLegend(card) {
  const { lines, isBand, legend, kind } = card;
  const sets = lines.length > 0 ? card.sets : [];
  const names = nameSets(sets.map((set) => set.labels));
  const share = card.isShare ? 'share of the time' : card.rate && 'per second';
  const by = names.by && !(isBand && !card.hasBand) && `by ${names.by}`;
  setText(kind, [share, isBand && card.manyText, names.common, by].filter(Boolean).join(' · '));
  kind.title = kind.textContent;
  const named = new Map(sets.map((set, i) => [set.id, sets.length > 1 ? names.each[i] : '']));
  const key = JSON.stringify([view.theme, isBand, lines.map((line) => [line.name, line.set && named.get(line.set.id)])]);
  const edges = lines.filter(({ set }) => set === null);
  const rows = isBand ? [edges, ...lines.slice(edges.length).map((line) => [line])] : sets.map((set) => set.lines);
  if (key === card.legendKey) {
    // Of the same lines in newer answers.
    lines.forEach((line, i) => {
      line.output = card.outputs[i];
    });
    showRows(card, rows);
    return card.outputs;
  }
  card.legendKey = key;
  const elements = rows.map((of) => {
    const row = make('li', {});
    const name = of[0].set ? named.get(of[0].set.id) : '';
    const isAlone = of.length === 1;
    if (name && !isAlone) row.append(make('span.set', {}, name));
    row.append(...of.map((line) => makeEntry(card, line, isAlone ? (isBand ? name : line.name || name) : line.name)));
    return row;
  });
  const rest = make('button', { type: 'button' });
  rest.addEventListener('click', () => {
    card.isLegendOpen = !card.isLegendOpen;
    showLegend(card);
  });
  legend.replaceChildren(...elements, make('li.rest', {}, rest));
  showRows(card, rows);
  return lines.map((line) => line.output);
}
