// The card of a family with its live chart. It requests data only while it is on the screen and the view's window has moved.
import { get } from './api.js';
import { drawnRows, oddOf, valueRange, withOdd } from './chart_data.js';
import { make, setText } from './dom.js';
import { focusKey, focusParameters, setFocus } from './focus.js';
import { clock, number, ticks, unitOf } from './format.js';
import { HeatMap } from './heat_map.js';
import { naturally, nameSets, sortKey } from './labels.js';
import { showLegend } from './legend.js';
import { lineStyle } from './line_style.js';
import { manyOf } from './many.js';
import { MetricCard } from './metric_card.js';
import { report } from './report.js';
import { drawAlone, drawBand, drawEvents, drawOdd } from './underlay.js';
import { view } from './view.js';

const MAX_LINES = 12;
const MAX_LABEL_SETS = 50; // as lines
const BAND_EVERY_MS = 5000; // its answers are large

// The other plugins, legend and labels, write markup with inline styles, which the page's policy forbids.
Dygraph.PLUGINS = [Dygraph.Plugins.Axes, Dygraph.Plugins.Grid];

export class ChartCard extends MetricCard {
  constructor(family, last) {
    super(family, last);
    this.loaded = ''; // the window of the data
    this.unit = unitOf(family.name, family.unit);
    this.rate = family.type === 'counter';
    // Seconds in a second are a share of the time.
    this.isShare = this.rate && this.unit === 'seconds';
    if (this.isShare) this.unit = 'ratio';
    this.quantiles = family.type === 'histogram' || family.type === 'summary';
    this.leastLimit = this.quantiles ? Math.floor(MAX_LINES / 3) : MAX_LINES;
    this.limit = this.leastLimit;
    this.colors = new Map();
    this.asLines = false; // as the reader has chosen
    this.isBand = false;
    this.sets = [];
    this.lines = [];
    this.rows = [];
    this.odd = []; // values that are no numbers: [{set, value, from, to}], the newest first
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
    this.heatMap = new HeatMap({ onPick: (i) => this.pick(i), onPoint: (...place) => this.point(...place) });
    this.odds = make('p.odd', { hidden: '' });
    // The cards of a row are of one height: the plot of one without a heat map is higher.
    new ResizeObserver(() => {
      this.graph?.resize();
      if (this.graph) this.drawHeatMap();
    }).observe(plot);
    this.element.append(plot, this.heatMap.element, this.odds, this.legend, this.more);
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

  // More series than lines can be told apart.
  isMany() {
    return !this.asLines && view.focus === null && this.family.series > this.limit;
  }

  // Whether the band in view is so new that its large answer is not worth asking for again.
  isNewEnough({ start, end, step }) {
    const { loadedWindow: at } = this;
    return this.isBand && this.isMany() && at?.step === step && end - at.end < BAND_EVERY_MS && Math.abs(start - at.start) < BAND_EVERY_MS;
  }

  async refresh() {
    const { window } = view;
    if (!window || this.loading || view.noData !== '') return;
    const many = this.isMany();
    const key = `${window.start} ${window.end} ${window.step} ${this.limit} ${many} ${focusKey()}`;
    if (key === this.loaded || (this.loaded !== '' && this.isNewEnough(window))) return;
    this.loading = true;
    try {
      const span = { start: window.start, end: window.end, step: ((many ? 2 : 1) * window.step) / 1000, ...focusParameters() };
      const { limit } = this;
      const asked = many ? { bands: true, ...(this.family.type === 'histogram' && { as: 'mean' }) } : { limit };
      const options = { wanted: () => view.cards.has(this) };
      const [main, last] = await Promise.all([
        get('query_range', { name: this.family.name, ...span, ...asked }, options),
        this.last && !many && get('query_range', { name: this.last.name, ...span, limit }, options),
      ]);
      if (main === null || (this.last && last === null)) return;
      this.loaded = key;
      this.isMissing = false;
      this.loadedWindow = window;
      this.setData(main, last || null);
    } catch (error) {
      // Without status, the agent did not answer: the banner says so, and the last data stays.
      if (error.status === undefined) {
        this.draw();
        return;
      }
      this.loaded = key; // the family has disappeared, or is not in the report
      this.isMissing = true;
      this.rows = [];
      this.lines = [];
      this.sets = [];
      this.odd = [];
      this.isBand = false;
    } finally {
      this.loading = false;
    }
    this.draw();
  }

  // Makes lines and rows of the agent's answers.
  setData(main, last) {
    // Without `q` it is the mean.
    const variants = [...new Set(main.series.map(({ q }) => q ?? null))].sort((a, b) => (a ?? -1) - (b ?? -1));
    const nameOf = (q) => (q !== undefined ? `p${Number((q * 100).toFixed(3))}` : this.quantiles ? 'mean' : '');
    const sets = new Map();
    const lines = [];
    const add = (series, variant, name) => {
      const id = JSON.stringify(Object.entries(series.labels).sort());
      if (!sets.has(id)) sets.set(id, { id, labels: series.labels, lines: [], place: sortKey(series.labels) });
      const isBound = this.family.type === 'histogram' && series.q !== undefined;
      const above = isBound ? new Set(series.above) : null;
      const line = { set: sets.get(id), variant, name, values: withOdd(series), above, apart: series.apart };
      line.set.lines.push(line);
      lines.push(line);
    };
    for (const series of main.series) {
      add(series, variants.indexOf(series.q ?? null), nameOf(series.q));
    }
    for (const series of last?.series ?? []) add(series, -1, 'last');
    this.sets = [...sets.values()].sort((a, b) => naturally(a.place, b.place));
    for (const { id } of this.sets) if (!this.colors.has(id)) this.colors.set(id, this.colors.size);
    this.leftOut = Math.max(main.left_out, last?.left_out ?? 0);

    // One time axis, even if a collection came between the two answers.
    const points = Math.max(main.points, last?.points ?? 0);
    const shift = last ? Math.round((last.start_ms - main.start_ms) / main.step_ms) : 0;
    const times = Array.from({ length: points }, (_, i) => main.start_ms + i * main.step_ms);
    this.odd = oddOf(lines, times);
    this.notFinite = main.not_finite ?? 0;
    this.setCount = Math.max(this.sets.length, (main.bands ?? []).reduce((sum, { sets: n }) => sum + n, 0));
    this.isBand = main.bands !== undefined && this.setCount > this.limit;
    if (this.isBand) {
      const names = { middle: nameOf(main.series[0]?.q), high: 'highest quantile' };
      Object.assign(this, manyOf(main, this.sets, names, times));
      return;
    }
    this.lines = this.sets.flatMap((set) => set.lines);
    this.rows = times.map((time, i) => [time, ...this.lines.map((line) => line.values[line.variant < 0 ? i - shift : i] ?? null)]);
  }

  draw() {
    if (!view.cards.has(this) || !view.window) return;
    const empty = this.rows.every(([, ...values]) => values.every((value) => value === null));
    this.none.hidden = !empty;
    this.element.classList.toggle('empty', empty);
    const whose = view.focus === null ? '' : ` of ${view.focus.instance}`;
    const none = view.isGone ? 'not loaded while the agent answered' : 'loading';
    const noData = this.isMissing && report !== null ? 'left out of this report, which would be too large' : `no ${this.rate ? 'rate' : 'data'}${whose} in this time range`;
    if (empty) setText(this.none, view.noData || (this.loaded === '' ? none : noData));
    this.drawLegend();
    this.drawOddText();
    if (this.lines.length === 0) {
      this.destroyGraph();
      this.heatMap.hide();
      return;
    }
    const [first, end] = drawnRows(this.rows, view.window);
    const drawn = this.rows.slice(first, end);
    this.firstDrawn = first;
    const styles = this.lines.map((line) => lineStyle(this, line));
    const options = {
      file: drawn.map(([time, ...values]) => [new Date(time), ...values.map((value) => (Number.isFinite(value) ? value : null))]),
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
    this.drawHeatMap();
    this.showCursor();
  }

  drawHeatMap() {
    if (!this.isBand) {
      this.heatMap.hide();
      return;
    }
    const { from, to } = view.window;
    this.heatMap.draw({ ...this.heat, from, to, area: this.graph.getArea() });
  }

  // A click on a row of the heat map shows the charts of its rank.
  pick(row) {
    const { role, instance } = this.sets[row]?.labels ?? {};
    if (instance) setFocus({ role, instance });
  }

  // The pointer is on the heat map.
  point(row, at) {
    view.moveCursor(row === undefined ? null : this.heat.times[at], this);
    if (row === undefined) return;
    const { each } = nameSets(this.sets.map(({ labels }) => labels));
    this.tip.hidden = false;
    this.tip.replaceChildren(make('b', {}, each[row]), ` ${this.text(this.heat.series[row][at] ?? null)} at ${clock(this.heat.times[at])}`);
  }

  // "≤ 250 ms", "> 10 s": a histogram knows in which bucket a quantile is, and not where in it.
  text(value, { above } = {}, row = 0) {
    const [, high] = this.graph?.yAxisRange() ?? [0, 0];
    const sign = !above || value === null ? '' : above.has(row) ? '> ' : '≤ ';
    return sign + number(value, this.unit, this.rate && !this.isShare, high);
  }

  // "NaN since 12:00:05: rep_3"
  drawOddText() {
    const [newest] = this.odd;
    this.odds.hidden = newest === undefined;
    this.element.classList.toggle('has-odd', newest !== undefined);
    if (newest === undefined) return;
    const alike = this.odd.filter(({ value, to }) => value === newest.value && to === newest.to);
    const named = nameSets(this.sets.map(({ labels }) => labels)).each;
    const places = alike.map(({ set }) => this.sets.indexOf(set)).sort((a, b) => a - b);
    const names = this.sets.length < 2 ? [] : places.map((place) => named[place]);
    const all = Math.max(names.length, this.isBand ? this.notFinite : 0);
    const of = names.length === 0 ? '' : `: ${names.slice(0, 3).join(', ')}${all > 3 ? ` and ${all - 3} more` : ''}`;
    const until = newest.goesOn ? `since ${clock(Math.min(...alike.map(({ from }) => from)))}` : `until ${clock(newest.to)}`;
    setText(this.odds, `${newest.value} ${until}${of}`);
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
      underlayCallback: (context, area, graph) => {
        if (this.isBand && this.hasBand) drawBand({ rows: this.rows, color: lineStyle(this, this.lines[0]).color }, context, area, graph);
        drawOdd(this, context, area, graph);
        drawAlone(this, context, area, graph);
        drawEvents(context, area, graph);
      },
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
          ticker: (low, high, pixels) => ticks(low, high, pixels / 34, this.unit, this.rate && !this.isShare),
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

  drawLegend() {
    this.outputs = showLegend(this);
    this.drawMore(this.lines.length > 0 ? this.setCount : 0);
  }

  // How many label sets are left out, and the button for more of them, or for lines in place of the band.
  drawMore(shown) {
    const all = shown + (this.leftOut ?? 0);
    const text = all === shown ? '' : `${shown.toLocaleString('en')} of ${all.toLocaleString('en')} shown`;
    const next = this.isBand ? `Show ${Math.min(all, MAX_LABEL_SETS)} lines` : this.asLines ? 'Show the band' : '';
    this.more.hidden = shown === 0 || (text === '' && next === '');
    const key = `${text} ${next}`;
    if (this.more.hidden || this.moreKey === key) return;
    this.moreKey = key;
    this.more.replaceChildren(...(text === '' ? [] : [make('span', {}, text), ' ']));
    if (next === '') return;
    const button = make('button', { type: 'button' }, next);
    button.addEventListener('click', () => {
      this.asLines = !this.asLines;
      this.limit = this.asLines ? MAX_LABEL_SETS : this.leastLimit;
      this.loaded = '';
      this.refresh();
    });
    this.more.append(button);
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
      const newest = this.rows.findLastIndex((each, at) => at >= this.rows.length - 4 && each[i + 1] !== null);
      const at = known ? row : newest;
      const value = this.rows[at]?.[i + 1] ?? null;
      setText(output, this.text(value, this.lines[i], at));
      output.classList.toggle('odd', value !== null && !Number.isFinite(value));
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
