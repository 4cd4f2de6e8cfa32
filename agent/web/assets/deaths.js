// Why processes died, each with what to look at, its last events and its stacks. The newest first; those that their launcher ended last,
// since another death is their cause.
import { byId, make, setText } from './dom.js';
import { moment } from './format.js';
import { setFocus } from './focus.js';

const MAX_LISTED = 20;

function makeDeath(death) {
  const name = make('button.reason', { type: 'button', title: 'Show the charts of this worker alone' }, `${death.role} ${death.instance}`.trim());
  name.addEventListener('click', () => setFocus({ role: death.role, instance: death.instance }));
  const details = [];
  if (death.last_events.length > 0) details.push(`Last events:\n${death.last_events.join('\n')}`);
  if (death.stderr.length > 0) details.push(`Last lines of stderr:\n${death.stderr.join('\n')}`);
  if (death.stacks !== '') details.push(`Stacks:\n${death.stacks}`);
  return make(
    'li',
    {},
    make('p', {}, make('time', {}, moment(death.ended_ms)), ' ', name, ' ', make('b.cause', {}, death.cause.replaceAll('_', ' ')), death.earlier_attempt ? ' in an earlier attempt' : ''),
    make('p', {}, death.text),
    make('p.look', {}, `Look at: ${death.look_at}`),
    ...(details.length > 0 ? [make('details', {}, make('summary', {}, 'What it left'), make('pre', {}, details.join('\n\n')))] : []),
  );
}

let shown = '';

// Rows are made anew only if there is another death: a reader may have opened one.
export function showDeaths({ deaths }) {
  const key = JSON.stringify(deaths.map(({ ended_ms: at, pid, text }) => [at, pid, text]));
  if (key === shown) return;
  shown = key;
  byId('deaths').hidden = deaths.length === 0;
  setText(byId('deaths-count'), deaths.length > MAX_LISTED ? `${MAX_LISTED} of ${deaths.length}` : String(deaths.length));
  const isEnded = ({ cause }) => cause === 'launcher';
  const ordered = [...deaths].reverse().sort((a, b) => isEnded(a) - isEnded(b));
  byId('deaths-list').replaceChildren(...ordered.slice(0, MAX_LISTED).map(makeDeath));
}
