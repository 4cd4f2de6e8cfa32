// A card with one live chart: of a family, or of a time cost's histogram and its last value together.
//
// A card asks the agent only while it is on the screen, and only when the stage's window has moved on.
import { ask } from './agent.js';
import { Card } from './cards.js';
import { make, setText, svg } from './dom.js';
import { clock, number, ticks, unitOf } from './format.js';
import { nameSets } from './labels.js';
import { stage } from './stage.js';

// Okabe and Ito's colours, which all readers can tell apart; those that are hard to see on the background come last.
const COLORS = {
  light: ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#555555'],
  dark: ['#56b4e9', '#e69f00', '#009e73', '#cc79a7', '#f0e442', '#d55e00', '#c8c8c8'],
};
const DASHES = [null, [6, 3], [2, 2]];
const MOST_LINES = 12;
const MOST_SETS = 50;
const EVENT_COLOR = '#cc79a7';

// The legend and the labels of dygraphs write markup with inline styles, and need not be there at all.
Dygraph.PLUGINS = [Dygraph.Plugins.Axes, Dygraph.Plugins.Grid];

// The rows that a chart of the window draws, as `slice` takes them: its lines lead to the next row on either side of the window.
function drawnRows(rows, { from, to }) {
  const inside = rows.findIndex(([time]) => time >= from);
  return [Math.max((inside < 0 ? rows.length : inside) - 1, 0), rows.findLastIndex(([time]) => time <= to) + 2];
}

function rangeOf(rows, fromZero, isTime) {
  let low = Infinity;
  let high = -Infinity;
  for (const [, ...values] of rows) {
    for (const value of values) {
      if (value === null) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  if (low > high) return [0, 1];
  if (isTime) return [low - 10, high + 10];
  if (low >= 0 && (fromZero || low < high / 2 || low === high)) return [0, high === 0 ? 1 : high * 1.12];
  const space = (high - low || Math.abs(high)) * 0.12;
  return [low - space, high + space];
}

export class ChartCard extends Card {
  constructor(family, last) {
    super(family, last);
    this.unit = unitOf(family.name, family.unit);
    this.rate = family.type === 'counter';
    this.quantiles = family.type === 'histogram' || family.type === 'summary';
    this.limit = this.quantiles ? Math.floor(MOST_LINES / 3) : MOST_LINES;
    this.colors = new Map();
    this.lines = [];
    this.rows = [];
    this.firstDrawn = 0; // the index in `rows` of the graph's first row
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
    // Not the graph's, which a time without data does not show.
    plot.addEventListener('dblclick', () => this.unzoom());
    this.element.append(plot, this.legend, this.more);
    this.element.addEventListener('keydown', (event) => this.pressed(event));
    // Where the mouse is between two points; the chart tells only of points.
    this.pointer = null;
    this.surface.addEventListener('mousemove', (event) => {
      this.pointer = event.clientX - this.surface.getBoundingClientRect().left;
      this.point();
    });
    this.surface.addEventListener('mouseleave', () => {
      this.pointer = null;
    });
  }

  setShown(shown) {
    this.shown = shown;
    if (shown) {
      stage.visible.add(this);
      this.draw();
      this.refresh();
    } else {
      // Its canvases take a megabyte, and there may be hundreds of cards.
      stage.visible.delete(this);
      this.graph?.destroy();
      this.graph = null;
    }
  }

  async refresh() {
    const { window } = stage;
    if (!window || this.asking || stage.why !== '') return;
    const key = `${window.start} ${window.end} ${window.step} ${this.limit}`;
    if (key === this.key) return;
    this.asking = true;
    try {
      const span = { start: window.start, end: window.end, step: window.step / 1000, limit: this.limit };
      const options = { wanted: () => this.shown };
      const [main, last] = await Promise.all([
        ask('query_range', { name: this.family.name, ...span }, options),
        this.last && ask('query_range', { name: this.last.name, ...span }, options),
      ]);
      if (main === null || (this.last && last === null)) return;
      this.key = key;
      this.take(main, last);
    } catch (error) {
      // The page tells of an agent that does not answer; here the last answer stands.
      if (error.status === undefined) return;
      this.key = key; // a family that went meanwhile
      this.rows = [];
      this.lines = [];
    } finally {
      this.asking = false;
    }
    if (this.shown) this.draw();
  }

  // Turns answers into lines and rows.
  take(main, last) {
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

    // All of it belongs to one time axis, also if a collection came between the two answers.
    this.rows = [];
    const points = Math.max(main.points, last?.points ?? 0);
    const shift = last ? Math.round((last.start_ms - main.start_ms) / main.step_ms) : 0;
    for (let i = 0; i < points; i++) {
      this.rows.push([main.start_ms + i * main.step_ms, ...lines.map((line) => line.values[line.variant < 0 ? i - shift : i] ?? null)]);
    }
    this.lines = lines;
    this.sets = [...sets.values()];
    this.leftOut = Math.max(main.left_out, last?.left_out ?? 0);
  }

  style(line) {
    const palette = COLORS[stage.theme];
    const variants = this.quantiles ? 3 : 1;
    const index = this.colors.get(line.set.id);
    if (line.variant < 0) {
      return { color: this.sets.length === 1 ? palette.at(-1) : palette[index % palette.length], dash: [1, 3], width: 1.2 };
    }
    if (variants > 1 && this.sets.length === 1) return { color: palette[line.variant % palette.length], dash: null, width: 1.6 };
    const turn = variants > 1 ? line.variant : Math.floor(index / palette.length);
    return { color: palette[index % palette.length], dash: DASHES[turn % DASHES.length], width: 1.6 };
  }

  draw() {
    if (!this.shown || !stage.window) return;
    const empty = !this.rows.some((row) => row.some((value, i) => i > 0 && value !== null));
    this.none.hidden = !empty;
    this.element.classList.toggle('empty', empty);
    if (empty) setText(this.none, stage.why || (this.key === '' ? 'loading' : 'no data in this time'));
    this.label();
    if (this.lines.length === 0) {
      this.graph?.destroy();
      this.graph = null;
      return;
    }
    const { from, to } = stage.window;
    const [first, end] = drawnRows(this.rows, stage.window);
    const drawn = this.rows.slice(first, end);
    this.firstDrawn = first;
    const styles = this.lines.map((line) => this.style(line));
    const options = {
      file: drawn.map(([time, ...values]) => [new Date(time), ...values]),
      labels: ['time', ...this.lines.map((_, i) => `l${i}`)],
      colors: styles.map((style) => style.color),
      series: Object.fromEntries(styles.map((style, i) => [`l${i}`, { strokePattern: style.dash, strokeWidth: style.width }])),
      fillGraph: this.lines.length === 1,
      dateWindow: [from, to],
      valueRange: this.yRange ?? rangeOf(drawn, this.rate || this.quantiles, this.unit === 'time'),
    };
    if (this.graph) {
      this.graph.updateOptions(options);
    } else {
      this.create(options);
    }
    this.point();
  }

  create({ file, ...options }) {
    const { mousedown, willDestroyContextMyself } = Dygraph.defaultInteractionModel;
    this.graph = new Dygraph(this.surface, file, {
      ...options,
      // No touch: on a phone the finger scrolls the page, and a tap reads values.
      interactionModel: { mousedown, willDestroyContextMyself },
      zoomCallback: (low, high, [range]) => this.zoomed(low, high, range),
      highlightCallback: (_, ms) => stage.moveCursor(ms, this),
      unhighlightCallback: () => stage.moveCursor(null),
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
    const { from, to } = stage.window;
    // Up or down it zooms this chart alone, since others have other units.
    if (Math.abs(low - from) < 1 && Math.abs(high - to) < 1) {
      this.yRange = range;
    } else {
      stage.zoomTo(low, high);
    }
  }

  unzoom() {
    this.yRange = null;
    stage.zoomTo();
    this.draw();
  }

  drawEvents(context, area, graph) {
    context.strokeStyle = context.fillStyle = EVENT_COLOR;
    context.lineWidth = 1;
    let before = -1;
    const { from, to } = stage.window;
    // Many of them are a background to the lines, no more.
    const many = stage.events.filter(({ timestamp }) => timestamp >= from && timestamp <= to).length > 20;
    for (const event of stage.events) {
      const x = Math.round(graph.toDomXCoord(event.timestamp)) + 0.5;
      if (x === before || x < area.x || x > area.x + area.w) continue; // those of one pixel would add up to a bar
      before = x;
      context.globalAlpha = many ? 0.22 : 0.45;
      context.beginPath();
      context.setLineDash([2, 2]);
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
    // The same context draws the lines.
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  // Writes the legend: a row for each label set, in it a value for each line.
  label() {
    const names = nameSets(this.lines.length > 0 ? this.sets.map((set) => set.labels) : []);
    const kind = [this.rate && 'per second', names.common, names.by && `by ${names.by}`];
    setText(this.kind, kind.filter(Boolean).join(' · '));
    this.kind.title = this.kind.textContent;
    const many = this.sets?.length > 1;
    const shape = JSON.stringify([stage.theme, names.each, this.lines.map((line) => line.name)]);
    if (shape !== this.shape) {
      this.shape = shape;
      const rows = (this.lines.length > 0 ? this.sets : []).map((set, i) => {
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
    const all = (this.sets?.length ?? 0) + (this.leftOut ?? 0);
    const said = this.lines.length > 0 && this.leftOut > 0 ? `${this.sets.length} of ${all} shown` : '';
    this.more.hidden = said === '';
    if (said !== '' && this.more.firstChild?.textContent !== said) {
      this.more.replaceChildren(make('span', {}, said));
      if (this.limit < MOST_SETS) {
        const button = make('button', { type: 'button' }, all <= MOST_SETS ? 'Show all' : `Show ${MOST_SETS}`);
        button.addEventListener('click', () => {
          this.limit = MOST_SETS;
          this.refresh();
        });
        this.more.append(' ', button);
      }
    }
  }

  // Shows the values at the cursor's time, or the newest.
  point() {
    let row = -1;
    if (stage.cursor !== null && this.rows.length > 0) {
      const step = this.rows.length > 1 ? this.rows[1][0] - this.rows[0][0] : 1;
      row = Math.round((stage.cursor - this.rows[0][0]) / step);
    }
    const known = row >= 0 && row < this.rows.length;
    if (this.graph) {
      if (known) this.graph.setSelection(row - this.firstDrawn);
      else this.graph.clearSelection();
    }
    this.cursor.hidden = !known || !this.graph;
    if (!this.cursor.hidden) this.cursor.style.transform = `translateX(${this.graph.toDomXCoord(this.rows[row][0])}px)`;
    this.outputs?.forEach((output, i) => {
      const values = known ? [this.rows[row][i + 1]] : this.rows.slice(-4).map((each) => each[i + 1]);
      setText(output, number(values.findLast((value) => value !== null) ?? null, this.unit, this.rate));
    });
    this.tip.hidden = !known || stage.source !== this || !this.graph;
    if (!this.tip.hidden) this.tell(this.rows[row][0]);
  }

  // The tooltip: the time, and the events that are near.
  tell(ms) {
    const x = this.pointer ?? this.graph.toDomXCoord(ms);
    const near = stage.events.filter((event) => Math.abs(this.graph.toDomXCoord(event.timestamp) - x) < 7);
    const lines = near.slice(-4).map((event) => {
      const what = make('span', {}, `${clock(event.timestamp)} `, make('b', {}, event.name), ` ${event.who}`);
      if (event.more) what.append(make('small', {}, event.more));
      return what;
    });
    if (near.length > 4) lines.push(make('span', {}, `and ${near.length - 4} more`));
    this.tip.replaceChildren(make('time', {}, clock(ms)), ...lines);
    this.tip.classList.toggle('left', x > this.surface.clientWidth / 2);
  }

  pressed(event) {
    if (event.target !== this.element || event.ctrlKey || event.metaKey || event.altKey || !stage.window) return;
    const { from, to, step } = stage.window;
    const last = this.rows.at(-1)?.[0] ?? to;
    const at = Math.min(stage.cursor ?? last, last);
    const span = to - from;
    const zoom = (factor) => {
      const low = at - ((at - from) / span) * span * factor;
      stage.zoomTo(low, low + span * factor);
    };
    const move = (steps) => stage.moveCursor(Math.min(Math.max(at + steps * step, from), to), this);
    const actions = {
      ArrowLeft: () => move(event.shiftKey ? -10 : -1),
      ArrowRight: () => move(event.shiftKey ? 10 : 1),
      '+': () => zoom(0.5),
      '-': () => zoom(2),
      Escape: () => {
        stage.moveCursor(null);
        this.unzoom();
      },
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }
}
