// What a label set is called: by what tells it apart from the others of its family.

const LABEL_ORDER = ['role', 'instance', 'process'];
const SPEAK_FOR_THEMSELVES = ['role', 'instance', 'feat', 'event', 'type', 'reason'];
export const rank = (label) => (LABEL_ORDER.indexOf(label) + LABEL_ORDER.length + 1) % (LABEL_ORDER.length + 1);

function describe(labels, names) {
  return names.map((name) => (SPEAK_FOR_THEMSELVES.includes(name) ? labels[name] ?? '–' : `${name}=${labels[name] ?? ''}`)).join(' ');
}

// What tells label sets apart, and what they have in common.
export function nameSets(sets) {
  const names = [...new Set(sets.flatMap((labels) => Object.keys(labels)))].filter((name) => name !== 'job');
  names.sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  const differ = names.filter((name) => new Set(sets.map((labels) => labels[name])).size > 1);
  // An address says nothing that role and instance do not say, but for an identity that moved.
  const short = differ.filter((name) => name !== 'ip_addr');
  const enough = new Set(sets.map((labels) => describe(labels, short))).size === sets.length;
  return {
    each: sets.map((labels) => describe(labels, enough ? short : differ)),
    by: (enough ? short : differ).join(', '),
    common: describe(sets[0] ?? {}, names.filter((name) => !differ.includes(name) && name !== 'ip_addr' && name !== 'process')),
  };
}
