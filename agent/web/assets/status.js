// The tiles and the table of workers at the top of the page.
import { byId, make, setText } from './dom.js';
import { ago, clock, duration, number } from './format.js';

// Existing elements are updated in place: a reader's selection stays.
function tile(id, name, value, detail, state) {
  let element = byId(`tile-${id}`);
  if (!element) {
    element = make('div', { id: `tile-${id}` }, make('dt', {}, name), make('dd.value'), make('dd.detail'));
    byId('tiles').append(element);
  }
  element.className = `tile ${state}`;
  setText(element.children[1], value);
  setText(element.children[2], detail);
  element.children[2].title = detail;
}

function describeGateways(gateway, gateways) {
  if (gateways.length < 2) return gateway.last_error !== '' ? gateway.last_error : `to ${gateway.address}`;
  const failing = gateways.filter((one) => one.last_error !== '');
  return failing.length > 0 ? `${failing.length} of ${gateways.length} gateways: ${failing[0].last_error}` : `to ${gateways.length} gateways: ${gateway.address}`;
}

export function showTiles(status) {
  const { gateway, gateways, workers, segments, history } = status;
  const age = gateway.last_success_age_seconds;
  const late = age === null ? gateway.pushes > 0 : age > 3 * status.push_interval_seconds + 5;
  const failing = gateway.last_error !== '';
  const off = gateway.address === 'off'; // the agent is only scraped
  tile(
    'push',
    'Last push',
    off ? 'off' : age === null ? (gateway.pushes > 0 ? 'never succeeded' : 'not yet') : ago(age),
    off ? 'the agent is scraped' : describeGateways(gateway, gateways),
    failing || late ? 'bad' : age === null ? '' : 'good',
  );
  const detail = `${gateway.failed > 0 ? gateway.failed : 'none'} failed, one every ${number(status.push_interval_seconds, 'seconds')}`;
  tile('pushes', 'Pushes', gateway.pushes.toLocaleString('en'), failing ? `${detail}, to ${gateway.address}` : detail, failing ? 'bad' : '');
  const up = workers.filter((worker) => worker.up).length;
  const hung = workers.filter((worker) => worker.hung).length;
  tile(
    'workers',
    'Workers',
    `${up} of ${workers.length} up`,
    hung > 0 ? `${hung} hung` : 'none hung',
    hung > 0 ? 'bad' : workers.length > 0 && up === workers.length ? 'good' : '',
  );
  const refused = segments.refused > 0 ? `, ${segments.refused} refused` : '';
  tile('series', 'Series', status.series.toLocaleString('en'), `${segments.live} segments live, ${segments.ended} ended${refused}`, refused ? 'bad' : '');
  const kept = history.oldest_ms === null ? null : (status.now_ms - history.oldest_ms) / 1000;
  tile('history', 'History', kept === null ? 'none' : duration(kept), `${number(history.bytes, 'bytes')} in memory`, '');
}

const COLUMNS = ['Worker', 'State', 'Pid', 'CPU', 'Memory', 'Threads', 'Restarts', 'Last change', 'Up for', 'Last exit'];
const samples = new Map(); // by worker: processor time at a moment

// The share of a processor since the sample before; at first the processor time.
function cpuUse(key, worker, now) {
  if (worker.cpu_seconds === null) {
    samples.delete(key);
    return '–';
  }
  let sample = samples.get(key);
  const elapsed = now - sample?.now;
  if (sample?.pid !== worker.pid) {
    sample = { pid: worker.pid, now, cpu: worker.cpu_seconds, share: null };
  } else if (elapsed >= 1500 && worker.cpu_seconds !== sample.cpu) {
    sample = { pid: worker.pid, now, cpu: worker.cpu_seconds, share: (worker.cpu_seconds - sample.cpu) / (elapsed / 1000) };
  }
  samples.set(key, sample);
  if (elapsed > 30000 && sample.now !== now) return '0 %';
  return sample.share === null ? number(worker.cpu_seconds, 'seconds') : `${Math.round(sample.share * 100)} %`;
}

export function showWorkers({ workers, now_ms: now }) {
  byId('workers').hidden = workers.length === 0;
  if (byId('workers-head').children.length === 0) {
    byId('workers-head').append(...COLUMNS.map((name) => make('th', { scope: 'col' }, name)));
  }
  const body = byId('workers-body');
  while (body.children.length > workers.length) body.lastChild.remove();
  workers.forEach((worker, i) => {
    const key = `${worker.role}\n${worker.instance}\n${worker.process}`;
    let row = body.children[i];
    if (!row) {
      row = make('tr', {}, ...COLUMNS.map((name, column) => make(column === 0 ? 'th' : 'td', { 'data-label': name })));
      row.children[0].scope = 'row';
      row.children[0].append(make('span.role'), ' ', make('span.instance'));
      row.children[1].append(make('span.badge'));
      body.append(row);
    }
    row.className = worker.hung ? 'hung' : worker.up ? 'up' : 'ended';
    const [name, state, ...rest] = row.children;
    setText(name.children[0], worker.role);
    setText(name.children[1], worker.process === '0' ? worker.instance : `${worker.instance} process ${worker.process}`);
    setText(state.firstChild, row.className);
    const values = [
      worker.pid ?? '–',
      cpuUse(key, worker, now),
      number(worker.resident_bytes, 'bytes'),
      worker.threads ?? '–',
      worker.restarts,
      ago(worker.unchanged_seconds),
      worker.up && worker.start_time_ms !== null ? duration((now - worker.start_time_ms) / 1000) : '–',
      worker.last_exit || '–',
    ];
    rest.forEach((cell, column) => setText(cell, String(values[column])));
    rest[1].title = worker.cpu_seconds === null ? '' : `${number(worker.cpu_seconds, 'seconds')} of processor time`;
    rest[5].title = worker.last_change_ms ? clock(worker.last_change_ms) : '';
  });
  const hung = workers.filter((worker) => worker.hung).length;
  setText(byId('workers-count'), hung > 0 ? `${workers.length}, ${hung} hung` : String(workers.length));
}
