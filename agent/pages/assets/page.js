// The page: asks the agent how it is, keeps the sections of cards up to date, and obeys keys and buttons.
import { ask } from './agent.js';
import { InfoCard } from './cards.js';
import { ChartCard } from './charts.js';
import { byId, make, setText } from './dom.js';
import { arrange } from './families.js';
import { clock, duration, number } from './format.js';
import { stage } from './stage.js';
import { showTiles, showWorkers } from './state.js';

const RANGES = [
  ['5m', 300, '5 minutes'],
  ['15m', 900, '15 minutes'],
  ['30m', 1800, '30 minutes'],
  ['all', Infinity, 'All that is kept'],
];
const POINTS = 240;
const SHORTEST_SPAN = 60000;
const METADATA_EVERY = 10000;
const EVENTS_KEPT = 1000;
const EVENTS_LISTED = 100;

let status = null;
let range = 300;
let zoom = null;
let paused = false;
let searched = [];
let downSince = null;
let metadataAt = 0;
let series = -1;
const sections = new Map(); // by id: {element, grid, count, cards: Map by name}

// ---- what is shown of the time ----

function updateWindow() {
  const oldest = status.history.oldest_ms;
  stage.why = '';
  if (oldest === null) {
    stage.why = status.history.seconds === 0 ? 'the agent keeps no history (history_seconds is 0)' : 'nothing collected yet';
  }
  const now = status.now_ms;
  let from = Math.max(now - range * 1000, Math.min(oldest ?? now, now - SHORTEST_SPAN));
  let to = now;
  if (zoom) [from, to] = zoom;
  const finest = Math.max(status.history.step_seconds * 1000, 100);
  const step = Math.ceil(Math.max(finest, (to - from) / POINTS));
  // On multiples of the step, so that a point stays where it is from one answer to the next.
  const end = Math.floor(Math.min(to + step, now) / step) * step;
  const start = Math.min(Math.floor(Math.max(from, oldest ?? from) / step) * step, end);
  stage.window = { start, end, step, from, to: zoom ? to : end };
}

function refreshCharts() {
  for (const card of visibleCards()) card.refresh();
}

function* visibleCards() {
  for (const { cards } of sections.values()) {
    for (const card of cards.values()) if (card.shown) yield card;
  }
}

function redraw() {
  for (const card of visibleCards()) {
    card.draw();
    card.refresh();
  }
}

stage.zoomTo = (from, to) => {
  if (!status) return;
  const finest = Math.max(status.history.step_seconds * 1000, 100);
  if (from === undefined) {
    zoom = null;
  } else {
    const middle = (from + to) / 2;
    const half = Math.max((to - from) / 2, 2 * finest);
    const first = Math.min(status.history.oldest_ms ?? 0, status.now_ms - SHORTEST_SPAN);
    zoom = [Math.max(middle - half, first), Math.min(middle + half, status.now_ms)];
    if (zoom[0] <= first && zoom[1] >= status.now_ms) zoom = null;
  }
  byId('unzoom').hidden = zoom === null;
  updateWindow();
  redraw();
};

// ---- cards ----

const onScreen = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) entry.target.card.setShown(entry.isIntersecting);
  },
  { rootMargin: '150px 0px' },
);

function makeSection({ id, title, prefix, folded }) {
  const grid = make('div.grid');
  const count = make('span.count');
  const anchor = `group-${id.replace(/[^a-zA-Z0-9_]+/g, '-')}`;
  const heading = make('h2', {}, title);
  if (prefix) heading.append(title ? ' ' : '', make('code', {}, `${prefix}*`));
  heading.append(' ', count);
  const element = make('details.section', { id: anchor, 'data-group': prefix || title.toLowerCase() }, make('summary', {}, heading), grid);
  element.open = !folded;
  const link = make('a', { href: `#${anchor}` }, title || `${prefix}*`);
  link.addEventListener('click', () => {
    element.open = true;
  });
  return { element, grid, count, link, cards: new Map() };
}

function showFamilies(families) {
  const wanted = arrange(families);
  for (const [id, section] of sections) {
    if (wanted.some((each) => each.id === id)) continue;
    for (const card of section.cards.values()) drop(card);
    section.element.remove();
    sections.delete(id);
  }
  wanted.forEach((each, place) => {
    if (!sections.has(each.id)) sections.set(each.id, makeSection(each));
    const section = sections.get(each.id);
    putAt(byId('sections'), place, section.element);
    const names = new Set(each.entries.map((entry) => entry.family.name));
    for (const [name, card] of section.cards) {
      if (names.has(name)) continue;
      section.cards.delete(name);
      drop(card);
    }
    each.entries.forEach(({ family, last }, i) => {
      let card = section.cards.get(family.name);
      if (card && !card.same(family, last)) {
        drop(card);
        card = null;
      }
      if (!card) {
        card = family.name.endsWith('_info') && family.type === 'gauge' ? new InfoCard(family) : new ChartCard(family, last);
        section.cards.set(family.name, card);
        onScreen.observe(card.element);
      }
      putAt(section.grid, i, card.element);
    });
  });
  const links = wanted.map((each) => sections.get(each.id).link);
  // Only when they are others: one of them may have the focus.
  if (links.length !== byId('jump').children.length || links.some((link, i) => link !== byId('jump').children[i])) {
    byId('jump').replaceChildren(...links);
  }
  filter();
}

function putAt(parent, place, child) {
  if (parent.children[place] !== child) parent.insertBefore(child, parent.children[place] ?? null);
}

function drop(card) {
  onScreen.unobserve(card.element);
  card.setShown(false);
  card.element.remove();
}

function filter() {
  let found = 0;
  let all = 0;
  for (const { element, count, link, cards } of sections.values()) {
    let here = 0;
    for (const card of cards.values()) {
      card.element.hidden = !card.matches(searched);
      if (!card.element.hidden) here++;
    }
    element.hidden = link.hidden = here === 0;
    // What was looked for is not to be behind a fold.
    if (searched.length > 0 && here > 0 && !element.open) {
      element.open = true;
      element.dataset.unfolded = '';
    } else if (searched.length === 0 && 'unfolded' in element.dataset) {
      element.open = false;
      delete element.dataset.unfolded;
    }
    setText(count, here === cards.size ? String(here) : `${here} of ${cards.size}`);
    found += here;
    all += cards.size;
  }
  byId('found').hidden = searched.length === 0 && all > 0;
  setText(byId('found'), all === 0 ? 'There is no metric yet: no worker has been seen.' : `${found} of ${all} charts match.`);
}

// ---- events ----

function takeEvents(events) {
  if (events.length === 0) return;
  const have = new Set(stage.events.map((event) => event.id));
  for (const event of events) {
    const id = JSON.stringify(event);
    if (have.has(id)) continue;
    const { timestamp, name, type, metadata, pid, ...labels } = event;
    const more = Object.entries(metadata ?? {}).map(([key, value]) => `${key}=${typeof value === 'object' ? JSON.stringify(value) : value}`);
    const who = [type, labels.role, labels.instance, pid && `pid ${pid}`].filter(Boolean).join(' · ');
    stage.events.push({ id, timestamp, name, who, more: more.join(', ') });
  }
  stage.events.sort((a, b) => a.timestamp - b.timestamp);
  stage.events.splice(0, stage.events.length - EVENTS_KEPT);
  const newest = stage.events.slice(-EVENTS_LISTED).reverse();
  const items = newest.map((event) => {
    const item = make('li', {}, make('time', {}, clock(event.timestamp)), make('b', {}, event.name), make('span', {}, event.who));
    if (event.more) item.append(make('small', {}, event.more));
    return item;
  });
  byId('events-list').replaceChildren(...items);
  byId('events').hidden = false;
  const count = stage.events.length;
  setText(byId('events-count'), count > EVENTS_LISTED ? `newest ${EVENTS_LISTED} of ${count}` : String(count));
  for (const card of visibleCards()) card.draw();
}

// ---- the beat ----

function answered() {
  if (downSince === null) return;
  downSince = null;
  byId('banner').hidden = true;
  document.body.classList.remove('down');
  metadataAt = 0;
  series = -1;
  for (const card of visibleCards()) card.key = '';
}

function didNotAnswer() {
  if (downSince !== null) return;
  downSince = Date.now();
  setText(byId('banner'), `The agent does not answer since ${clock(downSince)}. This page goes on by itself as soon as it does.`);
  byId('banner').hidden = false;
  document.body.classList.add('down');
}

async function beat() {
  status = await ask('status', {}, { first: true });
  answered();
  setText(byId('job'), status.job);
  document.title = `${status.job} – Persia Metrics`;
  showTiles(status);
  showWorkers(status);
  setText(
    byId('about'),
    `persia-metrics-agent ${status.version}, run ${status.run_id}, ${status.directory}. ` +
      `History: ${duration(status.history.seconds)} at most, a collection every ${number(status.history.step_seconds, 'seconds')}, ` +
      `${number(status.history.bytes, 'bytes')} of ${number(status.history.max_bytes, 'bytes')}.`,
  );
  // A new series may be of a new family.
  if (Date.now() - metadataAt > METADATA_EVERY || status.series !== series) {
    const { families } = await ask('metadata', {}, { first: true });
    // An agent that has just started has not collected yet, and what is on the page will be there again.
    if (families.length > 0 || sections.size === 0) {
      metadataAt = Date.now();
      series = status.series;
      showFamilies(families);
    }
  }
  if (paused) return;
  updateWindow();
  const newest = stage.events.at(-1)?.timestamp;
  // Those of the newest one's millisecond may not all have been there.
  const { events } = await ask('events', { limit: EVENTS_KEPT, ...(newest ? { since: newest - 1 } : {}) }, { first: true });
  takeEvents(events);
  refreshCharts();
}

let timer = null;

async function go() {
  timer = null;
  try {
    await beat();
  } catch (error) {
    if (error.status === undefined) didNotAnswer();
    else console.warn(error.message);
  }
  const wait = Math.min(Math.max(status?.history.step_seconds ?? 1, 1), 10) * 1000;
  // A page that nobody sees asks less; when it is seen again, at once.
  timer = setTimeout(go, downSince === null ? (document.hidden ? 10000 : wait) : 1000);
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden || timer === null) return;
  clearTimeout(timer);
  go();
});

// ---- buttons and keys ----

function setPaused(value) {
  paused = value;
  byId('pause').setAttribute('aria-pressed', String(paused));
  setText(byId('pause').querySelector('span'), paused ? 'Go on' : 'Pause');
  document.body.classList.toggle('paused', paused);
  if (!paused && status) {
    updateWindow();
    redraw();
  }
}

function showTheme() {
  const chosen = document.documentElement.dataset.theme;
  stage.theme = chosen ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  for (const card of visibleCards()) card.draw();
}

function toggleTheme() {
  document.documentElement.dataset.theme = stage.theme === 'dark' ? 'light' : 'dark';
  try {
    localStorage.setItem('persia-theme', document.documentElement.dataset.theme);
  } catch {
    // Storage may be forbidden; the choice then lasts as long as the page.
  }
  showTheme();
}

for (const [name, seconds, spoken] of RANGES) {
  const button = make('button', { type: 'button', 'aria-pressed': String(seconds === range), 'aria-label': spoken }, name);
  button.addEventListener('click', () => {
    range = seconds;
    for (const each of byId('ranges').children) each.setAttribute('aria-pressed', String(each === button));
    stage.zoomTo();
  });
  byId('ranges').append(button);
}
byId('unzoom').addEventListener('click', () => stage.zoomTo());
byId('pause').addEventListener('click', () => setPaused(!paused));
byId('theme').addEventListener('click', toggleTheme);
byId('search-form').addEventListener('submit', (event) => event.preventDefault());
byId('search').addEventListener('input', () => {
  searched = byId('search').value.toLowerCase().split(/\s+/).filter(Boolean);
  filter();
});

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
  } else if (event.key === 'p' || (event.key === ' ' && !event.target.closest('button, summary, a'))) {
    event.preventDefault();
    setPaused(!paused);
  }
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', showTheme);

showTheme();
go();
