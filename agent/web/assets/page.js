// The page: polls the agent, updates the sections of cards, and handles keys and buttons.
import { get, getEnd } from './api.js';
import { ChartCard } from './chart_card.js';
import { showDeaths } from './deaths.js';
import { byId, make, setChildren, setText } from './dom.js';
import { clock, duration, number, titled } from './format.js';
import { setFocus } from './focus.js';
import { showGoodput } from './goodput.js';
import { isOver, showAgentGone, showHealth, showKept } from './health.js';
import { showMachine } from './machine.js';
import { InfoCard } from './metric_card.js';
import { pinned } from './pins.js';
import { report } from './report.js';
import { groupFamilies, PINNED } from './sections.js';
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
const MAX_EVENTS = 1000;
const narrow = matchMedia('(max-width: 560px)');
const MAX_EVENTS_LISTED = 100;

let status = null;
let range = report === null ? 300 : Infinity;
let zoom = null;
let paused = false;
let searchWords = [];
let foundByLabels = new Set(); // families whose labels' values have the words
let families = [];
let downSince = null;
let metadataAt = 0;
let series = -1;
let sections = []; // {id, element, grid, count, link, cards}

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
  // Multiples of the step: a point keeps its time from one answer to the next.
  const end = Math.floor(Math.min(to + step, now) / step) * step;
  const start = Math.min(Math.floor(Math.max(from, oldest ?? from) / step) * step, end);
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

// ---- cards ----

const screenObserver = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) entry.target.card.setShown(entry.isIntersecting);
  },
  { rootMargin: '150px 0px' },
);

// Links to what stands below the charts.
const foldedLinks = [...byId('folded').children].map((details) => {
  const link = make('a.below', { href: `#${details.id}` }, titled(details.id));
  link.addEventListener('click', () => {
    details.open = true;
  });
  return link;
});

function showFoldedLinks() {
  for (const link of foldedLinks) link.hidden = byId(link.hash.slice(1)).hidden;
}

function makeSection({ id, title, prefix, isOwn }) {
  const grid = make('div.grid');
  const count = make('span.count');
  const anchor = `group-${id.replace(/[^a-zA-Z0-9_]+/g, '-')}`;
  const heading = make('h2', {}, title);
  if (prefix) heading.append(title ? ' ' : '', make('code', {}, prefix));
  heading.append(' ', count);
  const element = make('details.section', { id: anchor, 'data-group': prefix || title.toLowerCase() }, make('summary', {}, heading), grid);
  // A phone shows the pinned charts, or the first group.
  const isFirst = !sections.some((section) => section.element.open && !section.isOwn);
  element.open = !isOwn && (!narrow.matches || id === PINNED || isFirst);
  const link = make('a', { href: `#${anchor}` }, title || prefix);
  link.addEventListener('click', () => {
    element.open = true;
  });
  return { id, element, grid, count, link, isOwn, cards: [] };
}

function makeCard(family, last) {
  const card = family.name.endsWith('_info') && family.type === 'gauge' ? new InfoCard(family) : new ChartCard(family, last);
  screenObserver.observe(card.element);
  return card;
}

function showFamilies() {
  const before = new Map(sections.flatMap(({ cards }) => cards.map((card) => [card.family.name, card])));
  sections = groupFamilies(families, pinned()).map((group) => {
    const section = sections.find(({ id }) => id === group.id) ?? makeSection(group);
    if (!sections.includes(section)) sections.push(section);
    section.cards = group.entries.map(({ family, last }) => {
      const card = before.get(family.name);
      if (!card?.isFor(family, last)) return makeCard(family, last);
      before.delete(family.name);
      card.family = family; // with another number of series
      return card;
    });
    return section;
  });
  for (const card of before.values()) {
    screenObserver.unobserve(card.element);
    card.setShown(false);
  }
  for (const { grid, cards } of sections) setChildren(grid, cards.map(({ element }) => element));
  const elements = (own) => sections.filter(({ isOwn }) => isOwn === own).map(({ element }) => element);
  setChildren(byId('sections'), elements(false));
  setChildren(byId('agent-sections'), elements(true));
  setChildren(byId('jump'), [...sections.filter(({ isOwn }) => !isOwn).map(({ link }) => link), ...foldedLinks]);
  search();
}

// By the names and help texts at once, by the values of labels when the agent has answered.
async function search() {
  const words = searchWords;
  filter();
  if (words.length === 0) return;
  try {
    const answer = await get('search', { q: words.join(' ') }, { urgent: true, wanted: () => words === searchWords });
    if (answer === null || words !== searchWords) return;
    foundByLabels = new Set(answer.families);
    filter();
  } catch {
    // The banner says that the agent does not answer.
  }
}

function setSearch(text) {
  searchWords = text.toLowerCase().split(/\s+/).filter(Boolean);
  foundByLabels = new Set();
}

function filter() {
  let found = 0;
  let all = 0;
  for (const { element, count, link, cards } of sections) {
    let here = 0;
    for (const card of cards) {
      card.element.hidden = !card.matches(searchWords) && !foundByLabels.has(card.family.name);
      if (!card.element.hidden) here++;
    }
    element.hidden = link.hidden = here === 0;
    // A search opens folded sections, and its end folds them again.
    if (searchWords.length > 0 && here > 0 && !element.open) {
      element.open = true;
      element.dataset.unfolded = '';
    } else if (searchWords.length === 0 && 'unfolded' in element.dataset) {
      element.open = false;
      delete element.dataset.unfolded;
    }
    setText(count, here === cards.length ? String(here) : `${here} of ${cards.length}`);
    found += here;
    all += cards.length;
  }
  byId('found').hidden = searchWords.length === 0 && all > 0;
  setText(byId('found'), all === 0 ? 'No metrics yet: no worker has started.' : `${found} of ${all} charts match.`);
}

// ---- events ----

function addEvents(events) {
  if (events.length === 0) return;
  const known = new Set(view.events.map((event) => event.id));
  for (const event of events) {
    const id = JSON.stringify(event);
    if (known.has(id)) continue;
    const { timestamp, name, type, metadata, pid, ...labels } = event;
    const more = Object.entries(metadata ?? {}).map(([key, value]) => `${key}=${typeof value === 'object' ? JSON.stringify(value) : value}`);
    const who = [type, labels.role, labels.instance, pid && `pid ${pid}`].filter(Boolean).join(' · ');
    view.events.push({ id, timestamp, name, who, more: more.join(', ') });
  }
  view.events.sort((a, b) => a.timestamp - b.timestamp);
  view.events.splice(0, view.events.length - MAX_EVENTS);
  const newest = view.events.slice(-MAX_EVENTS_LISTED).reverse();
  const items = newest.map((event) => {
    const item = make('li', {}, make('time', {}, clock(event.timestamp)), make('b', {}, event.name), make('span', {}, event.who));
    if (event.more) item.append(make('small', {}, event.more));
    return item;
  });
  byId('events-list').replaceChildren(...items);
  byId('events').hidden = false;
  const count = view.events.length;
  setText(byId('events-count'), count > MAX_EVENTS_LISTED ? `newest ${MAX_EVENTS_LISTED} of ${count}` : String(count));
  for (const card of view.cards) card.draw();
}

// ---- polling ----

function agentAnswered() {
  if (downSince === null) return;
  downSince = null;
  byId('banner').hidden = true;
  document.body.classList.remove('down');
  metadataAt = 0;
  for (const card of view.cards) card.loaded = '';
}

// `status` is that of the end if the agent ended with the job.
function agentDown() {
  if (downSince !== null) return;
  downSince = Date.now();
  if (status !== null && isOver(status)) {
    showKept(status);
    return;
  }
  setText(byId('banner'), `The agent has not answered since ${clock(downSince)}. The page keeps trying.`);
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
    (report === null ? '' : `Report of ${new Date(status.now_ms).toLocaleString()}. `) +
      (report?.left_out > 0 ? `The values of ${report.left_out} metrics are left out, since the file would be too large. ` : '') +
      `persia-metrics-agent ${status.version}, run ${status.run_id}, ${status.directory}. ` +
      `History: at most ${duration(history.seconds)}, a collection every ${number(history.step_seconds, 'seconds')}, ` +
      `${number(history.bytes, 'bytes')} of ${number(history.max_bytes, 'bytes')}.`,
  );
}

async function poll() {
  const answer = await get('status', {}, { urgent: true });
  if (answer.run_id === status?.run_id && answer.now_ms < status.now_ms) return; // overtaken by that of the end
  status = answer;
  agentAnswered();
  showStatus();
  // A new series may belong to a new family.
  if (Date.now() - metadataAt > METADATA_EVERY_MS || status.series !== series) {
    const answer = await get('metadata', {}, { urgent: true });
    // An agent that has just restarted has no families yet; the page keeps its cards.
    if (answer.families.length > 0 || sections.length === 0) {
      metadataAt = Date.now();
      series = status.series;
      families = answer.families;
      showFamilies();
    }
  }
  if (paused) return;
  updateWindow();
  const newest = view.events.at(-1)?.timestamp;
  // From the millisecond before: the newest known one may have more events.
  const { events } = await get('events', { limit: MAX_EVENTS, ...(newest ? { since: newest - 1 } : {}) }, { urgent: true });
  addEvents(events);
  for (const card of view.cards) card.refresh();
}

// The agent holds this request until it ends, and answers it with its last status: of a hidden page, too. A job whose agent ends
// otherwise, such as by a kill, has none.
async function awaitEnd() {
  for (;;) {
    const last = await getEnd();
    if (last === undefined) return; // an agent of another version
    if (last === null) continue;
    status = last;
    showStatus();
    updateWindow();
    agentDown();
  }
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
document.addEventListener('pins', () => {
  for (const { cards } of sections) for (const card of cards) card.showPin();
  showFamilies();
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
  } else if (event.key === 'p') {
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
for (const [name, seconds, spoken] of RANGES) {
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
