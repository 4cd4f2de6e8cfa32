// Elements are made here alone: names and labels from the job become text, never markup.

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

// An unchanged text is not written again: a reader may be selecting it.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Children that stay in place are not touched: one of them may have the focus.
export function setChildren(parent, children) {
  for (const child of [...parent.children]) if (!children.includes(child)) child.remove();
  children.forEach((child, i) => {
    if (parent.children[i] !== child) parent.insertBefore(child, parent.children[i] ?? null);
  });
}
