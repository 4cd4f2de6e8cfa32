// The worker whose charts alone are shown, if there is one: chosen in the table or the banner, kept in the URL.
import { byId, setText } from './dom.js';
import { keepInUrl } from './url.js';
import { view } from './view.js';

// Shows the charts of one worker, or of all (null). `go`: scrolls to them.
export function setFocus(worker, { go = worker !== null } = {}) {
  view.focus = worker;
  keepInUrl({ worker: worker === null ? null : `${worker.role}/${worker.instance}` });
  byId('focus').hidden = worker === null;
  setText(byId('focus-name'), worker === null ? '' : `${worker.role} ${worker.instance}`);
  for (const row of byId('workers-body').children) {
    row.setAttribute('aria-selected', String(worker !== null && row.dataset.worker === `${worker.role}/${worker.instance}`));
  }
  for (const card of view.cards) {
    card.loaded = '';
    card.refresh();
  }
  if (!go) return;
  const sections = [...byId('sections').querySelectorAll('details')];
  if (sections.length > 0 && !sections.some((section) => section.open)) sections[0].open = true; // a phone folds them
  byId('focus').scrollIntoView();
}

// Parameters of a request for a family's values.
export function focusParameters() {
  return view.focus === null ? {} : { 'match.role': view.focus.role, 'match.instance': view.focus.instance };
}

export function focusKey() {
  return view.focus === null ? '' : `${view.focus.role}/${view.focus.instance}`;
}
