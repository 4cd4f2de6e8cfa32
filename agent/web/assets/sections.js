// The sections of the page: which families stand together, and in which order.

const TABLES = [
  ['accuracy', 'Accuracy'],
  ['efficiency', 'Efficiency'],
];
// Families that the agent itself exports.
const OWN = {
  persia_process: 'Processes of the workers',
  persia_job: 'The job',
  persia_rank: 'The ranks',
  persia_event: 'Events of the job',
  persia_exec: 'The command',
  persia_metrics: 'The library',
  persia_agent: 'The agent',
  process: "The agent's process",
};
const LAST = ['persia_agent', 'process'];
export const PINNED = '0'; // the id of the section with the pins

function ownPrefix(name) {
  if (name.startsWith('persia_events_')) return 'persia_event';
  if (name === 'persia_straggler' || name === 'persia_hang') return 'persia_rank';
  return Object.keys(OWN).find((prefix) => name.startsWith(`${prefix}_`));
}

// [place, what the section shows of itself]: sections are sorted by place.
function sectionOf(family, pins) {
  if (pins.includes(family.name)) return [PINNED, { title: 'Pinned' }];
  const table = TABLES.findIndex(([name]) => name === family.table);
  if (table >= 0) return [`1${table}`, { title: TABLES[table][1] }];
  if (family.group !== '') return [`2 ${family.group}`, { prefix: family.group }];
  const own = ownPrefix(family.name);
  if (!own) return ['3', { title: 'Others' }];
  const last = LAST.indexOf(own);
  return [last < 0 ? `3 ${own}` : `4${last}`, { title: OWN[own], prefix: `${own}_*`, folded: last >= 0 }];
}

// In the order in which they are shown: [{id, title, prefix, folded, entries: [{family, last}]}]. `pins`: names, in their order.
export function groupFamilies(families, pins) {
  const byName = new Map(families.map((family) => [family.name, family]));
  const sections = new Map();
  for (const family of families) {
    // The card of a time cost's histogram shows the gauge with its last value, too.
    if (family.name.endsWith('_sec') && byName.get(family.name.slice(0, -4))?.type === 'histogram') continue;
    const last = family.type === 'histogram' ? byName.get(`${family.name}_sec`) ?? null : null;
    const [id, section] = sectionOf(family, pins);
    if (!sections.has(id)) sections.set(id, { id, title: '', prefix: '', folded: false, entries: [], ...section });
    sections.get(id).entries.push({ family, last });
  }
  sections.get(PINNED)?.entries.sort((a, b) => pins.indexOf(a.family.name) - pins.indexOf(b.family.name));
  return [...sections.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}
