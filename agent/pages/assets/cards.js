// A family's card: its name and its help; and that of an `_info` metric, which has no chart.
import { ask } from './agent.js';
import { make, setText } from './dom.js';
import { rank } from './labels.js';

const MOST_SETS = 12;

export class Card {
  constructor(family, last) {
    this.family = family;
    this.last = last;
    this.key = '';
    this.asking = false;
    this.shown = false;
    this.element = make('article.card', { 'data-name': family.name });
    this.element.card = this;
    this.kind = make('span.kind');
    // It may break behind its words.
    const title = make('h3', {}, ...family.name.split(/(?<=_)/).flatMap((word) => [word, make('wbr')]));
    title.title = family.name;
    this.element.append(make('header', {}, title, this.kind));
    const help = make('p.help', {}, family.help || '');
    help.title = family.help || '';
    this.element.append(help);
  }

  matches(words) {
    const text = `${this.family.name} ${this.last?.name ?? ''} ${this.family.help}`.toLowerCase();
    return words.every((word) => text.includes(word));
  }

  // Whether this card can go on when the agent's newest metadata say so.
  same(family, last) {
    const of = (each) => `${each?.name} ${each?.type} ${each?.unit} ${each?.help}`;
    return of(this.family) === of(family) && of(this.last) === of(last);
  }

  draw() {}
}

// What an `_info` metric says is in its labels; its value is always 1.
export class InfoCard extends Card {
  constructor(family) {
    super(family, null);
    setText(this.kind, 'labels');
    this.rows = make('div.info', { tabindex: '0', role: 'group', 'aria-label': `Labels of ${family.name}` });
    this.element.append(this.rows);
  }

  setShown(shown) {
    this.shown = shown;
    if (shown) this.refresh();
  }

  async refresh() {
    const now = Date.now();
    if (this.asking || now - this.asked < 10000) return;
    this.asking = true;
    try {
      const answer = await ask('series', { name: this.family.name, limit: MOST_SETS }, { wanted: () => this.shown });
      if (answer === null) return;
      this.asked = now;
      const rows = answer.series.map((labels) => {
        const names = Object.keys(labels).sort((a, b) => rank(a) - rank(b));
        return make('dl', {}, ...names.flatMap((name) => [make('dt', {}, name), make('dd', {}, labels[name])]));
      });
      if (answer.left_out > 0) rows.push(make('p.more', {}, `${rows.length} of ${rows.length + answer.left_out} shown`));
      this.rows.replaceChildren(...rows);
    } catch {
      // The page tells of an agent that does not answer; here the last answer stands.
    } finally {
      this.asking = false;
    }
  }
}
