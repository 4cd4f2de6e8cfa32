// What a chart has behind its lines: the band of many series, the times without a number, and the events of the job.
import { aloneIn, partsOf } from './chart_data.js';
import { lineStyle } from './line_style.js';
import { view } from './view.js';

const ALONE_RADIUS = 3.5;
const EVENT_COLOR = { light: '#b3568a', dark: '#cc79a7' };
const ODD_COLOR = { light: '#b84a00', dark: '#ff8a3d' };

// Between the lowest and the highest values.
export function drawBand({ rows, color }, context, area, graph) {
  context.save();
  context.beginPath();
  context.rect(area.x, area.y, area.w, area.h);
  context.clip();
  context.fillStyle = color;
  context.globalAlpha = 0.18;
  for (const [first, end] of partsOf(rows)) {
    const part = rows.slice(first, end);
    const place = (time, value) => [graph.toDomXCoord(time), graph.toDomYCoord(value)];
    context.beginPath();
    for (const [time, low] of part) context.lineTo(...place(time, low));
    for (const [time, , , high] of part.reverse()) context.lineTo(...place(time, high));
    context.fill();
  }
  context.restore();
}

// Values to which no line leads, such as the only one. The edge of the chart would hide a half of the newest.
export function drawAlone(card, context, area, graph) {
  context.save();
  card.lines.forEach((line, i) => {
    context.fillStyle = lineStyle(card, line).color;
    for (const at of aloneIn(card.rows, i + 1)) {
      const [x, y] = [graph.toDomXCoord(card.rows[at][0]), graph.toDomYCoord(card.rows[at][i + 1])];
      if (x < area.x || x > area.x + area.w + ALONE_RADIUS) continue;
      context.beginPath();
      context.arc(Math.min(x, area.x + area.w - ALONE_RADIUS), y, ALONE_RADIUS, 0, 2 * Math.PI);
      context.fill();
    }
  });
  context.restore();
}

// The times at which a value was no number.
export function drawOdd({ rows, odd }, context, area, graph) {
  context.save();
  context.fillStyle = ODD_COLOR[view.theme];
  context.globalAlpha = 0.22;
  const [first, second] = rows;
  const half = second ? (second[0] - first[0]) / 2 : 0;
  const drawn = new Set();
  for (const { from, to } of odd) {
    if (drawn.has(`${from} ${to}`)) continue;
    drawn.add(`${from} ${to}`);
    const left = Math.max(graph.toDomXCoord(from - half), area.x);
    const right = Math.min(graph.toDomXCoord(to + half), area.x + area.w);
    if (right > left) context.fillRect(left, area.y, Math.max(right - left, 2), area.h);
  }
  context.restore();
}

export function drawEvents(context, area, graph) {
  context.save();
  context.strokeStyle = context.fillStyle = EVENT_COLOR[view.theme];
  context.lineWidth = 1;
  context.setLineDash([2, 2]);
  const { from, to } = view.window;
  const dense = view.events.filter(({ timestamp }) => timestamp >= from && timestamp <= to).length > 20;
  let before = -1;
  for (const event of view.events) {
    const x = Math.round(graph.toDomXCoord(event.timestamp)) + 0.5;
    if (x === before || x < area.x || x > area.x + area.w) continue; // marks on one pixel would add up to a solid line
    before = x;
    context.globalAlpha = dense ? 0.22 : 0.45;
    context.beginPath();
    context.moveTo(x, area.y);
    context.lineTo(x, area.y + area.h);
    context.stroke();
    context.globalAlpha = 0.9;
    context.beginPath();
    context.moveTo(x - 4, area.y);
    context.lineTo(x + 4, area.y);
    context.lineTo(x, area.y + 6);
    context.fill();
  }
  context.restore(); // the lines are drawn with the same context
}
