// How far the training is, from what its processes count.
import { duration, number } from './format.js';

const whole = (value) => Math.floor(value).toLocaleString('en');

// Value, detail and state of the tile.
export function progressTile({ step, planned_steps: planned, remaining_seconds: remaining, ...rates }) {
  const share = planned > 0 ? ` (${Math.min(100, Math.floor((100 * step) / planned))} %)` : '';
  const value = step === null ? '–' : planned === null ? `step ${whole(step)}` : `${whole(step)} of ${whole(planned)}${share}`;
  const speeds = ['steps', 'samples', 'tokens']
    .filter((what) => rates[`${what}_per_second`] !== null)
    .map((what) => `${number(rates[`${what}_per_second`])} ${what}/s`);
  const end = remaining === null ? [] : [remaining > 0 ? `${duration(remaining)} left` : 'the last step is done'];
  return [value, [...end, ...speeds].join(', '), ''];
}
