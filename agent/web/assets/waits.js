// Who waits for whom: the ranks that the others wait for, at each step or in a hang, and what the steps of the ranks consist of.
import { byId, make, setChildren, setText } from './dom.js';
import { setFocus } from './focus.js';
import { clock, number } from './format.js';

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

function makeVerdict(verdict) {
  const button = make('button.reason', { type: 'button', title: 'Show the charts of this rank alone' }, verdict.text);
  button.addEventListener('click', () => setFocus({ role: verdict.role, instance: verdict.instance }));
  return make('li', {}, button, ` since ${clock(verdict.since_ms)}`);
}

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

let shownVerdicts = '';
let shownRanks = '';

export function showWaits({ verdicts }) {
  const { stragglers, hangs, ranks } = verdicts;
  const found = [...hangs, ...stragglers];
  byId('waits').hidden = found.length === 0 && ranks.length < 2;
  setText(byId('waits-count'), found.length === 0 ? 'no rank holds the others up' : '');
  // Buttons are made anew only for other verdicts: a reader may be about to click.
  const verdictKey = JSON.stringify(found.map(({ role, instance, since_ms: since }) => [role, instance, since]));
  if (verdictKey !== shownVerdicts) {
    shownVerdicts = verdictKey;
    setChildren(byId('waits-verdicts'), found.map(makeVerdict));
  }
  found.forEach(({ text }, i) => setText(byId('waits-verdicts').children[i].firstChild, text));
  const ranksKey = JSON.stringify([ranks, verdictKey]);
  if (ranksKey === shownRanks) return;
  shownRanks = ranksKey;
  byId('waits-steps').hidden = ranks.length < 2;
  const sum = ({ seconds_per_step: phases }) => Object.values(phases).reduce((total, seconds) => total + seconds, 0);
  const longest = Math.max(0, ...ranks.map(sum));
  const roles = new Set(ranks.map(({ role }) => role)).size;
  const isSlow = (rank) => found.some(({ role, instance }) => role === rank.role && instance === rank.instance);
  setChildren(byId('waits-ranks'), ranks.map((rank) => makeRow(rank, longest, roles, isSlow(rank))));
  const phases = [...new Set(ranks.flatMap(({ seconds_per_step: of }) => Object.keys(of).filter((phase) => of[phase] > 0)))].sort(inOrder);
  setChildren(byId('waits-legend'), phases.map((phase) => make(`li.${classOf(phase)}`, {}, phase === SYNC ? 'sync: it waits for others' : phase)));
}
