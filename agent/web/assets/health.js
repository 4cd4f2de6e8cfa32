// What the page says first: how the job is, since when, why, and how fast it trains.
import { byId, make, setChildren, setText } from './dom.js';
import { clock, duration, number } from './format.js';
import { setFocus } from './focus.js';

const WORDS = {
  waiting: ['Waiting', 'no worker has started yet'],
  running: ['Running', 'all workers are well'],
  degraded: ['Degraded', ''],
  hung: ['Hung', ''],
  failed: ['Failed', ''],
  finished: ['Finished', ''],
};
const BAD = ['degraded', 'hung', 'failed'];
const ICON =
  "%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='7' fill='%23{color}'/%3E%3Cpath d='{path}' " +
  "fill='none' stroke='%23fff' stroke-width='3' stroke-linecap='round' stroke-linejoin='round'/%3E%3C/svg%3E";
const LINE = 'M5 21l6-8 5 5 5-10 6 9';
const MARK = 'M16 6v12M16 25v.1';

// "1 died, 2 hung": what the reasons are, in short.
export function summary({ state, reasons }) {
  const count = (kind) => reasons.filter((reason) => reason.kind === kind).length;
  const parts = [
    [count('died'), 'died'],
    [count('hung'), 'hung'],
    [count('restarting'), 'restarting'],
  ].filter(([n]) => n > 0);
  return parts.length > 0 ? parts.map(([n, word]) => `${n} ${word}`).join(', ') : WORDS[state][0].toLowerCase();
}

function makeReason(reason, now) {
  const since = reason.since_ms === null ? '' : `, for ${duration((now - reason.since_ms) / 1000)}`;
  if (reason.instance === null) return make('li', {}, reason.text + since);
  const button = make('button.reason', { type: 'button', title: 'Show the charts of this worker alone' }, reason.text);
  button.addEventListener('click', () => setFocus({ role: reason.role, instance: reason.instance }));
  return make('li', {}, button, since);
}

let shown = '';

export function showHealth({ health, now_ms: now, job }) {
  const { state, since_ms: since, reasons } = health;
  const bad = BAD.includes(state);
  const element = byId('health');
  element.hidden = false;
  element.className = `health ${bad ? 'bad' : state === 'waiting' ? '' : 'good'}`;
  setText(byId('health-state'), WORDS[state][0]);
  setText(byId('health-since'), since === null ? '' : `since ${clock(since)}, ${duration((now - since) / 1000)}`);
  const text = reasons.length > 0 ? '' : WORDS[state][1];
  setText(byId('health-text'), text);
  byId('health-text').hidden = text === '';
  // Buttons are made anew only if a reason is another one: a reader may be about to click.
  const key = JSON.stringify(reasons.map(({ kind, text: words, since_ms: at }) => [kind, words, at, Math.floor((now - at) / 60000)]));
  if (key !== shown) {
    shown = key;
    setChildren(byId('health-reasons'), reasons.map((reason) => makeReason(reason, now)));
  }
  document.title = `${bad ? `! ${summary(health)} – ` : ''}${job} – Persia Metrics`;
  const icon = ICON.replace('{color}', bad ? 'b84a00' : '0072b2').replace('{path}', bad ? MARK : LINE);
  document.querySelector('link[rel=icon]').href = `data:image/svg+xml,${icon}`;
}

// Value, detail and state of the tile of the job's throughput.
export function throughputTile({ throughput }) {
  if (!throughput) return ['–', 'no counter of steps, batches, samples or tokens', ''];
  const { now, last_10m: before, name } = throughput;
  const part = before > 0 ? now / before : 1;
  const compared = before > 0 ? `${Math.round(part * 100)} % of the last 10 minutes` : 'nothing before';
  return [number(now, '', true), `${name}: ${compared}`, part < 0.8 ? 'bad' : now > 0 ? 'good' : ''];
}

export function slowestTile({ throughput }) {
  if (!throughput) return ['–', 'no counter of progress', ''];
  const { slowest } = throughput;
  if (!slowest) return ['none', 'all ranks are equally fast', 'good'];
  return [slowest.instance, `${slowest.role}: ${number(slowest.now, '', true)}, the median is ${number(slowest.median, '', true)}`, 'bad'];
}
