// How far the training is, and how fast, from what its processes count.
import { duration, number } from './format.js';

const MIN_COMPARED_MS = 120000;
const SLOWER = 0.8; // than in the last ten minutes, or than the median of the ranks
const GOES_ON = ['running', 'degraded', 'hung'];

// How to fill a tile of which nothing is known.
export const NO_RANK = 'no rank runs yet';
const COUNT = 'call count_steps() in each step, or exec --instrument=torch';

const whole = (value) => Math.floor(value).toLocaleString('en');
const per = (value, what) => `${number(value)} ${what}/s`;

// Value, detail, state and the share that is done, for the bar; null: it is not known.
export function progressTile({ health, progress }) {
  if (!progress || progress.step === null) return ['not known', health.state === 'waiting' ? NO_RANK : COUNT, 'unknown', null];
  const { step, planned_steps: planned, remaining_seconds: remaining } = progress;
  if (planned === null || !(planned > 0)) return [`step ${whole(step)}`, 'set_total_steps(n) gives the time that is left', '', null];
  const share = Math.min(1, step / planned);
  const end = remaining === null ? '' : remaining > 0 ? `, ${duration(remaining)} left` : ', the last step is done';
  return [`${whole(step)} of ${whole(planned)}`, `${Math.floor(100 * share)} %${end}`, '', share];
}

// What counts most: samples, tokens, steps, or the counter that stands for them.
const COUNTED = ['samples', 'tokens', 'steps'];
const countedBy = ({ progress }) => COUNTED.filter((what) => progress && progress[`${what}_per_second`] !== null);

function speedsOf(status, goesOn) {
  const { progress, throughput } = status;
  const known = countedBy(status);
  if (known.length > 0) return known.map((what) => per(progress[`${what}_per_second`], what));
  return throughput ? [number(goesOn ? throughput.now : throughput.last_10m, '', true)] : [];
}

// The mean is of ten minutes, or of the history if that is shorter.
const lastMinutes = ({ history, now_ms: now }) => duration(Math.min(600, (now - (history.oldest_ms ?? now)) / 1000));

// Value, detail in lines, and state.
export function speedTile(status) {
  const { throughput, health, history, now_ms: at } = status;
  const goesOn = GOES_ON.includes(health.state);
  const [first, ...others] = speedsOf(status, goesOn);
  const ranks = status.verdicts.text;
  if (!goesOn) {
    if (first === undefined) return ['not known', health.state === 'waiting' ? NO_RANK : [COUNT, ranks].filter(Boolean).join('\n'), 'unknown'];
    const last = `in the last ${lastMinutes(status)}`;
    const speeds = countedBy(status).length > 0 ? [...others, last] : [`${throughput.name} of all ranks together`, last];
    return [first, [speeds.join(', '), ranks].filter(Boolean).join('\n'), ''];
  }
  const isHeldUp = status.verdicts.stragglers.length > 0 || throughput?.slowest;
  if (first === undefined) {
    return ['not known', [COUNT, ranks].filter(Boolean).join('\n'), isHeldUp ? 'bad' : 'unknown'];
  }
  // While ranks start, the first seconds say little.
  const compares = throughput?.last_10m > 0 && at - history.oldest_ms >= MIN_COMPARED_MS;
  const part = compares ? throughput.now / throughput.last_10m : 1;
  const compared = compares ? `${Math.round(part * 100)} % of the last ${lastMinutes(status)}` : '';
  const counter = others.length > 0 || status.progress?.steps_per_second !== undefined ? '' : throughput?.name ?? '';
  const speeds = [...others, counter, compared].filter(Boolean).join(', ');
  return [first, [speeds, ranks].filter(Boolean).join('\n'), part < SLOWER || isHeldUp ? 'bad' : ''];
}
