// Runs before anything is painted, so that a page whose reader chose the other theme does not flash.
try {
  const chosen = localStorage.getItem('persia-theme');
  if (chosen === 'dark' || chosen === 'light') document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be forbidden; then the system's theme it is.
}
