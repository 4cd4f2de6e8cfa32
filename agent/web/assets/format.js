// Numbers as text: units, scales, and the ticks of an axis.

const BYTES = [[1024 ** 4, ' TiB'], [1024 ** 3, ' GiB'], [1024 ** 2, ' MiB'], [1024, ' KiB'], [1, ' B']];
const SCALES = {
  seconds: [[86400, ' d'], [3600, ' h'], [60, ' min'], [1, ' s'], [1e-3, ' ms'], [1e-6, ' µs'], [1e-9, ' ns']],
  bytes: BYTES,
  'bytes/s': BYTES.map(([factor, suffix]) => [factor, `${suffix}/s`]),
  ratio: [[0.01, ' %']],
  time: [[1, '']],
  '': [[1e12, ' T'], [1e9, ' G'], [1e6, ' M'], [1e3, ' k'], [1, '']],
};
const PLAIN_BELOW = 10000; // 1,500 rather than 1.5 k
const SMALLEST = 1e-6; // 0.0006 rather than 6e-4

// The unit of a family's values: seconds, bytes, bytes/s, ratio, time (seconds since 1970), or '' for a plain number. Without a
// declared unit, it is taken from the name, by Prometheus' naming conventions.
export function unitOf(name, unit) {
  const base = name.replace(/_(total|sum|max|min)$/, '');
  if (/_timestamp_seconds$|_start_time_seconds$/.test(base)) return 'time';
  const word = unit || base.match(/_(sec|seconds|time_cost|bytes(?:_per_second)?|ratio)$/)?.[1] || '';
  if (/^(sec|seconds?|s|time_cost)$/.test(word)) return 'seconds';
  if (/^(bytes?|By?)$/.test(word)) return 'bytes';
  if (/^(bytes?|By?)(\/s|_per_second)$/.test(word)) return 'bytes/s';
  return word === 'ratio' ? 'ratio' : '';
}

// Factor and suffix for numbers up to `max`.
function scaleOf(max, unit) {
  const scales = SCALES[unit];
  if (max === 0) return scales.find(([factor]) => factor === 1) ?? scales[0];
  if (unit === '' && max < PLAIN_BELOW) return scales.at(-1);
  // Minutes, hours and days begin at two of them: 90 s rather than 1.5 min.
  const threshold = (factor) => (unit === 'seconds' && factor >= 60 ? 2 * factor : factor);
  return scales.find(([factor]) => max >= threshold(factor)) ?? scales.at(-1);
}

const formats = new Map();

// With commas, and `least` to `most` digits after the point.
function grouped(value, most, least = 0) {
  const key = 100 * most + least;
  if (!formats.has(key)) formats.set(key, new Intl.NumberFormat('en', { maximumFractionDigits: most, minimumFractionDigits: least }));
  return formats.get(key).format(value);
}

// "1,000"
export const whole = (value) => grouped(Math.floor(value), 0);

// Three digits, and all before the point.
function digits(value) {
  const size = Math.abs(value);
  if (size !== 0 && size < SMALLEST) return value.toExponential(1);
  if (size !== 0 && size < 0.1) return String(Number(value.toPrecision(2)));
  return grouped(value, size < 1 ? 3 : size < 10 ? 2 : size < 100 ? 1 : 0);
}

export function clock(ms) {
  return new Date(ms).toLocaleTimeString([], { hourCycle: 'h23', hour: '2-digit', minute: '2-digit', second: '2-digit' });
}

const day = (ms) => new Date(ms).toLocaleDateString('sv'); // 2026-11-29

// The time, with its date unless that is today: a page or a report may be read on another day.
export const moment = (ms) => (day(ms) === day(Date.now()) ? clock(ms) : dated(ms));

export const dated = (ms) => `${day(ms)} ${clock(ms)}`;

// `max`: the highest value of an axis, whose scale is used for values that are not far below it.
export function number(value, unit = '', rate = false, max = 0) {
  if (value === null || value === undefined) return '–';
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value < 0 ? '-∞' : '∞';
  if (unit === 'time') return clock(value * 1000);
  const size = Math.abs(value);
  const common = scaleOf(max, unit);
  const [factor, suffix] = max > 0 && size >= common[0] / 10 ? common : scaleOf(size, unit);
  return digits(value / factor) + suffix + (rate ? (suffix ? '/s' : ' /s') : '');
}

export const percent = (ratio) => `${(100 * ratio).toFixed(1)} %`;

// The first letter large, without the full stop.
export const titled = (text) => (text.charAt(0).toUpperCase() + text.slice(1)).replace(/\.$/, '');

export function duration(seconds) {
  if (seconds < 1) return '< 1 s';
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

export function ago(seconds) {
  if (seconds === null) return '–';
  return seconds < 1 ? 'now' : `${duration(seconds)} ago`;
}

// About `count` round values within [low, high], at most 50, all in one scale: [{v, label}, ...].
export function ticks(low, high, count, unit, rate) {
  const [factor, suffix] = scaleOf(Math.max(Math.abs(low), Math.abs(high)), unit);
  const from = low / factor;
  const to = high / factor;
  const rough = (to - from) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((each) => each * power >= rough * 0.999) * power;
  if (!Number.isFinite(step) || step <= 0) return [];
  const places = Math.min(Math.max(-Math.floor(Math.log10(step) + 1e-9), 0), 12);
  const values = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to * (1 + 1e-9) && values.length < 50; i++) {
    const value = i * step;
    const text = places > 6 ? value.toExponential(1) : grouped(value, places, places);
    const label = unit === 'time' ? clock(value * 1000) : text + suffix + (rate && suffix ? '/s' : '');
    values.push({ v: value * factor, label: i === 0 ? '0' : label });
  }
  return values;
}
