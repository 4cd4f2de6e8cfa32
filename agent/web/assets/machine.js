// The machine under the ranks: memory, processors, pressure, disks and network of the job, and what each rank uses of it, with its GPUs.
import { byId, make, setText } from './dom.js';
import { setFocus } from './focus.js';
import { number, whole } from './format.js';
import { naturally } from './labels.js';
import { tile } from './status.js';

const NEAR = 0.9; // of a limit
const THROTTLED = 0.25; // of the periods, as the alert PersiaCpuThrottled
const MAX_ROWS = 8; // as many ranks and GPUs as most hosts have
const USES = { shm: '/dev/shm', state: 'state', working_directory: 'working directory' };
const RESOURCES = { cpu: 'CPU', memory: 'memory', io: 'I/O' };

const bytes = (value) => number(value, 'bytes');
const percent = (ratio) => (ratio > 0 && ratio < 0.001 ? '< 0.1 %' : `${Number((100 * ratio).toFixed(ratio < 0.1 ? 1 : 0))} %`);
const isNear = (used, limit) => used !== null && limit > 0 && used / limit >= NEAR;
const listed = (parts) => parts.filter(Boolean).join(', ');

// "20 of 80 GiB", "900 MiB of 80 GiB"
function ofLimit(used, limit, text) {
  if (used === null || limit === null) return used === null ? '–' : text(used);
  const [unit] = text(limit).match(/ \D+$/) ?? [''];
  return `${text(used).endsWith(unit) ? text(used).slice(0, text(used).length - unit.length) : text(used)} of ${text(limit)}`;
}

// ---- the job: each returns value, detail, and whether it needs a look; null: it is not known ----

function memoryFact({ memory }) {
  if (memory === null) return null;
  const { working_set_bytes: used, limit_bytes: limit, max_usage_bytes: peak, swap_bytes: swap, oom_kills: kills } = memory;
  const detail = listed([
    limit === null ? 'no limit' : percent(used / limit),
    peak !== null && `peak ${bytes(peak)} with page cache`,
    swap > 0 && `${bytes(swap)} in swap`,
    kills !== null && (kills === 0 ? 'no OOM kills' : kills === 1 ? '1 OOM kill' : `${kills} OOM kills`),
  ]);
  return [ofLimit(used, limit, bytes), detail, isNear(used, limit)];
}

function cpuFact({ cpu }) {
  if (cpu === null) return null;
  const { used_cores: used, limit_cores: limit, throttled_ratio: throttled } = cpu;
  const stopped = throttled === null ? '' : throttled === 0 ? 'not throttled' : `throttled in ${percent(throttled)} of the periods`;
  const value = limit === null ? `${number(used)} cores` : `${number(used)} of ${number(limit)} cores`;
  return [value, limit === null ? 'no limit' : stopped || 'of the job', throttled >= THROTTLED];
}

// Of the job's cgroup; of the host, where the kernel knows no pressure of the cgroup.
function pressureFact({ pressure }) {
  const scope = pressure.cgroup === null ? 'host' : 'job';
  const resources = Object.entries(pressure.cgroup ?? pressure.host ?? {}).sort(([, a], [, b]) => b.waiting_ratio - a.waiting_ratio);
  if (resources.length === 0) return null;
  const [worst, ...others] = resources.map(([name, { waiting_ratio: waiting }]) => `${RESOURCES[name]} ${percent(waiting)}`);
  const stalled = resources.filter(([, { stalled_ratio: share }]) => share > 0).map(([name, { stalled_ratio: share }]) => `${RESOURCES[name]} ${percent(share)}`);
  return [worst, [listed(others), stalled.length > 0 && `all stalled: ${listed(stalled)}`, `of the ${scope}`].filter(Boolean).join('\n'), false];
}

const takenOf = (all, free) => (all > 0 && free !== null ? 1 - free / all : 0);

// Uses on one filesystem are shown as one.
function diskFact({ filesystems }) {
  const byPlace = new Map();
  for (const disk of filesystems) {
    const { use, ...values } = disk;
    if (!disk.error && disk.size_bytes === null) continue;
    const full = Math.max(takenOf(disk.size_bytes, disk.avail_bytes), takenOf(disk.files, disk.files_free));
    const key = JSON.stringify(values);
    byPlace.set(key, { ...values, full, names: [...(byPlace.get(key)?.names ?? []), USES[use] ?? use] });
  }
  const disks = [...byPlace.values()].sort((a, b) => b.error - a.error || b.full - a.full);
  if (disks.length === 0) return null;
  const [{ names: [name], error, full }] = disks;
  const describe = (disk) => {
    if (disk.error) return `${listed(disk.names)}: no answer`;
    const few = isNear(takenOf(disk.files, disk.files_free), 1) ? `, ${disk.files_free.toLocaleString('en')} inodes left` : '';
    return `${listed(disk.names)}: ${bytes(disk.avail_bytes)} free of ${bytes(disk.size_bytes)}${few}`;
  };
  return [error ? `${name} does not answer` : `${name} ${percent(full)} full`, disks.map(describe).join('\n'), error || full >= NEAR];
}

function networkFact({ network }) {
  if (network === null) return null;
  const { receive_bytes_per_second: received, transmit_bytes_per_second: sent, errors_per_second: errors, drops_per_second: drops } = network;
  const resent = network.tcp_retransmit_ratio;
  const detail = listed([
    errors !== null && (errors === 0 ? 'no errors' : `${number(errors)} errors/s`),
    drops > 0 && `${number(drops)} dropped/s`,
    resent !== null && (resent === 0 ? 'no TCP segments resent' : `${percent(resent)} of TCP segments resent`),
  ]);
  return [received === null ? '–' : `${bytes(received)}/s in, ${bytes(sent)}/s out`, detail, errors > 0];
}

// Of all ports of the host.
function infinibandFact({ infiniband }) {
  if (infiniband === null) return null;
  const { ports, active_ports: active, receive_bytes_per_second: received, transmit_bytes_per_second: sent, errors_per_second: errors } = infiniband;
  const detail = listed([`${active} of ${ports} ${ports === 1 ? 'port' : 'ports'} active`, errors !== null && (errors === 0 ? 'no errors' : `${number(errors)} errors/s`)]);
  return [received === null || sent === null ? '–' : `${bytes(received)}/s in, ${bytes(sent)}/s out`, detail, active === 0 || errors > 0];
}

const FACTS = [
  ['memory', 'Memory of the job', memoryFact],
  ['cpu', 'Processors', cpuFact],
  ['pressure', 'Pressure', pressureFact],
  ['disks', 'Disks', diskFact],
  ['network', 'Network', networkFact],
  ['infiniband', 'InfiniBand', infinibandFact],
];

// Returns the names of those that need a look, as within a sentence: InfiniBand is a proper name.
function showFacts(machine) {
  return FACTS.filter(([id, name, of]) => {
    const fact = of(machine);
    const element = tile(id, name, fact?.[0] ?? '', fact?.[1] ?? '', fact?.[2] ? 'near' : '', 'machine');
    element.hidden = fact === null;
    return fact?.[2];
  }).map(([, name]) => (/^[A-Z][a-z ]+$/.test(name) ? name.toLowerCase() : name));
}

// ---- the ranks: a row for each, and for each further GPU of it ----

const inOrder = (a, b) => (a === b ? 0 : a < b ? -1 : 1);
const byName = (a, b) => inOrder(a.role, b.role) || a.instance.length - b.instance.length || inOrder(a.instance, b.instance); // rep_2, rep_10
const isSlowed = (reason) => reason.startsWith('hw_') || reason === 'sw_thermal'; // as the alert PersiaGpuThrottled

function describeErrors({ xids, ecc_errors: ecc }) {
  const numbers = Object.entries(xids).map(([xid, count]) => `XID ${xid}${count > 1 ? ` (${count} times)` : ''}`);
  const memory = ['uncorrected', 'corrected'].filter((kind) => ecc[kind] > 0).map((kind) => `ECC ${ecc[kind].toLocaleString('en')} ${kind}`);
  return listed([...numbers, ...memory]) || 'none';
}

const share = (ratio) => (ratio === null ? '–' : `${Math.round(100 * ratio)} %`);

const memoryOf = ({ proportional_bytes: used, swapped_bytes: swapped }) => listed([bytes(used), swapped > 0 && `${bytes(swapped)} in swap`]);
const faults = (rate) => (rate > 0 && rate < 0.1 ? '< 0.1 /s' : number(rate, '', true));

// [title, explanation, text, whether it needs a look], of what a rank uses
const OF_RANK = [
  ['Memory (PSS)', 'Of all processes of the rank, each with its part of what they share', memoryOf, () => false],
  ['Open files', 'Of the process that is nearest to its limit', (use) => ofLimit(use.open_files, use.max_open_files, whole), (use) => isNear(use.open_files, use.max_open_files)],
  ['Major faults', 'Page faults that read from a disk', (use) => faults(use.major_page_faults_per_second), () => false],
];
// and of a GPU
const OF_GPU = [
  ['GPU', 'The number that the driver gives it', (gpu) => (gpu.up === false ? `${gpu.gpu} lost` : gpu.gpu), (gpu) => gpu.up === false],
  ['Busy', 'Share of the time in which a kernel ran', (gpu) => share(gpu.utilization_ratio), () => false],
  ['GPU memory', '', (gpu) => ofLimit(gpu.memory_used_bytes, gpu.memory_total_bytes, bytes), (gpu) => isNear(gpu.memory_used_bytes, gpu.memory_total_bytes)],
  ['Heat', 'Temperature of the GPU', (gpu) => (gpu.temperature_celsius === null ? '–' : `${Math.round(gpu.temperature_celsius)} °C`), () => false],
  ['Power', 'Of its limit', (gpu) => ofLimit(gpu.power_watts, gpu.power_limit_watts, (watts) => `${Math.round(watts)} W`), () => false],
  ['Throttled by', 'Why its clocks are lower than they could be', (gpu) => gpu.throttled.map((reason) => reason.replaceAll('_', ' ')).join(', ') || 'nothing', (gpu) => gpu.throttled.some(isSlowed)],
  ['Errors', 'XIDs of this run, and ECC errors since the driver was loaded', describeErrors, (gpu) => Object.keys(gpu.xids).length > 0 || gpu.ecc_errors.uncorrected > 0],
];
const COLUMNS = [...OF_RANK.map((column) => ['use', ...column]), ...OF_GPU.map((column) => ['gpu', ...column])];

const hasNoRank = ({ role }) => role === 'agent';
const needsLook = (row) => COLUMNS.some(([of, , , , look]) => row[of] !== null && look(row[of]));

// [{role, instance, use, gpu}]: those that need a look first, devices without a rank last.
function rowsOf({ ranks, gpus }) {
  const byRank = new Map();
  const rank = ({ role, instance }) => {
    const key = `${role}\n${instance}`;
    if (!byRank.has(key)) byRank.set(key, { role, instance, use: null, gpus: [] });
    return byRank.get(key);
  };
  for (const use of ranks) rank(use).use = use;
  for (const gpu of gpus) rank(gpu).gpus.push(gpu);
  const all = [...byRank.values()].map(({ role, instance, use, gpus: own }) => {
    own.sort((a, b) => naturally(a.gpu, b.gpu));
    const rows = (own.length > 0 ? own : [null]).map((gpu, i) => ({ role, instance, gpu, use: i === 0 ? use : null }));
    return { role, instance, isLast: hasNoRank({ role }), look: rows.some(needsLook), rows };
  });
  return all.sort((a, b) => a.isLast - b.isLast || b.look - a.look || byName(a, b)).flatMap(({ rows }) => rows);
}

let showAll = false;
let last = null;

function makeHead() {
  const cells = COLUMNS.map(([, title, explanation]) => make('th', { scope: 'col', title: explanation }, title));
  byId('machine-head').append(make('th', { scope: 'col' }, 'Rank'), ...cells);
  byId('machine-all').addEventListener('click', () => {
    showAll = true;
    showMachine(last);
  });
}

function makeRow() {
  const button = make('button.worker', { type: 'button', title: 'Show the charts of this rank alone' }, make('span.role'), ' ', make('span.instance'));
  const row = make('tr', {}, make('th', { scope: 'row' }, button), ...COLUMNS.map(([, title]) => make('td', { 'data-label': title })));
  button.addEventListener('click', () => setFocus({ role: row.of.role, instance: row.of.instance }));
  return row;
}

function fillRow(row, of, hasGpus) {
  row.of = of;
  const [role, , instance] = row.firstChild.firstChild.childNodes;
  setText(role, hasNoRank(of) ? 'no rank' : of.role);
  setText(instance, hasNoRank(of) ? '' : of.instance);
  COLUMNS.forEach(([kind, , , text, look], column) => {
    const cell = row.children[column + 1];
    const values = of[kind];
    setText(cell, values === null ? '' : text(values));
    cell.className = values !== null && look(values) ? 'near' : '';
    cell.hidden = kind === 'gpu' && !hasGpus;
  });
  row.children[1 + OF_RANK.length].title = of.gpu?.model ?? '';
}

export function showMachine(status) {
  last = status;
  const { machine } = status;
  byId('machine').hidden = machine === null;
  if (machine === null) return;
  if (byId('machine-head').children.length === 0) makeHead();
  const hasGpus = machine.gpus.length > 0;
  [...byId('machine-head').children].forEach((head, column) => {
    head.hidden = column > OF_RANK.length && !hasGpus;
  });
  const all = rowsOf(machine);
  const rows = showAll ? all : all.slice(0, MAX_ROWS);
  const body = byId('machine-body');
  body.parentElement.hidden = rows.length === 0;
  for (const row of [...body.children].slice(rows.length)) row.remove();
  rows.forEach((of, i) => {
    if (!body.children[i]) body.append(makeRow());
    fillRow(body.children[i], of, hasGpus);
  });
  byId('machine-more').hidden = rows.length === all.length;
  setText(byId('machine-all'), `Show all ${whole(all.length)}`);
  const names = [...new Set([...showFacts(machine), ...all.filter(needsLook).map((row) => (hasNoRank(row) ? `GPU ${row.gpu.gpu}` : row.instance))])];
  const more = names.length > 5 ? `, and ${names.length - 5} more` : '';
  setText(byId('machine-count'), names.length === 0 ? 'nothing is near its limit' : `look at ${names.slice(0, 5).join(', ')}${more}`);
}
