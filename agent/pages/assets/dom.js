// Elements whose texts come from the job: always as text, never as markup.

export const byId = (id) => document.getElementById(id);

// make('a.name', {href: '#x'}, 'text', child, ...)
export function make(kind, attributes = {}, ...children) {
  const [tag, ...classes] = kind.split('.');
  const element = document.createElement(tag);
  if (classes.length > 0) element.className = classes.join(' ');
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children); // strings become text nodes
  return element;
}

export function svg(tag, attributes) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// Leaves an element alone that says so already: a reader may be selecting its text.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
