// The sections of the page: which families stand together, and in which order.

const TABLES = [
  ['accuracy', 'Accuracy'],
  ['efficiency', 'Efficiency'],
];
// Families that the agent itself exports.
const OWN = {
  persia_process: 'Processes of the workers',
  persia_event: 'Events of the job',
  persia_exec: 'The command',
  persia_agent: 'The agent',
  process: "The agent's process",
};
const LAST = ['persia_agent', 'process'];
const ONE_WORD = ['torchelastic', 'benchmarkai'];

function ownPrefix(name) {
  if (name.startsWith('persia_events_')) return 'persia_event';
  return Object.keys(OWN).find((prefix) => name.startsWith(`${prefix}_`));
}

// The words that all names begin with, at most two.
function commonPrefix(names) {
  const words = names.map((name) => name.split('_').slice(0, -1));
  const most = ONE_WORD.includes(words[0][0]) ? 1 : 2;
  let length = 0;
  while (length < most && words.every((each) => each.length > length && each[length] === words[0][length])) length++;
  return words[0].slice(0, length).join('_');
}

// Sections in the order in which they are shown: [{id, title, prefix, folded, entries: [{family, last}]}].
export function groupFamilies(families) {
  const byName = new Map(families.map((family) => [family.name, family]));
  const sections = new Map();
  const add = (id, section, entry) => {
    if (!sections.has(id)) sections.set(id, { id, title: '', prefix: '', folded: false, entries: [], ...section });
    sections.get(id).entries.push(entry);
  };
  const byWord = new Map();
  for (const family of families) {
    // The card of a time cost's histogram shows the gauge with its last value, too.
    if (family.name.endsWith('_sec') && byName.get(family.name.slice(0, -4))?.type === 'histogram') continue;
    const last = family.type === 'histogram' ? byName.get(`${family.name}_sec`) ?? null : null;
    const entry = { family, last };
    const table = TABLES.findIndex(([name]) => name === family.table);
    const own = ownPrefix(family.name);
    if (table >= 0) {
      add(`0${table}`, { title: TABLES[table][1] }, entry);
    } else if (own) {
      const folded = LAST.includes(own);
      add(`${folded ? 3 + LAST.indexOf(own) : 2} ${own}`, { title: OWN[own], prefix: `${own}_`, folded }, entry);
    } else {
      const word = family.name.split('_')[0];
      byWord.set(word, [...(byWord.get(word) ?? []), entry]);
    }
  }
  for (const [word, entries] of byWord) {
    const prefix = commonPrefix(entries.map((entry) => entry.family.name));
    const alone = prefix === '' || word === 'persia';
    for (const entry of entries) add(alone ? '2' : `1 ${prefix}`, alone ? { title: 'Others' } : { prefix: `${prefix}_` }, entry);
  }
  return [...sections.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}
