// The color, dashes and width of a chart's lines.
import { view } from './view.js';

// Okabe and Ito's colour-blind safe palette, in the light theme darker, so that each line has a contrast of 3:1 to its background.
const COLORS = {
  light: ['#0072b2', '#c14a00', '#00805d', '#b3568a', '#8a6100', '#2b86bb', '#555555'],
  dark: ['#56b4e9', '#e69f00', '#009e73', '#cc79a7', '#f0e442', '#d55e00', '#c8c8c8'],
};
const DASHES = [null, [6, 3], [2, 2]];

function outlierColor(card, id) {
  card.outliers ??= new Map();
  if (!card.outliers.has(id)) card.outliers.set(id, card.outliers.size);
  return card.outliers.get(id);
}

// As of `card`, whose label sets keep their colors as long as the page is open.
export function lineStyle(card, line) {
  const palette = COLORS[view.theme];
  if (line.group !== undefined) {
    return { color: palette[line.group % palette.length], dash: DASHES[Math.floor(line.group / palette.length) % DASHES.length], width: 1.6 };
  }
  if (line.set === null) return { color: palette[0], dash: null, width: line.band === 1 ? 1.8 : 0.8 };
  if (card.isBand) return { color: palette[1 + (outlierColor(card, line.set.id) % (palette.length - 1))], dash: null, width: 1.6 };
  const index = card.colors.get(line.set.id);
  if (line.variant < 0) {
    return { color: card.sets.length === 1 ? palette.at(-1) : palette[index % palette.length], dash: [1, 3], width: 1.2 };
  }
  if (card.quantiles && card.sets.length === 1) return { color: palette[line.variant % palette.length], dash: null, width: 1.6 };
  const turn = card.quantiles ? line.variant : Math.floor(index / palette.length);
  return { color: palette[index % palette.length], dash: DASHES[turn % DASHES.length], width: 1.6 };
}
