// The sections of cards, one card for each family, and the search in them.
import { get } from './api.js';
import { ChartCard } from './chart_card.js';
import { byId, make, setChildren, setText } from './dom.js';
import { titled } from './format.js';
import { InfoCard } from './metric_card.js';
import { pinned } from './pins.js';
import { groupFamilies, PINNED } from './sections.js';

const narrow = matchMedia('(max-width: 560px)');
let families = [];
let sections = []; // {id, element, grid, count, link, cards}
let searchWords = [];
let foundByLabels = new Set(); // families whose labels' values have the words

export const hasCards = () => sections.length > 0;

const screenObserver = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) entry.target.card.setShown(entry.isIntersecting);
  },
  { rootMargin: '150px 0px' },
);

// Links to what stands below the charts.
const foldedLinks = [...byId('folded').children].map((details) => {
  const link = make('a.below', { href: `#${details.id}` }, titled(details.id));
  link.addEventListener('click', () => {
    details.open = true;
  });
  return link;
});

export function showFoldedLinks() {
  for (const link of foldedLinks) link.hidden = byId(link.hash.slice(1)).hidden;
}

function makeSection({ id, title, prefix, isOwn }) {
  const grid = make('div.grid');
  const count = make('span.count');
  const anchor = `group-${id.replace(/[^a-zA-Z0-9_]+/g, '-')}`;
  const heading = make('h2', {}, title);
  if (prefix) heading.append(title ? ' ' : '', make('code', {}, prefix));
  heading.append(' ', count);
  const element = make('details.section', { id: anchor, 'data-group': prefix || title.toLowerCase() }, make('summary', {}, heading), grid);
  // A phone shows the pinned charts, or the first group.
  const isFirst = !sections.some((section) => section.element.open && !section.isOwn);
  element.open = !isOwn && (!narrow.matches || id === PINNED || isFirst);
  const link = make('a', { href: `#${anchor}` }, title || prefix);
  link.addEventListener('click', () => {
    element.open = true;
  });
  return { id, element, grid, count, link, isOwn, cards: [] };
}

function makeCard(family, last) {
  const card = family.name.endsWith('_info') && family.type === 'gauge' ? new InfoCard(family) : new ChartCard(family, last);
  screenObserver.observe(card.element);
  return card;
}

// Keeps the cards of families that were there before. `all`: of the agent; none: those of before, in another order.
export function showFamilies(all = families) {
  families = all;
  const before = new Map(sections.flatMap(({ cards }) => cards.map((card) => [card.family.name, card])));
  sections = groupFamilies(families, pinned()).map((group) => {
    const section = sections.find(({ id }) => id === group.id) ?? makeSection(group);
    if (!sections.includes(section)) sections.push(section);
    section.cards = group.entries.map(({ family, last }) => {
      const card = before.get(family.name);
      if (!card?.isFor(family, last)) return makeCard(family, last);
      before.delete(family.name);
      card.family = family; // with another number of series
      return card;
    });
    return section;
  });
  for (const card of before.values()) {
    screenObserver.unobserve(card.element);
    card.setShown(false);
  }
  for (const { grid, cards } of sections) setChildren(grid, cards.map(({ element }) => element));
  const elements = (own) => sections.filter(({ isOwn }) => isOwn === own).map(({ element }) => element);
  setChildren(byId('sections'), elements(false));
  setChildren(byId('agent-sections'), elements(true));
  setChildren(byId('jump'), [...sections.filter(({ isOwn }) => !isOwn).map(({ link }) => link), ...foldedLinks]);
  search();
}

// By the names and help texts at once, by the values of labels when the agent has answered.
export async function search() {
  const words = searchWords;
  filter();
  if (words.length === 0) return;
  try {
    const answer = await get('search', { q: words.join(' ') }, { urgent: true, wanted: () => words === searchWords });
    if (answer === null || words !== searchWords) return;
    foundByLabels = new Set(answer.families);
    filter();
  } catch {
    // The banner says that the agent does not answer.
  }
}

// Of the next search; '': all.
export function setSearch(text) {
  searchWords = text.toLowerCase().split(/\s+/).filter(Boolean);
  foundByLabels = new Set();
}

function filter() {
  let found = 0;
  let all = 0;
  for (const { element, count, link, cards } of sections) {
    let here = 0;
    for (const card of cards) {
      card.element.hidden = !card.matches(searchWords) && !foundByLabels.has(card.family.name);
      if (!card.element.hidden) here++;
    }
    element.hidden = link.hidden = here === 0;
    // A search opens folded sections, and its end folds them again.
    if (searchWords.length > 0 && here > 0 && !element.open) {
      element.open = true;
      element.dataset.unfolded = '';
    } else if (searchWords.length === 0 && 'unfolded' in element.dataset) {
      element.open = false;
      delete element.dataset.unfolded;
    }
    setText(count, here === cards.length ? String(here) : `${here} of ${cards.length}`);
    found += here;
    all += cards.length;
  }
  byId('found').hidden = searchWords.length === 0 && all > 0;
  setText(byId('found'), all === 0 ? 'No metrics yet: no worker has started.' : `${found} of ${all} charts match.`);
}

document.addEventListener('pins', () => {
  for (const { cards } of sections) for (const card of cards) card.showPin();
  showFamilies();
});
