// What all charts share. `window` is {start, end, step, from, to} in ms: what is asked for, and what is shown of it.
export const stage = {
  theme: 'light',
  window: null,
  events: [],
  cursor: null, // the time that is read, in ms, and the chart in which
  source: null,
  visible: new Set(),
  zoomTo: () => {}, // (from, to) in ms, or nothing for all
  why: '', // there is no data at all, if so

  moveCursor(ms, source = null) {
    stage.cursor = ms;
    stage.source = source;
    for (const chart of stage.visible) chart.point();
  },
};
