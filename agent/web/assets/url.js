// The view in the page's URL, so that a link shows another person the same: search, range, zoom, worker.

const parameters = new URLSearchParams(location.search);

export const fromUrl = (name) => parameters.get(name);

// null: left out. The history of the browser gets no entries.
export function keepInUrl(changes) {
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') parameters.delete(name);
    else parameters.set(name, value);
  }
  const query = parameters.toString();
  history.replaceState(null, '', `${location.pathname}${query ? `?${query}` : ''}${location.hash}`);
}
