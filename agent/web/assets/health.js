// What the page says first: how the job is, and the worst that is wrong with it; then whether its metrics arrive.
import { byId, make, setChildren, setText } from './dom.js';
import { duration, moment, titled } from './format.js';
import { setFocus } from './focus.js';

const MAX_TROUBLES = 5;
const MAX_HEADLINE = 110; // characters of a trouble in the headline
const BAD = ['degraded', 'hung', 'failed'];
const OVER = ['finished', 'failed'];
const ICON =
  "%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='7' fill='%23{color}'/%3E%3Cpath d='{path}' " +
  "fill='none' stroke='%23fff' stroke-width='3' stroke-linecap='round' stroke-linejoin='round'/%3E%3C/svg%3E";
const LINE = 'M5 21l6-8 5 5 5-10 6 9';
const MARK = 'M16 6v12M16 25v.1';

// A launcher is no rank, and its end only follows that of its ranks.
export const inState = (workers, state) => workers.filter((worker) => worker.state === state && worker.role !== 'launcher').length;
export const isOver = ({ health }) => OVER.includes(health.state);

// "1 died, 2 hung": in short, for the title of the tab. The workers are counted, since the reasons have a limit.
export function summary({ health: { state, reasons }, workers }) {
  const of = (wanted) => reasons.filter(({ kind }) => kind === wanted).length;
  const parts = [
    [inState(workers, 'died'), 'died'],
    [inState(workers, 'hung'), 'hung'],
    [of('restarting'), 'restarting'],
    [of('not_finite'), 'NaN'],
    [of('slow'), 'slow'],
  ]
    .filter(([n]) => n > 0)
    .map(([n, word]) => `${n} ${word}`);
  return (state === 'failed' || parts.length === 0 ? [state, ...parts] : parts).join(', ');
}

// ---- the banner ----

// The first of each kind are shown before the second ones, so that many deaths do not hide a hang.
function choose(troubles) {
  const place = (trouble) => troubles.filter(({ kind }) => kind === trouble.kind).indexOf(trouble);
  const chosen = [...troubles].sort((a, b) => place(a) - place(b)).slice(0, MAX_TROUBLES);
  return troubles.filter((trouble) => chosen.includes(trouble));
}

// "35 more died, 1 more hung": what the chosen ones leave out. Those of a failed job count by themselves.
export function describeRest({ health: { state }, workers }, troubles, chosen) {
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

export const shortened = (text) => (text.length > MAX_HEADLINE ? `${text.slice(0, MAX_HEADLINE - 1)}…` : text);

export function sinceOf({ kind, text, since_ms: since }) {
  if (since === null) return '';
  const isMoment = kind === 'died' || text.includes(', since step ');
  return ` ${isMoment ? 'at' : 'since'} ${moment(since)}`;
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
  const last = delivery?.since_ms ? `; the last one arrived at ${moment(delivery.since_ms)}` : '';
  setText(byId('delivery'), delivery ? `Delivery: ${delivery.text}${last}` : '');
}

// With a trouble or a standstill, whose time stands beside it, the state is named, too.
export function timeText({ health: { state, since_ms: since }, now_ms: now }, hasTroubles) {
  if (since === null) return '';
  if (OVER.includes(state)) return `${hasTroubles ? `${state} ` : ''}at ${moment(since)}`;
  return `${hasTroubles ? `${state} ` : ''}for ${duration((now - since) / 1000)}${hasTroubles ? '' : `, since ${moment(since)}`}`;
}

let shown = '';

// Buttons are made anew only if a trouble is another one: a reader may be about to click.
function showTroubles(status, troubles) {
  const chosen = choose(troubles);
  const rest = describeRest(status, troubles, chosen);
  // The text of these changes with each step.
  const isCounted = ({ kind }) => ['slow', 'hung', 'job_hung'].includes(kind);
  const keyOf = (trouble) => [trouble.kind, trouble.role, trouble.instance, isCounted(trouble) || trouble.text, trouble.since_ms];
  const key = JSON.stringify([chosen.map(keyOf), rest]);
  const [worst, ...others] = chosen;
  if (key !== shown) {
    shown = key;
    byId('health-worst').replaceChildren(...(worst ? [makeTrouble(worst, shortened(worst.headline)), make('small', {}, sinceOf(worst))] : []));
    const items = others.map((trouble) => make('li', {}, makeTrouble(trouble), sinceOf(trouble)));
    setChildren(byId('health-reasons'), [...items, ...(rest ? [makeRest(rest)] : [])]);
  }
  if (worst) setText(byId('health-worst').firstChild, shortened(worst.headline));
  others.forEach(({ text }, i) => setText(byId('health-reasons').children[i].firstChild, text));
  byId('health-worst').hidden = !worst;
  // What the headline leaves out.
  const isWhole = worst?.headline === shortened(worst?.headline ?? '');
  const more = !worst ? '' : !isWhole ? titled(worst.text) : worst.text.slice(worst.headline.length).replace(/^([:;.]? )/, '');
  setText(byId('health-more'), more);
  byId('health-more').hidden = more === '';
}

export function showHealth(status) {
  const { health, job } = status;
  const { state } = health;
  const troubles = health.reasons;
  // A job that is interrupted or loses values has a reason, and is not in trouble.
  const bad = BAD.includes(state) || troubles.some(({ kind }) => kind !== 'interrupted' && kind !== 'lost');
  const element = byId('health');
  element.hidden = false;
  const stands = health.standstill_seconds !== null;
  element.className = `health ${bad ? 'bad' : stands ? 'still' : state === 'waiting' ? '' : 'good'}`;
  setText(byId('health-state'), health.title);
  setText(byId('health-since'), timeText(status, troubles.length > 0 || stands));
  setText(byId('health-text'), health.text);
  byId('health-text').hidden = health.text === '';
  byId('health-kept').hidden = true;
  const attempt = status.attempt?.text ?? '';
  setText(byId('health-attempt'), titled(attempt));
  byId('health-attempt').hidden = attempt === '';
  showTroubles(status, troubles);
  showDelivery(status.delivery);
  mark(`${bad ? `! ${summary(status)} – ` : ''}${job} – Persia Metrics`, bad);
}

// `kept_page` is the file to which the agent writes the page as its last act.
export function keptText({ kept_page: file, now_ms: now }) {
  return `The agent has ended with the job${file ? `, and keeps this page in ${file}` : ''}. Shown are the last values, of ${moment(now)}.`;
}

// The agent ended with its job: the page keeps its last status, which says how the job ended.
export function showKept(last) {
  showHealth(last);
  byId('health-kept').hidden = false;
  setText(byId('health-kept'), keptText(last));
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
  setText(byId('health-since'), `since ${moment(since)}`);
  const before = last ? ` The job was ${last.health.state} at ${moment(last.now_ms)}, and this page shows that moment.` : '';
  setText(byId('health-text'), `It ended without telling how the job ended, or it cannot be reached.${before}`);
  byId('health-text').hidden = false;
}
