// What the page says first: how the job is, and the worst that is wrong with it; then whether its metrics arrive.
import { byId, make, setChildren, setText } from './dom.js';
import { clock, duration, number, titled } from './format.js';
import { setFocus } from './focus.js';

const WORDS = { waiting: 'Waiting', running: 'Running', degraded: 'Degraded', hung: 'Hung', failed: 'Failed', finished: 'Finished' };
const MAX_TROUBLES = 5;
const MAX_HEADLINE = 110; // characters of a trouble in the headline
const BAD = ['degraded', 'hung', 'failed'];
const OVER = ['finished', 'failed'];
const ICON =
  "%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='7' fill='%23{color}'/%3E%3Cpath d='{path}' " +
  "fill='none' stroke='%23fff' stroke-width='3' stroke-linecap='round' stroke-linejoin='round'/%3E%3C/svg%3E";
const LINE = 'M5 21l6-8 5 5 5-10 6 9';
const MARK = 'M16 6v12M16 25v.1';

const inState = (workers, state) => workers.filter((worker) => worker.state === state).length;
export const isOver = ({ health }) => OVER.includes(health.state);

// ---- what is wrong, the worst first: [{kind, text, role, instance, since_ms}] ----

const ofValue = ({ name, value, labels, role, instance, step, since_ms: since }) => {
  const of = Object.entries(labels ?? {}).map(([label, text]) => `${label}=${text}`);
  const at = step === null ? '' : ` since step ${Math.floor(step).toLocaleString('en')}`;
  return { kind: 'not_finite', step, role, instance, since_ms: since, text: `${[name, ...of].join(' ')} is ${value} on ${role} ${instance}${at}` };
};

// By the phases; without them, by the counter of progress.
function slowOnes({ verdicts, throughput }) {
  if (verdicts.stragglers.length > 0 || !throughput?.slowest) return verdicts.stragglers.map((straggler) => ({ ...straggler, kind: 'slow' }));
  const { role, instance, now, median } = throughput.slowest;
  const text = `${role} ${instance} is slower than the others: ${number(now, '', true)}, the median is ${number(median, '', true)}`;
  return [{ kind: 'slow', role, instance, since_ms: null, text }];
}

export function troublesOf(status) {
  const { health, verdicts, not_finite: values } = status;
  const { exit_code: code, reasons } = health;
  // The headline has the exit code itself.
  const told = ({ kind, instance, text }) => kind === 'failed' && instance === null && code !== null && text.endsWith(` exit code ${code}`);
  const known = reasons.filter((reason) => !told(reason));
  if (isOver(status)) return [...known, ...values.map(ofValue)];
  // The reason of a hang is the rank that the others wait for, whose verdict says more.
  const hangs = verdicts.hangs.map((hang) => ({ ...hang, kind: 'hung' }));
  const isSame = (one, other) => one.role === other.role && one.instance === other.instance;
  const others = known.filter(({ kind, ...reason }) => !hangs.some((hang) => (kind === 'hung' ? isSame(hang, reason) : kind === 'job_hung')));
  const place = ['job_hung', 'died', 'hung', 'restarting'];
  const judged = [...others, ...hangs].sort((a, b) => place.indexOf(a.kind) - place.indexOf(b.kind));
  return [...judged, ...values.map(ofValue), ...slowOnes(status)];
}

// "1 died, 2 hung": in short, for the title of the tab. The workers are counted, since the reasons have a limit.
function summary({ health: { state, reasons }, workers }, troubles) {
  const of = (kind) => troubles.filter((trouble) => trouble.kind === kind);
  const parts = [
    [inState(workers, 'died'), 'died'],
    [inState(workers, 'hung'), 'hung'],
    [reasons.filter(({ kind }) => kind === 'restarting').length, 'restarting'],
    [of('not_finite').length, 'NaN'],
    [of('slow').length, 'slow'],
  ]
    .filter(([n]) => n > 0)
    .map(([n, word]) => `${n} ${word}`);
  return (state === 'failed' || parts.length === 0 ? [WORDS[state].toLowerCase(), ...parts] : parts).join(', ');
}

// What a job without troubles is like.
export function describe({ health: { state }, workers }) {
  if (state === 'waiting') return 'no worker has started yet';
  if (state !== 'running') return '';
  const idle = inState(workers, 'idle');
  const starting = inState(workers, 'starting');
  if (idle > 0) return `none died or hangs; ${idle} of ${workers.length} idle: their metrics have not changed for a minute or longer`;
  return starting > 0 ? `${starting} of ${workers.length} starting` : 'all workers are well';
}

// ---- the banner ----

// The first of each kind are shown before the second ones, so that many deaths do not hide a hang.
function choose(troubles) {
  const place = (trouble) => troubles.filter(({ kind }) => kind === trouble.kind).indexOf(trouble);
  const chosen = [...troubles].sort((a, b) => place(a) - place(b)).slice(0, MAX_TROUBLES);
  return troubles.filter((trouble) => chosen.includes(trouble));
}

// "35 more died, 1 more hung": what the chosen ones leave out. Those of a failed job count by themselves.
function describeRest({ health: { state }, workers }, troubles, chosen) {
  const of = (list, kind) => list.filter((trouble) => trouble.kind === kind).length;
  // Deaths come first in the reasons; at their limit, a hang may be missing.
  const counted = state === 'degraded' ? ['hung', ...(of(troubles, 'died') > 0 ? ['died'] : [])] : [];
  return [...new Set(['died', 'hung', ...troubles.map(({ kind }) => kind)])]
    .map((kind) => {
      const all = counted.includes(kind) ? inState(workers, kind) : 0;
      return [Math.max(all, of(troubles, kind)) - of(chosen, kind), kind];
    })
    .filter(([n]) => n > 0)
    .map(([n, kind]) => `${n} more ${kind === 'not_finite' ? 'NaN' : kind}`)
    .join(', ');
}

// The first clause: the circumstances of a death follow it, in parentheses or after a semicolon.
export function headlineOf({ kind, text }) {
  const clause = kind === 'died' ? text.split(/; | \(/)[0] : text;
  return clause.length > MAX_HEADLINE ? `${clause.slice(0, MAX_HEADLINE - 1)}…` : clause;
}

function sinceOf({ kind, step, since_ms: since }) {
  if (since === null || since === undefined) return '';
  const isMoment = kind === 'died' || (kind === 'not_finite' && step !== null);
  return ` ${isMoment ? 'at' : 'since'} ${clock(since)}`;
}

function makeTrouble(trouble, text = trouble.text) {
  if (!trouble.instance) return make('span.trouble', {}, text);
  const button = make('button.reason', { type: 'button', title: 'Show the charts of this worker alone' }, text);
  button.addEventListener('click', () => setFocus({ role: trouble.role, instance: trouble.instance }));
  return button;
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

// The metrics do not arrive: that is not how the job is.
function showDelivery(delivery) {
  byId('delivery').hidden = !delivery;
  const last = delivery?.since_ms ? `; the last one arrived at ${clock(delivery.since_ms)}` : '';
  setText(byId('delivery'), delivery ? `Delivery: ${delivery.text}${last}` : '');
}

export const stateText = ({ state, exit_code: code }) => (OVER.includes(state) && code !== null ? `${WORDS[state]}, exit ${code}` : WORDS[state]);

// With a trouble, whose time stands beside it, the state is named, too.
function timeText({ health: { state, since_ms: since }, now_ms: now }, hasTroubles) {
  if (since === null) return '';
  if (OVER.includes(state)) return `${hasTroubles ? `${state} ` : ''}at ${clock(since)}`;
  return `${hasTroubles ? `${state} ` : ''}for ${duration((now - since) / 1000)}${hasTroubles ? '' : `, since ${clock(since)}`}`;
}

let shown = '';

// Buttons are made anew only if a trouble is another one: a reader may be about to click.
function showTroubles(status, troubles) {
  const chosen = choose(troubles);
  const rest = describeRest(status, troubles, chosen);
  // The text of these two changes with each step.
  const isCounted = ({ kind }) => kind === 'slow' || kind === 'hung';
  const keyOf = (trouble) => [trouble.kind, trouble.role, trouble.instance, isCounted(trouble) || trouble.text, trouble.since_ms];
  const key = JSON.stringify([chosen.map(keyOf), rest]);
  const [worst, ...others] = chosen;
  if (key !== shown) {
    shown = key;
    byId('health-worst').replaceChildren(...(worst ? [makeTrouble(worst, headlineOf(worst)), make('small', {}, sinceOf(worst))] : []));
    const items = others.map((trouble) => make('li', {}, makeTrouble(trouble), sinceOf(trouble)));
    setChildren(byId('health-reasons'), [...items, ...(rest ? [makeRest(rest)] : [])]);
  }
  if (worst) setText(byId('health-worst').firstChild, headlineOf(worst));
  others.forEach(({ text }, i) => setText(byId('health-reasons').children[i].firstChild, text));
  byId('health-worst').hidden = !worst;
  const more = worst && headlineOf(worst) !== worst.text ? titled(worst.text) : '';
  setText(byId('health-more'), more);
  byId('health-more').hidden = more === '';
}

export function showHealth(status) {
  const { health, job } = status;
  const { state } = health;
  const troubles = troublesOf(status);
  // An interrupted job has a reason, and is not in trouble.
  const bad = BAD.includes(state) || troubles.some(({ kind }) => kind !== 'failed');
  const element = byId('health');
  element.hidden = false;
  element.className = `health ${bad ? 'bad' : state === 'waiting' ? '' : 'good'}`;
  setText(byId('health-state'), stateText(health));
  setText(byId('health-since'), timeText(status, troubles.length > 0));
  const text = troubles.length > 0 ? '' : describe(status);
  setText(byId('health-text'), text);
  byId('health-text').hidden = text === '';
  byId('health-kept').hidden = true;
  showTroubles(status, troubles);
  showDelivery(status.delivery);
  mark(`${bad ? `! ${summary(status, troubles)} – ` : ''}${job} – Persia Metrics`, bad);
}

// The agent ended with its job: the page keeps its last status, which says how the job ended.
export function showKept(last) {
  showHealth(last);
  byId('health-kept').hidden = false;
  setText(byId('health-kept'), `The agent has ended with the job. This page shows the last values, of ${clock(last.now_ms)}.`);
}

// The agent does not answer, so the state of the job is unknown. `last`: the last status, or null if there was none.
export function showAgentGone(last, since) {
  mark(`! agent gone – ${last ? `${last.job} – ` : ''}Persia Metrics`, true);
  byId('health').hidden = false;
  byId('health').className = 'health bad';
  for (const id of ['delivery', 'health-kept', 'health-worst', 'health-more']) byId(id).hidden = true;
  shown = '';
  byId('health-reasons').replaceChildren();
  setText(byId('health-state'), 'Agent gone');
  setText(byId('health-since'), `since ${clock(since)}`);
  const before = last ? ` The job was ${WORDS[last.health.state].toLowerCase()} at ${clock(last.now_ms)}, and this page shows that moment.` : '';
  setText(byId('health-text'), `It ended without telling how the job ended, or it cannot be reached.${before}`);
  byId('health-text').hidden = false;
}
