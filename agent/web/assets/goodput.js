// Where the time of the ranks went: the share that computed steps which are kept, and the seconds by bucket.
import { byId, make, setChildren, setText } from './dom.js';
import { number, percent } from './format.js';
import { NO_RANK } from './progress.js';

// In the order of the bar, each with the color of a part.
const BUCKETS = [
  ['compute', 'phase-1'],
  ['data', 'phase-0'],
  ['sync', 'sync'],
  ['checkpoint', 'phase-5'],
  ['starting', 'phase-2'],
  ['rendezvous', 'phase-3'],
  ['redone', 'phase-4'],
  ['hung', 'hung'],
  ['down', 'lost'],
  ['unmarked', 'unmarked'],
  ['other', 'other'],
];

// Of another version of the agent there may be more.
const bucketsOf = (seconds) => {
  const known = BUCKETS.map(([bucket]) => bucket);
  return [...BUCKETS, ...Object.keys(seconds).filter((bucket) => !known.includes(bucket)).map((bucket) => [bucket, 'other'])];
};
const counted = (n, one, many) => (n === 0 ? `no ${many}` : n === 1 ? `1 ${one}` : `${n.toLocaleString('en')} ${many}`);

const MARK = 'mark phases by phase(name), or exec --instrument=torch';
const MAX_NAMED = 3;
const MUCH = 0.1; // of the time

// In words, with what the tile leaves out.
export function describeGoodput(goodput) {
  const { ratio, bucket_seconds: seconds, seconds_without_phases: others, restarts, redone_steps: redone, mean_time_to_repair_seconds: repair } = goodput;
  const outside = (seconds.other ?? 0) / Object.values(seconds).reduce((sum, each) => sum + each, 0);
  const mttr = repair === null ? '' : `, mean time to repair ${number(repair, 'seconds')}`;
  const again = redone === null ? 'redone steps unknown' : counted(redone, 'step redone', 'steps redone');
  const lost = `${counted(restarts, 'restart', 'restarts')}, ${again}${mttr}`;
  const unmarked = outside >= MUCH ? ` In ${percent(outside)} of it they were in none of their phases (other).` : '';
  const without = others > 0 ? ` Without ${number(others, 'seconds')} of ranks that mark no phases.` : '';
  return `The ranks computed steps that are kept in ${percent(ratio)} of their time: ${lost}.${unmarked}${without}`;
}

let shown = '';

export function showGoodput({ goodput }) {
  byId('goodput').hidden = goodput === null;
  if (goodput === null) return;
  const { ratio, bucket_seconds: seconds, restarts } = goodput;
  const key = JSON.stringify(goodput);
  if (key === shown) return;
  shown = key;
  const used = bucketsOf(seconds).filter(([bucket]) => seconds[bucket] > 0);
  const all = used.reduce((sum, [bucket]) => sum + seconds[bucket], 0);
  const describe = (bucket) => `${bucket} ${number(seconds[bucket], 'seconds')} (${percent(seconds[bucket] / all)})`;
  const bar = used.map(([bucket, color]) => {
    const part = make(`span.part.${color}`, { title: describe(bucket) });
    part.style.flexGrow = (100 * seconds[bucket]) / all;
    return part;
  });
  setChildren(byId('goodput-bar'), bar);
  byId('goodput-bar').setAttribute('aria-label', used.map(([bucket]) => describe(bucket)).join(', '));
  setChildren(byId('goodput-legend'), used.map(([bucket, color]) => make(`li.${color}`, {}, describe(bucket))));
  setText(byId('goodput-count'), `${percent(ratio)}, ${counted(restarts, 'restart', 'restarts')}`);
  setText(byId('goodput-text'), describeGoodput(goodput));
}

// Value, detail and state of the tile: what took most of the time that did not train.
export function goodputTile({ health, goodput }) {
  if (goodput === null) return ['not known', health.state === 'waiting' ? NO_RANK : MARK, 'unknown'];
  const { ratio, bucket_seconds: seconds } = goodput;
  const all = Object.values(seconds).reduce((sum, each) => sum + each, 0);
  const lost = Object.entries(seconds).filter(([bucket, of]) => bucket !== 'compute' && all > 0 && of / all >= 0.001);
  lost.sort(([, a], [, b]) => b - a);
  const named = lost.slice(0, MAX_NAMED).map(([bucket, of]) => `${bucket} ${percent(of / all)}`);
  return [percent(ratio), named.join(', ') || 'no time lost', ''];
}
