// The agent's and the workers' state at the top of the page.
import { byId, make, setText } from './dom.js';
import { ago, clock, duration, number } from './format.js';

// Writes into children that are there already, so that a reader's selection and place stay.
function tile(id, name, value, detail, mood) {
  let element = byId(`tile-${id}`);
  if (!element) {
    element = make('div', { id: `tile-${id}` }, make('dt', {}, name), make('dd.value'), make('dd.detail'));
    byId('tiles').append(element);
  }
  element.className = `tile ${mood}`;
  setText(element.children[1], value);
  setText(element.children[2], detail);
  element.children[2].title = detail;
}

// Where pushes go: of several gateways, which of them are well.
function gatewaysInWords(gateway, gateways) {
  if (gateways.length < 2) return gateway.last_error !== '' ? gateway.last_error : `to ${gateway.address}`;
  const failing = gateways.filter((one) => one.last_error !== '');
  return failing.length > 0 ? `${failing.length} of ${gateways.length} gateways: ${failing[0].last_error}` : `to ${gateways.length} gateways: ${gateway.address}`;
}

export function showTiles(status) {
  const { gateway, gateways, workers, segments, history } = status;
  const age = gateway.last_success_age_seconds;
  const late = age === null ? gateway.pushes > 0 : age > 3 * status.push_interval_seconds + 5;
  const failing = gateway.last_error !== '';
  const off = gateway.address === 'off';
  tile(
    'push',
    'Last push',
    off ? 'off' : age === null ? (gateway.pushes > 0 ? 'never arrived' : 'not yet') : ago(age),
    off ? 'the agent is scraped' : gatewaysInWords(gateway, gateways),
    failing || late ? 'bad' : age === null ? '' : 'good',
  );
  const every = `${gateway.failed > 0 ? gateway.failed : 'none'} failed, one every ${number(status.push_interval_seconds, 'seconds')}`;
  tile('pushes', 'Pushes', gateway.pushes.toLocaleString('en'), failing ? `${every}, to ${gateway.address}` : every, failing ? 'bad' : '');
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
const seen = new Map(); // by worker: processor time at a moment, for how busy it is

function busy(key, worker, now) {
  const before = seen.get(key);
  if (worker.cpu_seconds === null) {
    seen.delete(key);
    return '–';
  }
  let share = before?.share ?? null;
  if (!before || before.pid !== worker.pid) {
    share = null;
    seen.set(key, { pid: worker.pid, now, cpu: worker.cpu_seconds, share });
  } else if (now - before.now >= 1500 && worker.cpu_seconds !== before.cpu) {
    share = (worker.cpu_seconds - before.cpu) / ((now - before.now) / 1000);
    seen.set(key, { pid: worker.pid, now, cpu: worker.cpu_seconds, share });
  } else if (now - before.now > 30000) {
    share = 0;
  }
  return share === null ? number(worker.cpu_seconds, 'seconds') : `${Math.round(share * 100)} %`;
}

function state(worker) {
  if (worker.hung) return ['hung', 'hung'];
  return worker.up ? ['up', 'up'] : ['ended', 'ended'];
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
    const [mood, word] = state(worker);
    row.className = mood;
    const [who, shown, ...rest] = row.children;
    setText(who.children[0], worker.role);
    setText(who.children[1], worker.process === '0' ? worker.instance : `${worker.instance} process ${worker.process}`);
    setText(shown.firstChild, word);
    const values = [
      worker.pid ?? '–',
      busy(key, worker, now),
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
