// The report: this page as one file, with the agent's answers in it instead of an agent.
const element = document.getElementById('report');

// The answers by path; those of query_range and series by family, too. null: the page is served by an agent.
export const report = element === null ? null : JSON.parse(element.textContent);

// With many label sets, the file has bands and those that differ most from them.
function rangeOf({ name, limit = Infinity, bands: asksForBands = false, ...parameters }) {
  const { bands = [], ...answer } = report.query_range[name];
  const wanted = Object.entries(parameters).filter(([key]) => key.startsWith('match.'));
  const series = answer.series.filter(({ labels }) => wanted.every(([key, value]) => labels[key.slice('match.'.length)] === value));
  const sets = [...new Set(series.map(({ labels }) => JSON.stringify(labels)))];
  const kept = new Set(sets.slice(0, limit));
  const all = wanted.length > 0 ? sets.length : Math.max(sets.length, bands.reduce((sum, { sets: n }) => sum + n, 0));
  return {
    ...answer,
    ...(asksForBands && bands.length > 0 ? { bands } : {}),
    series: series.filter(({ labels }) => kept.has(JSON.stringify(labels))),
    left_out: answer.left_out + (asksForBands ? 0 : all - kept.size),
  };
}

function search({ q }) {
  const words = q.toLowerCase().split(' ');
  const help = new Map(report.metadata.families.map((family) => [family.name, family.help]));
  const matches = ([name, { series }]) =>
    series.some((labels) => {
      const text = [name, help.get(name), ...Object.values(labels)].join('\n').toLowerCase();
      return words.every((word) => text.includes(word));
    });
  return { families: Object.entries(report.series).filter(matches).map(([name]) => name) };
}

// As the agent would answer. Throws an error with `status` if the report does not have the family.
export function answerOf(path, parameters) {
  if (path === 'search') return search(parameters);
  const missing = parameters.name !== undefined && !(parameters.name in report[path]);
  if (missing) throw Object.assign(new Error(`${path}: ${parameters.name} is not in the report`), { status: 404 });
  return path === 'query_range' ? rangeOf(parameters) : parameters.name === undefined ? report[path] : report[path][parameters.name];
}
