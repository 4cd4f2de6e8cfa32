// The card of a family with its live chart. It requests data only while it is on the screen and the view's window has moved.
import { get } from './api.js';
import { make, setText, svg } from './dom.js';
import { focusKey, focusParameters } from './focus.js';
import { clock, number, ticks, unitOf } from './format.js';
import { nameSets } from './labels.js';
import { MetricCard } from './metric_card.js';
import { view } from './view.js';

// Okabe and Ito's colour-blind safe palette, in the light theme darker, so that each line has a contrast of 3:1 to its background.
const COLORS = {
  light: ['#0072b2', '#c14a00', '#00805d', '#b3568a', '#8a6100', '#2b86bb', '#555555'],
  dark: ['#56b4e9', '#e69f00', '#009e73', '#cc79a7', '#f0e442', '#d55e00', '#c8c8c8'],
};
const DASHES = [null, [6, 3], [2, 2]];
const MAX_LINES = 12;
const MAX_LABEL_SETS = 50;
const EVENT_COLOR = { light: '#b3568a', dark: '#cc79a7' };

// The other plugins, legend and labels, write markup with inline styles, which the page's policy forbids.
Dygraph.PLUGINS = [Dygraph.Plugins.Axes, Dygraph.Plugins.Grid];

// The part of `rows` to draw, for slice(): the window, and a row on either side to which the lines lead.
function drawnRows(rows, { from, to }) {
  const inside = rows.findIndex(([time]) => time >= from);
  return [Math.max((inside < 0 ? rows.length : inside) - 1, 0), rows.findLastIndex(([time]) => time <= to) + 2];
}

function valueRange(rows, fromZero, isTime) {
  const values = rows.flatMap(([, ...each]) => each.filter((value) => value !== null));
  if (values.length === 0) return [0, 1];
  const low = values.reduce((a, b) => Math.min(a, b));
  const high = values.reduce((a, b) => Math.max(a, b));
  if (isTime) return [low - 10, high + 10];
  if (low >= 0 && (fromZero || low < high / 2 || low === high)) return [0, high === 0 ? 1 : high * 1.12];
  const margin = (high - low || Math.abs(high)) * 0.12;
  return [low - margin, high + margin];
}

export class ChartCard extends MetricCard {
  constructor(family, last) {
    super(family, last);
    this.loaded = ''; // the window of the data
    this.unit = unitOf(family.name, family.unit);
    this.rate = family.type === 'counter';
    this.quantiles = family.type === 'histogram' || family.type === 'summary';
    this.limit = this.quantiles ? Math.floor(MAX_LINES / 3) : MAX_LINES;
    this.colors = new Map();
    this.lines = [];
    this.rows = [];
    this.firstDrawn = 0; // index in `rows` of the graph's first row
    this.yRange = null;
    this.graph = null;

    this.element.tabIndex = 0;
    this.element.setAttribute('role', 'group');
    this.element.setAttribute('aria-label', `Chart of ${family.name}`);
    this.surface = make('div.surface', { 'aria-hidden': 'true' });
    this.cursor = make('div.cursor', { hidden: '' });
    this.none = make('p.none', {}, 'loading');
    this.tip = make('div.tip', { hidden: '' });
    this.legend = make('ul.legend');
    this.more = make('p.more', { hidden: '' });
    const plot = make('div.plot', {}, this.surface, this.cursor, this.none, this.tip);
    // On the plot: without data there is no graph.
    plot.addEventListener('dblclick', () => this.unzoom());
    this.element.append(plot, this.legend, this.more);
    this.element.addEventListener('keydown', (event) => this.onKey(event));
    this.pointer = null; // x of the mouse, which may be between two points
    this.surface.addEventListener('mousemove', (event) => {
      this.pointer = event.clientX - this.surface.getBoundingClientRect().left;
      this.showCursor();
    });
    this.surface.addEventListener('mouseleave', () => {
      this.pointer = null;
    });
  }

  setShown(shown) {
    super.setShown(shown);
    // Its canvases take a megabyte, and there may be hundreds of cards.
    if (!shown) this.destroyGraph();
  }

  destroyGraph() {
    this.graph?.destroy();
    this.graph = null;
  }

  async refresh() {
    const { window } = view;
    if (!window || this.loading || view.noData !== '') return;
    const key = `${window.start} ${window.end} ${window.step} ${this.limit} ${focusKey()}`;
    if (key === this.loaded) return;
    this.loading = true;
    try {
      const span = { start: window.start, end: window.end, step: window.step / 1000, limit: this.limit, ...focusParameters() };
      const options = { wanted: () => view.cards.has(this) };
      const [main, last] = await Promise.all([
        get('query_range', { name: this.family.name, ...span }, options),
        this.last && get('query_range', { name: this.last.name, ...span }, options),
      ]);
      if (main === null || (this.last && last === null)) return;
      this.loaded = key;
      this.setData(main, last);
    } catch (error) {
      // Without status, the agent did not answer: the banner says so, and the last data stays.
      if (error.status === undefined) return;
      this.loaded = key; // the family has disappeared
      this.rows = [];
      this.lines = [];
    } finally {
      this.loading = false;
    }
    this.draw();
  }

  // Makes lines and rows of the agent's answers.
  setData(main, last) {
    const variants = this.quantiles ? [...new Set(main.series.map((each) => each.q))].sort((a, b) => a - b) : [undefined];
    const sets = new Map();
    const lines = [];
    const add = (series, variant, name) => {
      const id = JSON.stringify(Object.entries(series.labels).sort());
      if (!sets.has(id)) sets.set(id, { id, labels: series.labels, lines: [] });
      if (!this.colors.has(id)) this.colors.set(id, this.colors.size);
      const line = { set: sets.get(id), variant, name, values: series.values };
      line.set.lines.push(line);
      lines.push(line);
    };
    for (const series of main.series) {
      add(series, variants.indexOf(series.q), series.q === undefined ? '' : `p${Number((series.q * 100).toFixed(3))}`);
    }
    for (const series of last?.series ?? []) add(series, -1, 'last');

    // One time axis, even if a collection came between the two answers.
    const points = Math.max(main.points, last?.points ?? 0);
    const shift = last ? Math.round((last.start_ms - main.start_ms) / main.step_ms) : 0;
    this.rows = Array.from({ length: points }, (_, i) => [
      main.start_ms + i * main.step_ms,
      ...lines.map((line) => line.values[line.variant < 0 ? i - shift : i] ?? null),
    ]);
    this.lines = lines;
    this.sets = [...sets.values()];
    this.leftOut = Math.max(main.left_out, last?.left_out ?? 0);
  }

  style(line) {
    const palette = COLORS[view.theme];
    const index = this.colors.get(line.set.id);
    if (line.variant < 0) {
      return { color: this.sets.length === 1 ? palette.at(-1) : palette[index % palette.length], dash: [1, 3], width: 1.2 };
    }
    if (this.quantiles && this.sets.length === 1) return { color: palette[line.variant % palette.length], dash: null, width: 1.6 };
    const turn = this.quantiles ? line.variant : Math.floor(index / palette.length);
    return { color: palette[index % palette.length], dash: DASHES[turn % DASHES.length], width: 1.6 };
  }

  draw() {
    if (!view.cards.has(this) || !view.window) return;
    const empty = this.rows.every(([, ...values]) => values.every((value) => value === null));
    this.none.hidden = !empty;
    this.element.classList.toggle('empty', empty);
    const whose = view.focus === null ? '' : ` of ${view.focus.instance}`;
    if (empty) setText(this.none, view.noData || (this.loaded === '' ? 'loading' : `no data${whose} in this time range`));
    this.drawLegend();
    if (this.lines.length === 0) {
      this.destroyGraph();
      return;
    }
    const [first, end] = drawnRows(this.rows, view.window);
    const drawn = this.rows.slice(first, end);
    this.firstDrawn = first;
    const styles = this.lines.map((line) => this.style(line));
    const options = {
      file: drawn.map(([time, ...values]) => [new Date(time), ...values]),
      labels: ['time', ...this.lines.map((_, i) => `l${i}`)],
      colors: styles.map((style) => style.color),
      series: Object.fromEntries(styles.map((style, i) => [`l${i}`, { strokePattern: style.dash, strokeWidth: style.width }])),
      fillGraph: this.lines.length === 1,
      dateWindow: [view.window.from, view.window.to],
      valueRange: this.yRange ?? valueRange(drawn, this.rate || this.quantiles, this.unit === 'time'),
    };
    if (this.graph) {
      this.graph.updateOptions(options);
    } else {
      this.createGraph(options);
    }
    this.showCursor();
  }

  createGraph({ file, ...options }) {
    const { mousedown, willDestroyContextMyself } = Dygraph.defaultInteractionModel;
    this.graph = new Dygraph(this.surface, file, {
      ...options,
      // Without touch: on a phone a drag scrolls the page, and a tap shows values.
      interactionModel: { mousedown, willDestroyContextMyself },
      zoomCallback: (low, high, [range]) => this.zoomed(low, high, range),
      highlightCallback: (_, ms) => view.moveCursor(ms, this),
      unhighlightCallback: () => view.moveCursor(null),
      underlayCallback: (context, area, graph) => this.drawEvents(context, area, graph),
      fillAlpha: 0.12,
      pointSize: 2,
      highlightCircleSize: 3,
      gridLineColor: 'rgba(128, 128, 128, .22)',
      gridLineWidth: 1,
      axisLineColor: 'rgba(128, 128, 128, .4)',
      axisLabelFontSize: 11,
      xRangePad: 0,
      rightGap: 10,
      axes: {
        x: { drawGrid: false, pixelsPerLabel: 62, axisLabelWidth: 56 },
        y: {
          axisLabelWidth: 62,
          ticker: (low, high, pixels) => ticks(low, high, pixels / 34, this.unit, this.rate),
        },
      },
    });
  }

  zoomed(low, high, range) {
    const { from, to } = view.window;
    // A vertical zoom applies to this chart alone: others have other units.
    if (Math.abs(low - from) < 1 && Math.abs(high - to) < 1) {
      this.yRange = range;
    } else {
      view.zoomTo(low, high);
    }
  }

  unzoom() {
    this.yRange = null;
    view.zoomTo();
    this.draw();
  }

  drawEvents(context, area, graph) {
    context.save();
    context.strokeStyle = context.fillStyle = EVENT_COLOR[view.theme];
    context.lineWidth = 1;
    context.setLineDash([2, 2]);
    const { from, to } = view.window;
    const dense = view.events.filter(({ timestamp }) => timestamp >= from && timestamp <= to).length > 20;
    let before = -1;
    for (const event of view.events) {
      const x = Math.round(graph.toDomXCoord(event.timestamp)) + 0.5;
      if (x === before || x < area.x || x > area.x + area.w) continue; // marks on one pixel would add up to a solid line
      before = x;
      context.globalAlpha = dense ? 0.22 : 0.45;
      context.beginPath();
      context.moveTo(x, area.y);
      context.lineTo(x, area.y + area.h);
      context.stroke();
      context.globalAlpha = 0.9;
      context.beginPath();
      context.moveTo(x - 4, area.y);
      context.lineTo(x + 4, area.y);
      context.lineTo(x, area.y + 6);
      context.fill();
    }
    context.restore(); // the lines are drawn with the same context
  }

  // A row for each label set, with the name and the value of each of its lines.
  drawLegend() {
    const sets = this.lines.length > 0 ? this.sets : [];
    const names = nameSets(sets.map((set) => set.labels));
    const kind = [this.rate && 'per second', names.common, names.by && `by ${names.by}`];
    setText(this.kind, kind.filter(Boolean).join(' · '));
    this.kind.title = this.kind.textContent;
    const many = sets.length > 1;
    const key = JSON.stringify([view.theme, names.each, this.lines.map((line) => line.name)]);
    if (key !== this.legendKey) {
      this.legendKey = key;
      const rows = sets.map((set, i) => {
        const row = make('li', {});
        if (many && this.quantiles) row.append(make('span.set', {}, names.each[i]));
        for (const line of set.lines) {
          const { color, dash, width } = this.style(line);
          const swatch = svg('svg', { viewBox: '0 0 18 4', class: 'swatch', 'aria-hidden': 'true' });
          swatch.append(svg('path', { d: 'M0 2h18', stroke: color, 'stroke-width': width + 0.6, 'stroke-dasharray': dash?.join(' ') ?? 'none' }));
          line.output = make('b');
          const name = line.name || (many ? names.each[i] : '');
          row.append(make('span.line', {}, swatch, ...(name ? [make('span', {}, name)] : []), line.output));
        }
        return row;
      });
      this.outputs = this.lines.map((line) => line.output);
      this.legend.classList.toggle('columns', this.quantiles);
      this.legend.replaceChildren(...rows);
    }
    this.drawMore(sets.length);
  }

  // How many label sets are left out, and the button for more of them.
  drawMore(shown) {
    const all = shown + (this.leftOut ?? 0);
    this.more.hidden = shown === 0 || all === shown;
    const text = `${shown} of ${all} shown`;
    if (this.more.hidden || this.more.firstChild?.textContent === text) return;
    this.more.replaceChildren(make('span', {}, text));
    if (this.limit >= MAX_LABEL_SETS) return;
    const button = make('button', { type: 'button' }, all <= MAX_LABEL_SETS ? 'Show all' : `Show ${MAX_LABEL_SETS}`);
    button.addEventListener('click', () => {
      this.limit = MAX_LABEL_SETS;
      this.refresh();
    });
    this.more.append(' ', button);
  }

  // Shows the values at the cursor, or the newest.
  showCursor() {
    let row = -1;
    if (view.cursorTime !== null && this.rows.length > 0) {
      const step = this.rows.length > 1 ? this.rows[1][0] - this.rows[0][0] : 1;
      row = Math.round((view.cursorTime - this.rows[0][0]) / step);
    }
    const known = row >= 0 && row < this.rows.length;
    if (known) this.graph?.setSelection(row - this.firstDrawn);
    else this.graph?.clearSelection();
    this.cursor.hidden = !known || !this.graph;
    if (!this.cursor.hidden) this.cursor.style.transform = `translateX(${this.graph.toDomXCoord(this.rows[row][0])}px)`;
    this.outputs?.forEach((output, i) => {
      const values = known ? [this.rows[row][i + 1]] : this.rows.slice(-4).map((each) => each[i + 1]);
      setText(output, number(values.findLast((value) => value !== null) ?? null, this.unit, this.rate));
    });
    this.tip.hidden = this.cursor.hidden || view.cursorCard !== this;
    if (!this.tip.hidden) this.fillTip(this.rows[row][0]);
  }

  // The time, and the events near it.
  fillTip(ms) {
    const x = this.pointer ?? this.graph.toDomXCoord(ms);
    const near = view.events.filter((event) => Math.abs(this.graph.toDomXCoord(event.timestamp) - x) < 7);
    const lines = near.slice(-4).map((event) => {
      const line = make('span', {}, `${clock(event.timestamp)} `, make('b', {}, event.name), ` ${event.who}`);
      if (event.more) line.append(make('small', {}, event.more));
      return line;
    });
    if (near.length > 4) lines.push(make('span', {}, `and ${near.length - 4} more`));
    this.tip.replaceChildren(make('time', {}, clock(ms)), ...lines);
    this.tip.classList.toggle('left', x > this.surface.clientWidth / 2);
  }

  onKey(event) {
    if (event.target !== this.element || event.ctrlKey || event.metaKey || event.altKey || !view.window) return;
    const { from, to, step } = view.window;
    const last = this.rows.at(-1)?.[0] ?? to;
    const at = Math.min(view.cursorTime ?? last, last);
    const zoom = (factor) => {
      const low = at - (at - from) * factor;
      view.zoomTo(low, low + (to - from) * factor);
    };
    const move = (steps) => view.moveCursor(Math.min(Math.max(at + steps * step, from), to), this);
    const actions = {
      ArrowLeft: () => move(event.shiftKey ? -10 : -1),
      ArrowRight: () => move(event.shiftKey ? 10 : 1),
      '+': () => zoom(0.5),
      '-': () => zoom(2),
      Escape: () => {
        view.moveCursor(null);
        this.unzoom();
      },
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }
}
