// The view in the page's URL, so that a link shows another person the same: search, range, zoom, worker, pins.

const parameters = new URLSearchParams(location.search);

export const fromUrl = (name) => parameters.get(name);
export const allFromUrl = (name) => parameters.getAll(name);

// An array: the parameter once for each value. null: left out. The history of the browser gets no entries.
export function keepInUrl(changes) {
  for (const [name, value] of Object.entries(changes)) {
    parameters.delete(name);
    for (const each of [value ?? []].flat()) if (each !== '') parameters.append(name, each);
  }
  const query = parameters.toString();
  history.replaceState(null, '', `${location.pathname}${query ? `?${query}` : ''}${location.hash}`);
}
