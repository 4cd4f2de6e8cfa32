// Many series as a heat map: a row for each, in natural order, and time from left to right. A color says how far a value is above or
// below the middle of all series at that time, so that a rank that differs is a stripe.
import { make } from './dom.js';

const ROW_PX = 2;
const LEAST_PX = 48;
const MOST_PX = 120;
const ABOVE = [213, 94, 0];
const BELOW = [0, 114, 178];
const ODD = [180, 0, 120]; // NaN and infinite values
const LEAST_SCALE = 0.1; // of the middle
const FAR = 3; // times the usual distance of the series from the middle

function median(values) {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1];
}

// Whether a series differs from the middle of its group, of which `usual` is the usual mean distance. Noise is no picture, and the text
// below the chart tells of what is no number.
function isApart(values, middles, usual) {
  const places = [...values.keys()].filter((i) => Number.isFinite(values[i]) && Number.isFinite(middles[i]));
  const mean = (of) => places.reduce((sum, i) => sum + Math.abs(of(i)), 0) / places.length;
  return places.length > 0 && mean((i) => values[i] - middles[i]) > Math.max(FAR * usual, LEAST_SCALE * mean((i) => middles[i]));
}

export class HeatMap {
  // `onPick`: called with a row's index. `onPoint`: with a row's and a point's index, or nothing when the pointer leaves.
  constructor({ onPick, onPoint }) {
    this.element = make('canvas.heat', { hidden: '', role: 'img', 'aria-label': 'Heat map of the series over time' });
    this.rows = 0;
    this.element.addEventListener('click', (event) => onPick(this.placeOf(event)[0]));
    this.element.addEventListener('mousemove', (event) => onPoint(...this.placeOf(event)));
    this.element.addEventListener('mouseleave', () => onPoint());
  }

  placeOf({ offsetX, offsetY }) {
    const part = (at, size, n) => Math.min(Math.max(Math.floor((at / size) * n), 0), n - 1);
    const { from, to, times } = this;
    const time = from + ((to - from) * offsetX) / this.element.clientWidth;
    const point = times.findLastIndex((each) => each <= time);
    return [part(offsetY, this.element.clientHeight, this.rows), Math.max(point, 0)];
  }

  // `series`: arrays of values; `times`: of their points; `middles`: of each series, the values that it is compared with; `usual`: of each,
  // the usual distance from them; `from`, `to`: the time that the chart above shows within its `area`. Hidden if the series are alike.
  draw({ series, times, middles, usual, from, to, area }) {
    Object.assign(this, { times, from, to, rows: series.length });
    const { element } = this;
    element.hidden = !series.some((values, i) => isApart(values, middles[i], usual[i]));
    if (element.hidden) return;
    const distances = this.distancesOf(series, middles);
    const height = Math.min(Math.max(ROW_PX * series.length, LEAST_PX), MOST_PX);
    const width = Math.max(Math.floor(area.w), 1);
    Object.assign(element, { width, height });
    element.style.marginLeft = `${area.x}px`;
    element.style.height = `${height}px`;
    element.style.width = `${width}px`;
    const context = element.getContext('2d');
    const xOf = (time) => ((time - from) / (to - from)) * width;
    const step = times.length > 1 ? times[1] - times[0] : to - from;
    for (let i = 0; i < times.length; i++) {
      const left = Math.floor(xOf(times[i] - step / 2));
      const right = Math.ceil(xOf(times[i] + step / 2));
      if (right < 0 || left > width) continue;
      this.drawColumn(context, left, right - left, height, distances.map((of) => of[i]));
    }
  }

  // From -1 to 1 of the usual distance from the middle; null: no value, NaN: no number.
  distancesOf(series, middles) {
    const all = [];
    const distances = series.map((values, at) =>
      middles[at].map((middle, i) => {
        const value = values[i] ?? null;
        if (value === null || !Number.isFinite(value)) return value === null ? null : NaN;
        all.push(Math.abs(value - middle));
        return value - middle;
      }),
    );
    all.sort((a, b) => a - b);
    const middle = median([...new Set(middles)].flat().filter(Number.isFinite)) ?? 0;
    // A rank that is apart all the time sets the scale, even if it is one of a thousand.
    const usual = distances.map((of) => median(of.filter(Number.isFinite).map(Math.abs)) ?? 0);
    const most = usual.reduce((a, b) => Math.max(a, b), 0);
    const scale = Math.max(all[Math.floor(all.length * 0.99)] ?? 0, most, LEAST_SCALE * Math.abs(middle)) || 1;
    return distances.map((of) => of.map((value) => (value === null ? null : Math.max(-1, Math.min(1, value / scale)))));
  }

  // With more series than pixels, the one that differs most is seen.
  drawColumn(context, x, width, height, distances) {
    const rows = Math.min(distances.length, height);
    for (let row = 0; row < rows; row++) {
      const of = distances.slice(Math.floor((row * distances.length) / rows), Math.floor(((row + 1) * distances.length) / rows));
      const isOdd = of.some(Number.isNaN);
      const value = of.reduce((most, each) => (Math.abs(each ?? 0) > Math.abs(most) ? each : most), 0);
      if (!isOdd && of.every((each) => each === null)) continue;
      const alpha = isOdd ? 1 : 0.06 + 0.94 * value ** 2; // noise stays pale
      context.fillStyle = `rgb(${(isOdd ? ODD : value < 0 ? BELOW : ABOVE).join(' ')} / ${alpha.toFixed(2)})`;
      const top = Math.floor((row * height) / rows);
      context.fillRect(x, top, width, Math.floor(((row + 1) * height) / rows) - top);
    }
  }

  hide() {
    this.element.hidden = true;
  }
}
