// The card of a family, with its name and help text; and the card of an `_info` metric, which has labels instead of a chart.
import { get } from './api.js';
import { make, setText, svg } from './dom.js';
import { titled } from './format.js';
import { rank } from './labels.js';
import { pinned, togglePin } from './pins.js';
import { view } from './view.js';

const MAX_LABEL_SETS = 12;
const REFRESH_EVERY_MS = 10000;

export class MetricCard {
  // `last`: of a time cost, the gauge with its last value.
  constructor(family, last = null) {
    this.family = family;
    this.last = last;
    this.loading = false;
    this.element = make('article.card', { 'data-name': family.name });
    this.element.card = this;
    this.kind = make('span.kind');
    // The help text is the title, the name is small. A name as the title wraps after its underscores.
    const name = make('code.name', { title: family.name }, family.name);
    const [sentence] = family.help.replace(/, in seconds(?=\.)/, '').split(/\.\s/); // the axis has the unit
    const words = sentence ? [titled(sentence)] : family.name.split(/(?<=_)/).flatMap((word) => [word, make('wbr')]);
    const title = make('h3', { title: family.help || family.name }, ...words);
    const star = svg('svg', { viewBox: '0 0 16 16', 'aria-hidden': 'true' });
    star.append(svg('path', { d: 'M8 1.6l2 4.1 4.5.6-3.3 3.2.8 4.5L8 11.9 4 14l.8-4.5L1.5 6.3l4.5-.6z' }));
    this.pin = make('button.pin', { type: 'button', 'aria-label': `Pin ${family.name}`, title: 'Pinned charts stand first' }, star);
    this.pin.addEventListener('click', () => togglePin(family.name));
    this.showPin();
    this.element.append(make('header', {}, this.pin, title, make('p.about', {}, ...(sentence ? [name, ' '] : []), this.kind)));
  }

  showPin() {
    this.pin.setAttribute('aria-pressed', String(pinned().includes(this.family.name)));
  }

  // Whether name and help text have all words.
  matches(words) {
    const text = `${this.family.name} ${this.last?.name ?? ''} ${this.family.help}`.toLowerCase();
    return words.every((word) => text.includes(word));
  }

  // Whether this card suits the newest metadata.
  isFor(family, last) {
    const of = (each) => `${each?.name} ${each?.type} ${each?.unit} ${each?.help} ${each?.group}`;
    return of(this.family) === of(family) && of(this.last) === of(last);
  }

  // Called when the card enters or leaves the screen.
  setShown(shown) {
    if (shown) {
      view.cards.add(this);
      this.draw();
      this.refresh();
    } else {
      view.cards.delete(this);
    }
  }

  draw() {}
  showCursor() {}
}

export class InfoCard extends MetricCard {
  constructor(family) {
    super(family);
    setText(this.kind, 'labels');
    this.rows = make('div.info', { tabindex: '0', role: 'group', 'aria-label': `Labels of ${family.name}` });
    this.element.append(this.rows);
  }

  async refresh() {
    const now = Date.now();
    if (this.loading || now - this.loadedAt < REFRESH_EVERY_MS) return;
    this.loading = true;
    try {
      const answer = await get('series', { name: this.family.name, limit: MAX_LABEL_SETS }, { wanted: () => view.cards.has(this) });
      if (answer === null) return;
      this.loadedAt = now;
      const rows = answer.series.map((labels) => {
        const names = Object.keys(labels).sort((a, b) => rank(a) - rank(b));
        return make('dl', {}, ...names.flatMap((name) => [make('dt', {}, name), make('dd', {}, labels[name])]));
      });
      if (answer.left_out > 0) rows.push(make('p.more', {}, `${rows.length} of ${rows.length + answer.left_out} shown`));
      this.rows.replaceChildren(...rows);
    } catch {
      // The banner says that the agent does not answer; the last labels stay.
    } finally {
      this.loading = false;
    }
  }
}
