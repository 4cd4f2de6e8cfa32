// The four tiles about the job, and the line about the agent: its pushes, series and history.
import { byId, make, setChildren, setText } from './dom.js';
import { ago, duration, number, whole } from './format.js';
import { goodputTile } from './goodput.js';
import { inState, isOver } from './health.js';
import { progressTile, speedTile } from './progress.js';

// Existing elements are updated in place: a reader's selection stays. Returns the tile.
export function tile(id, name, value, detail, state, group = 'job') {
  let element = byId(`tile-${id}`);
  if (!element) {
    element = make('div', { id: `tile-${id}` }, make('dt', {}, name), make('dd.value'), make('dd.detail'));
    byId(`tiles-${group}`).append(element);
  }
  element.className = `tile ${state}`.trim();
  setText(element.children[1], value);
  setText(element.children[2], detail);
  element.children[2].title = detail;
  return element;
}

// The bar of a tile: how much is done, from 0 to 1; null: none.
function showBar(element, share) {
  let bar = element.querySelector('progress');
  if (!bar) {
    bar = make('progress', { max: '1', 'aria-label': 'Steps done' });
    element.append(bar);
  }
  bar.hidden = share === null;
  if (share !== null && bar.value !== share) bar.value = share;
}

// Further processes of a rank count only if they died or hang. Restarts are those of ranks, as in the goodput and in the log.
export function workersTile({ health, workers, restarts }) {
  const count = (of) => workers.filter(of).length;
  if (workers.length === 0) return ['none yet', 'import persia_metrics, and make a metric', 'unknown'];
  const ranks = count((worker) => worker.is_rank);
  const up = count((worker) => worker.is_rank && worker.up);
  const of = (states) => states.map((state) => [inState(workers, state), state]).filter(([n]) => n > 0);
  const bad = of(['died', 'hung']);
  const ofRanks = (states) => states.map((state) => [count((worker) => worker.is_rank && worker.state === state), state]).filter(([n]) => n > 0);
  const parts = [...bad, ...ofRanks(['idle', 'starting'])].map(([n, state]) => `${whole(n)} ${state}`);
  const again = restarts === 0 ? 'no restarts' : restarts === 1 ? '1 restart' : `${restarts} restarts`;
  const value = isOver({ health }) && up === 0 ? `${whole(ranks)} ended` : `${whole(up)} of ${whole(ranks)} up`;
  return [value, [...(parts.length > 0 ? parts : ['none died or hung']), again].join(', '), bad.length > 0 ? 'bad' : ''];
}

// ---- the line about the agent ----

function describePushes({ gateway, push_interval_seconds: interval }) {
  if (gateway.address === 'off') return 'no gateway: /metrics has the values';
  const age = gateway.last_success_age_seconds;
  const last = age !== null ? `the last one ${ago(age)}` : gateway.pushes > 0 ? 'none has arrived' : 'none yet';
  const failed = gateway.failed > 0 ? `, ${gateway.failed} failed` : '';
  return `${whole(gateway.pushes)} pushes to ${gateway.address}${failed}, ${last}, one every ${number(interval, 'seconds')}`;
}

function describeSeries({ series, segments: { live, ended, refused } }) {
  const others = [[ended, 'ended'], [refused, 'refused']].filter(([n]) => n > 0).map(([n, how]) => `, ${whole(n)} ${how}`);
  return `${whole(series)} series in ${whole(live)} live ${live === 1 ? 'segment' : 'segments'}${others.join('')}`;
}

function describeHistory({ history, now_ms: now }) {
  if (history.oldest_ms === null) return 'no history';
  return `history of ${duration((now - history.oldest_ms) / 1000)}, ${number(history.bytes, 'bytes')} in memory`;
}

function showAgentLine(status) {
  const parts = [
    ['pushes', describePushes(status)],
    ['series', describeSeries(status)],
    ['history', describeHistory(status)],
  ];
  setChildren(byId('plumbing'), parts.map(([id]) => byId(`plumbing-${id}`) ?? make('span', { id: `plumbing-${id}` })));
  for (const [id, text] of parts) setText(byId(`plumbing-${id}`), text);
  byId('plumbing-pushes').classList.toggle('bad', status.gateway.last_error !== '');
  byId('plumbing-series').classList.toggle('bad', status.segments.refused > 0);
}

export function showTiles(status) {
  const [value, detail, state, share] = progressTile(status);
  showBar(tile('progress', 'Progress', value, detail, state), share);
  tile('speed', 'Speed', ...speedTile(status));
  tile('goodput', 'Goodput', ...goodputTile(status));
  tile('workers', 'Workers', ...workersTile(status));
  showAgentLine(status);
}
