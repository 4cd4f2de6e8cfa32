// The pinned families, which stand first: chosen by the button of a card, kept in the URL.
import { allFromUrl, keepInUrl } from './url.js';

let pins = allFromUrl('pin');

export const pinned = () => pins;

export function togglePin(name) {
  pins = pins.includes(name) ? pins.filter((pin) => pin !== name) : [...pins, name];
  keepInUrl({ pin: pins });
  document.dispatchEvent(new Event('pins'));
}
