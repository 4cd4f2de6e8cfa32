// Runs before the first paint: a page in the chosen theme does not flash in the other.
try {
  const chosen = localStorage.getItem('persia-theme');
  if (chosen === 'dark' || chosen === 'light') document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be disabled: the system's theme stays.
}
