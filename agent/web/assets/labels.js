// Names of label sets: each by the labels that distinguish it from the others of its family.

const LABEL_ORDER = ['role', 'instance', 'process'];
const SHOWN_WITHOUT_NAME = ['role', 'instance', 'feat', 'event', 'type', 'reason'];
export const rank = (label) => (LABEL_ORDER.indexOf(label) + LABEL_ORDER.length + 1) % (LABEL_ORDER.length + 1);

// rep_2 before rep_10.
export const naturally = new Intl.Collator('en', { numeric: true }).compare;

// Compared by `naturally`, it puts label sets into the order of their ranks.
export function sortKey(labels) {
  const names = Object.keys(labels).sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  return names.filter((name) => name !== 'ip_addr').map((name) => labels[name]).join('\n');
}

function describe(labels, names) {
  return names.map((name) => (SHOWN_WITHOUT_NAME.includes(name) ? labels[name] ?? '–' : `${name}=${labels[name] ?? ''}`)).join(' ');
}

// The name of each label set, the labels `by` which they differ, and the labels that they have in `common`.
export function nameSets(sets) {
  const names = [...new Set(sets.flatMap((labels) => Object.keys(labels)))].filter((name) => name !== 'job');
  names.sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  const differ = names.filter((name) => new Set(sets.map((labels) => labels[name])).size > 1);
  // Role and instance imply the address, unless an identity moved to another address.
  const short = differ.filter((name) => name !== 'ip_addr');
  const enough = new Set(sets.map((labels) => describe(labels, short))).size === sets.length;
  return {
    each: sets.map((labels) => describe(labels, enough ? short : differ)),
    by: (enough ? short : differ).join(', '),
    common: describe(sets[0] ?? {}, names.filter((name) => !differ.includes(name) && name !== 'ip_addr' && name !== 'process')),
  };
}
