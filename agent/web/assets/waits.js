// Who waits for whom: what the steps of the ranks consist of. With a verdict it stands before the charts, without one below them.
import { byId, make, setChildren, setText } from './dom.js';
import { number } from './format.js';

const SYNC = 'sync'; // the phase in which a rank waits for others
const OTHER = 'other';
const COLORS = 6;

// A color for each phase, the same on all ranks and as long as the page is open.
const numbers = new Map();

function classOf(phase) {
  if (phase === SYNC || phase === OTHER) return phase;
  if (!numbers.has(phase)) numbers.set(phase, numbers.size % COLORS);
  return `phase-${numbers.get(phase)}`;
}

// As they follow each other in most jobs, and the wait at the end.
const USUAL = ['init', 'rendezvous', 'data', 'forward', 'backward', 'optimizer', 'checkpoint', 'eval'];

function placeOf(phase) {
  if (phase === SYNC) return USUAL.length + 2;
  if (phase === OTHER) return USUAL.length + 1;
  return USUAL.includes(phase) ? USUAL.indexOf(phase) : USUAL.length;
}

const inOrder = (a, b) => placeOf(a) - placeOf(b) || (a < b ? -1 : 1);

function makeRow(rank, longest, roles, slow) {
  const name = roles > 1 ? `${rank.role} ${rank.instance}` : rank.instance;
  const phases = Object.keys(rank.seconds_per_step)
    .filter((phase) => rank.seconds_per_step[phase] > 0)
    .sort(inOrder);
  const describe = (phase) => `${phase} ${number(rank.seconds_per_step[phase], 'seconds')}`;
  const bar = make('div.step', { role: 'img', 'aria-label': phases.map(describe).join(', ') });
  let left = longest;
  for (const phase of phases) {
    const part = make(`span.part.${classOf(phase)}`, { title: describe(phase) });
    part.style.flexGrow = (100 * rank.seconds_per_step[phase]) / longest;
    left -= rank.seconds_per_step[phase];
    bar.append(part);
  }
  const rest = make('span');
  rest.style.flexGrow = (100 * Math.max(0, left)) / longest;
  bar.append(rest);
  const waits = number(rank.seconds_per_step[SYNC] ?? 0, 'seconds');
  return make('tr', {}, make(slow ? 'th.slow' : 'th', { scope: 'row' }, name), make('td', {}, bar), make('td.waited', {}, `waits ${waits}`));
}

let shownRanks = '';
let isVerdict = null;

// Opened or closed when a verdict begins or ends; in between, the reader decides.
function place(verdict, narrow) {
  if (verdict === isVerdict) return;
  isVerdict = verdict;
  byId(verdict ? 'first' : 'folded').prepend(byId('waits'));
  byId('waits').open = verdict && !narrow;
}

export function describeWaits({ stragglers }) {
  const names = stragglers.map(({ instance }) => instance);
  return names.length === 0 ? 'what a step of each rank consists of' : `${names.join(', ')} ${names.length === 1 ? 'holds' : 'hold'} the others up`;
}

// The ranks that the others wait for are in the headline. Of ranks that hang or stand still, there are no steps to show. `narrow`: on a
// phone the bars stay folded.
export function showWaits({ verdicts }, narrow) {
  const { stragglers, ranks } = verdicts;
  place(stragglers.length > 0, narrow);
  byId('waits').hidden = ranks.length < 2;
  setText(byId('waits-count'), describeWaits(verdicts));
  const ranksKey = JSON.stringify([ranks, stragglers.map(({ role, instance }) => [role, instance])]);
  if (ranksKey === shownRanks) return;
  shownRanks = ranksKey;
  const sum = ({ seconds_per_step: phases }) => Object.values(phases).reduce((total, seconds) => total + seconds, 0);
  const longest = Math.max(0, ...ranks.map(sum));
  const roles = new Set(ranks.map(({ role }) => role)).size;
  const isSlow = (rank) => stragglers.some(({ role, instance }) => role === rank.role && instance === rank.instance);
  setChildren(byId('waits-ranks'), ranks.map((rank) => makeRow(rank, longest, roles, isSlow(rank))));
  const phases = [...new Set(ranks.flatMap(({ seconds_per_step: of }) => Object.keys(of).filter((phase) => of[phase] > 0)))].sort(inOrder);
  setChildren(byId('waits-legend'), phases.map((phase) => make(`li.${classOf(phase)}`, {}, phase === SYNC ? 'sync: it waits for others' : phase)));
}
