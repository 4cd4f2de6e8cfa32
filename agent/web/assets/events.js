// The job's events: the list, and the marks on the charts.
import { byId, make, setText } from './dom.js';
import { moment } from './format.js';
import { view } from './view.js';

export const MAX_EVENTS = 1000;
const MAX_EVENTS_LISTED = 100;

// Those of an answer may be known.
export function addEvents(events) {
  if (events.length === 0) return;
  const known = new Set(view.events.map((event) => event.id));
  for (const event of events) {
    const id = JSON.stringify(event);
    if (known.has(id)) continue;
    const { timestamp, name, type, metadata, pid, ...labels } = event;
    // The sentence of an event of the agent says the rest.
    const said = type === 'persia.agent' && metadata?.text;
    const more = said ? [said] : Object.entries(metadata ?? {}).map(([key, value]) => `${key}=${typeof value === 'object' ? JSON.stringify(value) : value}`);
    const who = [type, labels.role, labels.instance, pid && `pid ${pid}`].filter(Boolean).join(' · ');
    view.events.push({ id, timestamp, name, who, more: more.join(', ') });
  }
  view.events.sort((a, b) => a.timestamp - b.timestamp);
  view.events.splice(0, view.events.length - MAX_EVENTS);
  const newest = view.events.slice(-MAX_EVENTS_LISTED).reverse();
  const items = newest.map((event) => {
    const item = make('li', {}, make('time', {}, moment(event.timestamp)), make('b', {}, event.name), make('span', {}, event.who));
    if (event.more) item.append(make('small', {}, event.more));
    return item;
  });
  byId('events-list').replaceChildren(...items);
  byId('events').hidden = false;
  const count = view.events.length;
  setText(byId('events-count'), count > MAX_EVENTS_LISTED ? `newest ${MAX_EVENTS_LISTED} of ${count}` : String(count));
  for (const card of view.cards) card.draw();
}
