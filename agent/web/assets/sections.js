// The sections of the page: which families stand together, and in which order.

const TABLES = [
  ['accuracy', 'Accuracy'],
  ['efficiency', 'Efficiency'],
];
// Families that the agent itself exports, in the order of their sections. Each family belongs to the first prefix that it has.
const OWN = [
  ['persia_job', 'The job'],
  ['persia_rank', 'The ranks', ['persia_straggler', 'persia_hang', 'persia_goodput']],
  ['persia_process', 'Processes of the workers', ['persia_worker']],
  ['persia_cgroup', 'Metrics of the machine', ['persia_pressure', 'persia_filesystem', 'persia_network', 'persia_infiniband']],
  ['persia_gpu', 'GPUs'],
  ['persia_event', 'Events of the job'],
  ['persia_exec', 'The command'],
  ['persia_metrics', 'The library'],
  ['persia_agent', 'The agent'],
  ['process', "The agent's process"],
];
// What the library counts for the user's program.
const LIBRARY = { persia_progress: true, persia_phase: true };
const LAUNCHER = 'torchelastic'; // the group of what torchrun records of itself
export const PINNED = '0'; // the id of the section with the pins

const hasPrefix = (name, prefix) => name === prefix || name.startsWith(`${prefix}_`) || name.startsWith(`${prefix}s_`);

// The place among OWN; -1: it is none of the agent's.
const ownPlace = (name) => OWN.findIndex(([prefix, , more = []]) => [prefix, ...more].some((each) => hasPrefix(name, each)));

// [place, what the section shows of itself]: sections are sorted by place, the agent's own ones apart.
function sectionOf(family, pins) {
  if (pins.includes(family.name)) return [PINNED, { title: 'Pinned' }];
  const table = TABLES.findIndex(([name]) => name === family.table);
  if (table >= 0) return [`1${table}`, { title: TABLES[table][1] }];
  if (LIBRARY[family.group]) return ['3', { title: 'Steps and phases', prefix: Object.keys(LIBRARY).join(', ') }];
    if (family.group === LAUNCHER) return ['4', { title: 'Launcher', prefix: LAUNCHER }];
    if (family.group !== '' && family.group !== 'persia_metrics') return [`2 ${family.group}`, { prefix: family.group }];
  const own = ownPlace(family.name);
  if (own < 0) return ['5', { title: 'Others' }];
  return [`6 ${own}`, { title: OWN[own][1], prefix: `${OWN[own][0]}_*`, isOwn: true }];
}

// In the order in which they are shown: [{id, title, prefix, isOwn, entries: [{family, last}]}]. `pins`: names, in their order.
export function groupFamilies(families, pins) {
  const byName = new Map(families.map((family) => [family.name, family]));
  const sections = new Map();
  for (const family of families) {
    // The card of a time cost's histogram shows the gauge with its last value, too.
    if (family.name.endsWith('_sec') && byName.get(family.name.slice(0, -4))?.type === 'histogram') continue;
    const last = family.type === 'histogram' ? byName.get(`${family.name}_sec`) ?? null : null;
    const [id, section] = sectionOf(family, pins);
    if (!sections.has(id)) sections.set(id, { id, title: '', prefix: '', isOwn: false, entries: [], ...section });
    sections.get(id).entries.push({ family, last });
  }
  // Of a program's metrics, the loss is looked at first.
  const isLoss = ({ family }) => /(^|_)loss(_|$)/.test(family.name);
  for (const { isOwn, entries } of sections.values()) if (!isOwn) entries.sort((a, b) => isLoss(b) - isLoss(a));
  sections.get(PINNED)?.entries.sort((a, b) => pins.indexOf(a.family.name) - pins.indexOf(b.family.name));
  return [...sections.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}
