// What all cards share.
export const view = {
  theme: 'light',
  window: null, // in ms: {start, end, step} is requested, {from, to} of it is shown
  events: [],
  cursorTime: null, // in ms
  cursorCard: null, // the card with the mouse or the focus
  cards: new Set(), // those on the screen
  focus: null, // {role, instance} of the worker whose charts alone are shown
  noData: '', // why there is no data at all
  isGone: false, // the agent does not answer
  zoomTo: () => {}, // (from, to) in ms; without arguments: resets the zoom

  moveCursor(ms, card = null) {
    view.cursorTime = ms;
    view.cursorCard = card;
    for (const each of view.cards) each.showCursor();
  },
};
