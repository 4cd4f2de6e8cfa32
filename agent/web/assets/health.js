// What the page says first: how the job is, since when, why, and how fast it trains.
import { byId, make, setChildren, setText } from './dom.js';
import { clock, duration, number } from './format.js';
import { setFocus } from './focus.js';

const WORDS = { waiting: 'Waiting', running: 'Running', degraded: 'Degraded', hung: 'Hung', failed: 'Failed', finished: 'Finished' };
const MAX_REASONS = 5;
const MIN_COMPARED_MS = 120000;
const BAD = ['degraded', 'hung', 'failed'];
const GOES_ON = ['running', 'degraded', 'hung'];
const ICON =
  "%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='7' fill='%23{color}'/%3E%3Cpath d='{path}' " +
  "fill='none' stroke='%23fff' stroke-width='3' stroke-linecap='round' stroke-linejoin='round'/%3E%3C/svg%3E";
const LINE = 'M5 21l6-8 5 5 5-10 6 9';
const MARK = 'M16 6v12M16 25v.1';

const inState = (workers, state) => workers.filter((worker) => worker.state === state).length;

// "1 died, 2 hung": what is wrong, in short. The workers are counted, since the reasons have a limit.
function summary({ health: { state, reasons }, workers }) {
  const parts = [
    [inState(workers, 'died'), 'died'],
    [inState(workers, 'hung'), 'hung'],
    [reasons.filter(({ kind }) => kind === 'restarting').length, 'restarting'],
  ]
    .filter(([n]) => n > 0)
    .map(([n, word]) => `${n} ${word}`);
  return (state === 'failed' || parts.length === 0 ? [WORDS[state].toLowerCase(), ...parts] : parts).join(', ');
}

// What a job without reasons is like.
function describe({ health: { state }, workers }) {
  if (state === 'waiting') return 'no worker has started yet';
  if (state !== 'running') return '';
  const idle = inState(workers, 'idle');
  const starting = inState(workers, 'starting');
  if (idle > 0) return `none died or hangs; ${idle} of ${workers.length} idle: their metrics have not changed for a minute or longer`;
  return starting > 0 ? `${starting} of ${workers.length} starting` : 'all workers are well';
}

// The first of each kind are shown before the second ones, so that many deaths do not hide a hang.
function choose(reasons) {
  const place = (reason) => reasons.filter(({ kind }) => kind === reason.kind).indexOf(reason);
  const chosen = [...reasons].sort((a, b) => place(a) - place(b)).slice(0, MAX_REASONS);
  return reasons.filter((reason) => chosen.includes(reason));
}

// "35 more died, 1 more hung": what the chosen reasons leave out. The reasons of a failed job count by themselves.
function describeRest({ health: { state, reasons }, workers }, chosen) {
  const of = (list, kind) => list.filter((reason) => reason.kind === kind).length;
  // Deaths come first in the reasons; at their limit, a hang may be missing.
  const counted = state === 'degraded' ? ['hung', ...(of(reasons, 'died') > 0 ? ['died'] : [])] : [];
  return [...new Set(['died', 'hung', ...reasons.map(({ kind }) => kind)])]
    .map((kind) => {
      const all = counted.includes(kind) ? inState(workers, kind) : 0;
      return [Math.max(all, of(reasons, kind)) - of(chosen, kind), kind];
    })
    .filter(([n]) => n > 0)
    .map(([n, kind]) => `${n} more ${kind}`)
    .join(', ');
}

function makeReason(reason) {
  const since = reason.since_ms === null ? '' : ` ${reason.kind === 'died' ? 'at' : 'since'} ${clock(reason.since_ms)}`;
  if (reason.instance === null) return make('li', {}, reason.text + since);
  const button = make('button.reason', { type: 'button', title: 'Show the charts of this worker alone' }, reason.text);
  button.addEventListener('click', () => setFocus({ role: reason.role, instance: reason.instance }));
  return make('li', {}, button, since);
}

function makeRest(text) {
  const button = make('button.reason', { type: 'button', title: 'Show the table of workers' }, `and ${text}`);
  button.addEventListener('click', () => {
    byId('workers').open = true;
    byId('workers').scrollIntoView();
  });
  return make('li', {}, button);
}

function mark(title, bad) {
  document.title = title;
  const icon = ICON.replace('{color}', bad ? 'b84a00' : '0072b2').replace('{path}', bad ? MARK : LINE);
  document.querySelector('link[rel=icon]').href = `data:image/svg+xml,${icon}`;
}

let shown = '';

// The metrics do not arrive: that is not how the job is.
function showDelivery(delivery) {
  byId('delivery').hidden = delivery === null;
  const last = delivery?.since_ms ? `; the last one arrived at ${clock(delivery.since_ms)}` : '';
  setText(byId('delivery'), delivery === null ? '' : `Delivery: ${delivery.text}${last}`);
}

export function showHealth(status) {
  const { health, now_ms: now, job } = status;
  const { state, since_ms: since } = health;
  const bad = BAD.includes(state);
  const element = byId('health');
  element.hidden = false;
  element.className = `health ${bad ? 'bad' : state === 'waiting' ? '' : 'good'}`;
  setText(byId('health-state'), WORDS[state]);
  setText(byId('health-since'), since === null ? '' : `since ${clock(since)}, ${duration((now - since) / 1000)}`);
  const chosen = choose(health.reasons);
  const rest = describeRest(status, chosen);
  const text = chosen.length > 0 ? '' : describe(status);
  setText(byId('health-text'), text && `– ${text}`);
  byId('health-text').hidden = text === '';
  // Buttons are made anew only if a reason is another one: a reader may be about to click.
  const key = JSON.stringify([chosen.map(({ kind, text: words, since_ms: at }) => [kind, words, at]), rest]);
  if (key !== shown) {
    shown = key;
    setChildren(byId('health-reasons'), [...chosen.map(makeReason), ...(rest ? [makeRest(rest)] : [])]);
  }
  showDelivery(status.delivery);
  mark(`${bad ? `! ${summary(status)} – ` : ''}${job} – Persia Metrics`, bad);
}

// The agent does not answer, so the state of the job is unknown. `last`: the last status, or null if there was none.
export function showAgentGone(last, since) {
  mark(`! agent gone – ${last ? `${last.job} – ` : ''}Persia Metrics`, true);
  byId('health').hidden = false;
  byId('delivery').hidden = true;
  byId('health').className = 'health bad';
  setText(byId('health-state'), 'Agent gone');
  setText(byId('health-since'), `since ${clock(since)}`);
  const before = last ? ` The job was ${WORDS[last.health.state].toLowerCase()} at ${clock(last.now_ms)}, and this page shows that moment.` : '';
  setText(byId('health-text'), `– it ended with its job, or it was killed.${before}`);
  byId('health-text').hidden = false;
}

// Value, detail and state of the tile of the job's throughput.
export function throughputTile({ throughput, health, history, now_ms: at }) {
  if (!throughput) return ['–', 'no counter of steps, batches, samples or tokens', ''];
  const { now, last_10m: before, name } = throughput;
  if (!GOES_ON.includes(health.state)) return [number(before, '', true), `${name}: in the last 10 minutes`, ''];
  // While ranks start, the first seconds say little.
  const compares = before > 0 && at - history.oldest_ms >= MIN_COMPARED_MS;
  const part = compares ? now / before : 1;
  const compared = compares ? `${Math.round(part * 100)} % of the last 10 minutes` : 'too new to be compared';
  return [number(now, '', true), `${name}: ${compared}`, part < 0.8 ? 'bad' : now > 0 ? 'good' : ''];
}

// Ranks that meet at each step are equally fast: of these, the one that the others wait for.
export function slowestTile({ throughput, health, verdicts }) {
  const goesOn = GOES_ON.includes(health.state);
  const [straggler] = verdicts.stragglers;
  if (goesOn && straggler) {
    const part = Math.round((100 * straggler.seconds_per_step) / straggler.step_seconds);
    return [straggler.instance, `${straggler.role}: longer in ${straggler.phase}, by ${part} % of a step`, 'bad'];
  }
  if (!throughput) return ['–', 'no counter of progress', ''];
  if (!goesOn) return ['–', 'no rank runs', ''];
  const { slowest } = throughput;
  if (!slowest) return ['none', 'all ranks are equally fast', 'good'];
  return [slowest.instance, `${slowest.role}: ${number(slowest.now, '', true)}, the median is ${number(slowest.median, '', true)}`, 'bad'];
}
