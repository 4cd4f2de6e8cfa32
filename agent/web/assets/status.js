// The tiles: first those about the job, then those about the agent.
import { byId, make, setText } from './dom.js';
import { ago, duration, number } from './format.js';
import { slowestTile, throughputTile } from './health.js';
import { progressTile } from './progress.js';

// Existing elements are updated in place: a reader's selection stays. Returns the tile.
export function tile(id, name, value, detail, state, group = 'job') {
  let element = byId(`tile-${id}`);
  if (!element) {
    element = make('div', { id: `tile-${id}` }, make('dt', {}, name), make('dd.value'), make('dd.detail'));
    byId(`tiles-${group}`).append(element);
  }
  element.className = `tile ${state}`;
  setText(element.children[1], value);
  setText(element.children[2], detail);
  element.children[2].title = detail;
  return element;
}

function describeGateways(gateway, gateways) {
  if (gateways.length < 2) return gateway.last_error !== '' ? gateway.last_error : `to ${gateway.address}`;
  const failing = gateways.filter((one) => one.last_error !== '');
  return failing.length > 0 ? `${failing.length} of ${gateways.length} gateways: ${failing[0].last_error}` : `to ${gateways.length} gateways: ${gateway.address}`;
}

function showWorkersTile(workers) {
  const count = (of) => workers.filter(of).length;
  const up = count((worker) => worker.up);
  const bad = ['died', 'hung'].map((state) => [count((worker) => worker.state === state), state]).filter(([n]) => n > 0);
  const restarts = workers.reduce((sum, worker) => sum + (worker.restarts ?? 0), 0);
  const detail = bad.length > 0 ? bad.map(([n, state]) => `${n} ${state}`).join(', ') : 'none died or hung';
  tile(
    'workers',
    'Workers',
    `${up} of ${workers.length} up`,
    `${detail}; ${restarts === 0 ? 'no restarts' : restarts === 1 ? '1 restart' : `${restarts} restarts`}`,
    bad.length > 0 ? 'bad' : workers.length > 0 ? 'good' : '',
  );
}

export function showTiles(status) {
  const { gateway, gateways, workers, segments, history } = status;
  const agentTile = (...what) => tile(...what, 'agent');
  tile('throughput', 'Throughput', ...throughputTile(status));
  if (status.progress) tile('progress', 'Progress', ...progressTile(status.progress));
  showWorkersTile(workers);
  tile('slowest', 'Slowest rank', ...slowestTile(status));
  const age = gateway.last_success_age_seconds;
  const late = age === null ? gateway.pushes > 0 : age > 3 * status.push_interval_seconds + 5;
  const failing = gateway.last_error !== '';
  const off = gateway.address === 'off';
  agentTile(
    'push',
    'Last push',
    off ? 'none' : age === null ? (gateway.pushes > 0 ? 'never succeeded' : 'not yet') : ago(age),
    off ? 'there is no gateway; /metrics has the values' : describeGateways(gateway, gateways),
    failing || late ? 'bad' : age === null ? '' : 'good',
  );
  const detail = `${gateway.failed > 0 ? gateway.failed : 'none'} failed, one every ${number(status.push_interval_seconds, 'seconds')}`;
  agentTile('pushes', 'Pushes', gateway.pushes.toLocaleString('en'), failing ? `${detail}, to ${gateway.address}` : detail, failing ? 'bad' : '');
  const refused = segments.refused > 0 ? `, ${segments.refused} refused` : '';
  agentTile('series', 'Series', status.series.toLocaleString('en'), `${segments.live} segments live, ${segments.ended} ended${refused}`, refused ? 'bad' : '');
  const kept = history.oldest_ms === null ? null : (status.now_ms - history.oldest_ms) / 1000;
  agentTile('history', 'History', kept === null ? 'none' : duration(kept), `${number(history.bytes, 'bytes')} in memory`, '');
}
