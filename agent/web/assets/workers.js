// The table of workers: the worst first, sorted by any column, filtered. A click on a worker filters all charts to it.
import { byId, make, setText } from './dom.js';
import { focusKey, setFocus } from './focus.js';
import { ago, clock, duration, number, whole } from './format.js';
import { naturally } from './labels.js';
import { view } from './view.js';

const MAX_ROWS = 8;
const BAD = ['died', 'hung'];
const STATES = ['died', 'hung', 'idle', 'starting', 'running', 'exited']; // the worst first
const samples = new Map(); // by worker: processor time at a moment

// The share of a processor since the sample before; null: not known yet. `patience`: milliseconds in which an agent has collected again.
function cpuShare(worker, now, patience) {
  const { key } = worker;
  if (worker.cpu_seconds === null) {
    samples.delete(key);
    return null;
  }
  let sample = samples.get(key);
  const elapsed = now - sample?.now;
  if (sample?.pid !== worker.pid) {
    sample = { pid: worker.pid, now, cpu: worker.cpu_seconds, share: null };
  } else if (elapsed >= 1500 && worker.cpu_seconds !== sample.cpu) {
    sample = { pid: worker.pid, now, cpu: worker.cpu_seconds, share: (worker.cpu_seconds - sample.cpu) / (elapsed / 1000) };
  }
  samples.set(key, sample);
  return sample.now !== now && elapsed > patience ? 0 : sample.share;
}

let places = new Map(); // by worker: its place in natural order, since a comparison of a thousand names takes long

function place(workers) {
  for (const worker of workers) worker.key = keyOf(worker);
  if (workers.length !== places.size || !workers.every(({ key }) => places.has(key))) {
    places = new Map(workers.map(({ key }) => key).sort(naturally).map((key, at) => [key, at]));
  }
  for (const worker of workers) worker.place = places.get(worker.key);
}

const keyOf = (worker) => `${worker.role}\n${worker.instance}\n${worker.process}`;
const nameOf = (worker) => (worker.process === '0' ? worker.instance : `${worker.instance} process ${worker.process}`);
// Short phases change faster than one can read.
const phaseOf = ({ phase, inPhase }) => (inPhase < 2 ? phase : `${phase} ${duration(inPhase)}`);
const byName = (a, b) => a.place - b.place;
const byNumber = (of) => (a, b) => (of(a) ?? -Infinity) - (of(b) ?? -Infinity);
// As long as the reader has not chosen a column: those that need a look, then all others by name.
const worstFirst = (a, b) => badness(a) - badness(b);
const badness = ({ state, slow }) => (BAD.includes(state) ? BAD.indexOf(state) : BAD.length + (slow ? 0 : 1));

// [title, text of a cell, order]
const COLUMNS = [
  ['Worker', null, byName],
  ['State', null, (a, b) => STATES.indexOf(a.state) - STATES.indexOf(b.state)],
  ['Rate', (worker) => number(worker.throughput, '', true), byNumber((worker) => worker.throughput)],
  ['Pid', (worker) => worker.pid ?? '–', byNumber((worker) => worker.pid)],
  ['CPU', (worker) => (worker.share === null ? '–' : `${Math.round(worker.share * 100)} %`), byNumber((worker) => worker.share)],
  ['Memory', (worker) => number(worker.resident_bytes, 'bytes'), byNumber((worker) => worker.resident_bytes)],
  ['Threads', (worker) => worker.threads ?? '–', byNumber((worker) => worker.threads)],
  ['Restarts', (worker) => worker.restarts, byNumber((worker) => worker.restarts)],
  ['Last change', (worker) => ago(worker.unchanged_seconds), byNumber((worker) => worker.unchanged_seconds)],
  ['Up for', (worker) => (worker.upFor === null ? '–' : duration(worker.upFor)), byNumber((worker) => worker.upFor)],
  ['Last exit', (worker) => worker.last_exit || '–', (a, b) => naturally(a.last_exit, b.last_exit)],
];

const [CPU, LAST_CHANGE] = ['CPU', 'Last change'].map((name) => COLUMNS.findIndex(([title]) => title === name));

let order = { column: null, down: false };
let words = [];
let all = false;
let last = null;

function makeHead() {
  byId('workers-head').append(
    ...COLUMNS.map(([title], column) => {
      const button = make('button', { type: 'button' }, title);
      button.addEventListener('click', () => {
        order = { column, down: order.column === column && !order.down };
        showWorkers(last);
      });
      return make('th', { scope: 'col' }, button);
    }),
  );
  byId('workers-filter').addEventListener('input', (event) => {
    words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    showWorkers(last);
  });
  byId('workers-all').addEventListener('click', () => {
    all = true;
    showWorkers(last);
  });
}

function makeRow() {
  const button = make('button.worker', { type: 'button', title: 'Show the charts of this worker alone' }, make('span.role'), ' ', make('span.instance'));
  const row = make('tr', {}, make('th', { scope: 'row', 'data-label': COLUMNS[0][0] }, button));
  button.addEventListener('click', () => {
    const [role, instance] = [row.worker.role, row.worker.instance];
    setFocus(view.focus?.role === role && view.focus.instance === instance ? null : { role, instance });
  });
  return row;
}

function nameRow(row, worker) {
  row.worker = worker;
  row.dataset.worker = `${worker.role}/${worker.instance}`;
  const [role, , instance] = row.firstChild.firstChild.childNodes;
  setText(role, worker.role);
  setText(instance, nameOf(worker));
}

function fillRow(row) {
  const { worker } = row;
  if (row.children.length === 1) {
    row.append(...COLUMNS.slice(1).map(([title]) => make('td', { 'data-label': title })));
    row.children[1].append(make('span.badge'), ' ', make('span.phase'));
  }
  row.setAttribute('aria-selected', String(focusKey() === row.dataset.worker));
  row.className = BAD.includes(worker.state) ? `bad ${worker.state}` : worker.up ? `up ${worker.state}${worker.slow ? ' slow' : ''}` : 'ended';
  setText(row.children[1].firstChild, worker.slow ? 'slow' : worker.state);
  setText(row.children[1].lastChild, worker.phase && worker.phase !== 'other' ? phaseOf(worker) : '');
  COLUMNS.forEach(([, text], column) => {
    if (text) setText(row.children[column], String(text(worker)));
  });
  row.children[CPU].title = worker.cpu_seconds === null ? '' : `${number(worker.cpu_seconds, 'seconds')} of processor time`;
  row.children[LAST_CHANGE].title = worker.last_change_ms ? clock(worker.last_change_ms) : '';
}

// Of the others, only the name is kept up to date: a thousand rows stay fluid.
const nearTheScreen = new IntersectionObserver(
  (changes) => {
    for (const { target: row, isIntersecting } of changes) {
      row.isNear = isIntersecting;
      if (isIntersecting) fillRow(row);
    }
  },
  { rootMargin: '50% 0px' },
);

function matches(worker) {
  const text = `${worker.role} ${nameOf(worker)} ${worker.state} ${worker.last_exit}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

// The status with what the table adds to each worker.
export function showWorkers(status) {
  last = status;
  const { workers, now_ms: now } = status;
  if (byId('workers-head').children.length === 0) makeHead();
  byId('workers').hidden = workers.length === 0;
  const patience = 2000 * Math.max(status.push_interval_seconds, 1);
  place(workers);
  for (const worker of workers) {
    worker.share = cpuShare(worker, now, patience);
    worker.inPhase = worker.phase_since_ms === null ? null : (now - worker.phase_since_ms) / 1000;
    worker.upFor = worker.up && worker.start_time_ms !== null ? (now - worker.start_time_ms) / 1000 : null;
  }
  [...byId('workers-head').children].forEach((head, column) => {
    head.setAttribute('aria-sort', column !== order.column ? 'none' : order.down ? 'descending' : 'ascending');
  });
  const compare = order.column === null ? worstFirst : COLUMNS[order.column][2];
  const sorted = workers.filter(matches).sort((a, b) => (order.down ? -1 : 1) * compare(a, b) || byName(a, b));
  const rows = all ? sorted : sorted.slice(0, MAX_ROWS);
  const body = byId('workers-body');
  for (const row of [...body.children].slice(rows.length)) {
    nearTheScreen.unobserve(row);
    row.remove();
  }
  let row = body.firstChild;
  for (const worker of rows) {
    if (row === null) {
      row = makeRow();
      body.append(row);
      nearTheScreen.observe(row);
    }
    nameRow(row, worker);
    if (row.isNear) fillRow(row);
    row = row.nextSibling;
  }
  byId('workers-more').hidden = rows.length === sorted.length;
  setText(byId('workers-all'), `Show all ${whole(sorted.length)}`);
  const count = (state) => workers.filter((worker) => worker.state === state).length;
  const bad = BAD.filter((state) => count(state) > 0).map((state) => `${whole(count(state))} ${state}`);
  const slower = workers.filter(({ slow, state }) => slow && !BAD.includes(state)).length;
  if (slower > 0) bad.push(`${slower} slow`);
  setText(byId('workers-count'), [words.length > 0 ? `${whole(sorted.length)} of ${whole(workers.length)}` : whole(workers.length), ...bad].join(', '));
}
