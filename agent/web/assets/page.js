// The page: polls the agent, shows its answers, and handles keys and buttons.
import { get } from './api.js';
import { hasCards, search, setSearch, showFamilies, showFoldedLinks } from './cards.js';
import { showDeaths } from './deaths.js';
import { byId, make, setText } from './dom.js';
import { addEvents, MAX_EVENTS } from './events.js';
import { dated, duration, moment, number } from './format.js';
import { setFocus } from './focus.js';
import { showGoodput } from './goodput.js';
import { isOver, showAgentGone, showHealth, showKept } from './health.js';
import { showMachine } from './machine.js';
import { report } from './report.js';
import { showTiles } from './status.js';
import { fromUrl, keepInUrl } from './url.js';
import { view } from './view.js';
import { showWaits } from './waits.js';
import { showWorkers } from './workers.js';

const RANGES = [
  ['5m', 300, '5 minutes'],
  ['15m', 900, '15 minutes'],
  ['30m', 1800, '30 minutes'],
  ['all', Infinity, 'The whole history'],
];
const POINTS = 240;
const MIN_SPAN_MS = 60000;
const METADATA_EVERY_MS = 10000;
const AFTER_END_MS = 2000;
const narrow = matchMedia('(max-width: 560px)');

let status = null;
let range = report === null ? 300 : Infinity;
let zoom = null;
let paused = false;
let downSince = null;
let hasEnded = false;
let endedAt = 0;
let metadataAt = 0;
let series = -1;

// ---- time range ----

function minStep() {
  return Math.max(status.history.step_seconds * 1000, 100);
}

function updateWindow() {
  const oldest = status.history.oldest_ms;
  view.noData = '';
  if (oldest === null) {
    view.noData = status.history.seconds === 0 ? 'the agent keeps no history (history_seconds is 0)' : 'nothing collected yet';
  }
  const now = status.now_ms;
  const [from, to] = zoom ?? [Math.max(now - range * 1000, Math.min(oldest ?? now, now - MIN_SPAN_MS)), now];
  const step = Math.ceil(Math.max(minStep(), (to - from) / POINTS));
  // Multiples of the step: a point keeps its time from one answer to the next. The last answer, and a report, have the last moment, too.
  const shift = hasEnded || report !== null ? now % step : 0;
  const whole = (time) => Math.floor((time - shift) / step) * step + shift;
  const end = whole(Math.min(to + step, now));
  const start = Math.min(whole(Math.max(from, oldest ?? from)), end);
  view.window = { start, end, step, from, to: zoom ? to : end };
}

function redraw() {
  for (const card of view.cards) {
    card.draw();
    card.refresh();
  }
}

view.zoomTo = (from, to) => {
  if (!status) return;
  zoom = null;
  if (from !== undefined) {
    const middle = (from + to) / 2;
    const half = Math.max((to - from) / 2, 2 * minStep());
    const first = Math.min(status.history.oldest_ms ?? 0, status.now_ms - MIN_SPAN_MS);
    zoom = [Math.max(middle - half, first), Math.min(middle + half, status.now_ms)];
    if (zoom[0] <= first && zoom[1] >= status.now_ms) zoom = null;
  }
  byId('unzoom').hidden = zoom === null;
  keepInUrl({ zoom: zoom === null ? null : zoom.map(Math.round).join('-') });
  updateWindow();
  redraw();
};

// ---- polling ----

function agentAnswered() {
  if (downSince === null) return;
  downSince = null;
  view.isGone = false;
  byId('banner').hidden = true;
  document.body.classList.remove('down');
  metadataAt = 0;
  for (const card of view.cards) card.loaded = '';
}

// `status` is that of the end if the agent ended with the job.
function agentDown() {
  const isKnown = downSince !== null;
  downSince ??= Date.now();
  view.isGone = true;
  // The answer of the end may come after one that has failed.
  if (status !== null && isOver(status)) {
    byId('banner').hidden = true;
    document.body.classList.remove('down');
    showKept(status);
    return;
  }
  if (isKnown) return;
  setText(byId('banner'), `The agent has not answered since ${moment(downSince)}. The page keeps trying.`);
  byId('banner').hidden = false;
  document.body.classList.add('down');
  showAgentGone(status, downSince);
}

function showStatus() {
  setText(byId('job'), status.job);
  showHealth(status);
  showDeaths(status);
  showTiles(status);
  showWaits(status, narrow.matches);
  showWorkers(status);
  showMachine(status);
  showGoodput(status);
  showFoldedLinks();
  const { history } = status;
  setText(
    byId('about'),
    (report === null ? '' : `Report of ${dated(status.now_ms)}. `) +
      (report?.left_out > 0 ? `The values of ${report.left_out} metrics are left out, since the file would be too large. ` : '') +
      `persia-metrics-agent ${status.version}, run ${status.run_id}, ${status.directory}. ` +
      `History: at most ${duration(history.seconds)}, a collection every ${number(history.step_seconds, 'seconds')}` +
      `${history.bytes > 0.9 * history.max_bytes ? ', older ones less often' : ''}, ` +
      `${number(history.bytes, 'bytes')} of ${number(history.max_bytes, 'bytes')}.`,
  );
}

async function poll() {
  const answer = await get('status', {}, { urgent: true });
  // Overtaken by that of the end, after which the agent still answers for a second.
  if (answer.run_id === status?.run_id && (answer.now_ms < status.now_ms || Date.now() - endedAt < AFTER_END_MS)) return;
  if (answer.run_id !== status?.run_id) hasEnded = false;
  status = answer;
  agentAnswered();
  showStatus();
  // A new series may belong to a new family.
  if (Date.now() - metadataAt > METADATA_EVERY_MS || status.series !== series) {
    const answer = await get('metadata', {}, { urgent: true });
    // An agent that has just restarted has no families yet; the page keeps its cards.
    if (answer.families.length > 0 || !hasCards()) {
      metadataAt = Date.now();
      series = status.series;
      showFamilies(answer.families);
    }
  }
  if (paused) return;
  updateWindow();
  await pollEvents();
  refreshCards();
}

function refreshCards() {
  for (const card of view.cards) card.refresh();
}

async function pollEvents() {
  const newest = view.events.at(-1)?.timestamp;
  // From the millisecond before: the newest known one may have more events.
  const { events } = await get('events', { limit: MAX_EVENTS, ...(newest ? { since: newest - 1 } : {}) }, { urgent: true });
  addEvents(events);
}

// A job whose agent is killed does not tell its end.
function awaitEnd() {
  new Worker('assets/end.js', { type: 'module' }).addEventListener('message', ({ data }) => {
    status = data;
    showStatus();
    hasEnded = true;
    endedAt = Date.now();
    updateWindow();
    // The agent answers for a second. A card that waits for an answer now is asked again.
    pollEvents().catch(() => {});
    for (const card of view.cards) card.loaded = '';
    for (const wait of [0, 300, 600]) setTimeout(refreshCards, wait);
    agentDown();
  });
}

let timer = null;

async function run() {
  timer = null;
  try {
    await poll();
  } catch (error) {
    if (error.status === undefined) agentDown();
    else console.warn(error.message);
  }
  if (report !== null) return;
  const wait = Math.min(Math.max(status?.history.step_seconds ?? 1, 1), 5) * 1000;
  // A hidden page polls less.
  timer = setTimeout(run, downSince === null ? (document.hidden ? 10000 : wait) : status !== null && isOver(status) ? 5000 : 1000);
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden || timer === null) return;
  clearTimeout(timer);
  run();
});

// ---- buttons and keys ----

function setPaused(value) {
  paused = value;
  byId('pause').setAttribute('aria-pressed', String(paused));
  setText(byId('pause').querySelector('span'), paused ? 'Resume' : 'Pause');
  document.body.classList.toggle('paused', paused);
  if (!paused && status) {
    updateWindow();
    redraw();
  }
}

function showTheme() {
  const chosen = document.documentElement.dataset.theme;
  view.theme = chosen ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  for (const card of view.cards) card.draw();
}

function toggleTheme() {
  document.documentElement.dataset.theme = view.theme === 'dark' ? 'light' : 'dark';
  try {
    localStorage.setItem('persia-theme', document.documentElement.dataset.theme);
  } catch {
    // Storage may be disabled: the choice lasts until the page is closed.
  }
  showTheme();
}

byId('unzoom').addEventListener('click', () => view.zoomTo());
byId('pause').addEventListener('click', () => setPaused(!paused));
byId('theme').addEventListener('click', toggleTheme);
byId('search-form').addEventListener('submit', (event) => event.preventDefault());
byId('search').addEventListener('input', () => {
  setSearch(byId('search').value);
  keepInUrl({ search: byId('search').value.trim() });
  search();
});
byId('unfocus').addEventListener('click', () => setFocus(null));

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest('input');
  if (typing) {
    if (event.key === 'Escape') {
      typing.value = '';
      typing.dispatchEvent(new Event('input'));
      typing.blur();
    }
  } else if (event.key === '/') {
    event.preventDefault();
    byId('search').focus();
    byId('search').select();
  } else if (event.key === 'p' && report === null) {
    setPaused(!paused);
  }
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', showTheme);

// As the URL has it.
function restore() {
  range = RANGES.find(([name]) => name === fromUrl('range'))?.[1] ?? range;
  const span = (fromUrl('zoom') ?? '').split('-').map(Number);
  if (span.length === 2 && span[0] > 0 && span[1] > span[0]) zoom = span;
  byId('unzoom').hidden = zoom === null;
  byId('search').value = fromUrl('search') ?? '';
  setSearch(byId('search').value);
  const [role, instance] = (fromUrl('worker') ?? '').split('/');
  if (instance) setFocus({ role, instance }, { go: false });
}

restore();
document.body.classList.toggle('report', report !== null);
if (narrow.matches) byId('deaths').open = false;
// A report has no other ranges: all that it has is shown, and a zoom shows parts.
for (const [name, seconds, spoken] of report === null ? RANGES : []) {
  const button = make('button', { type: 'button', 'aria-pressed': String(seconds === range), 'aria-label': spoken }, name);
  button.addEventListener('click', () => {
    range = seconds;
    keepInUrl({ range: name });
    for (const each of byId('ranges').children) each.setAttribute('aria-pressed', String(each === button));
    view.zoomTo();
  });
  byId('ranges').append(button);
}
showTheme();
run();
if (report === null) awaitEnd();
