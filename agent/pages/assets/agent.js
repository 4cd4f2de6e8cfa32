// The way to the agent: few requests at a time, and whether it answers.

const AT_ONCE = 2; // the agent has other things to do, and scrapes come first
const TIMEOUT_MS = 10000;

const waiting = [];
let running = 0;

// Resolves to what the agent answers. Throws an error with `status` where it refused, without where it did not answer.
async function request(path) {
  let answer;
  try {
    answer = await fetch(path, { signal: AbortSignal.timeout(TIMEOUT_MS), cache: 'no-store' });
    if (answer.ok) return await answer.json();
  } catch (error) {
    throw new Error(`${path}: ${error.message}`);
  }
  // A proxy in front of an agent that is away says so by a 5xx.
  throw Object.assign(new Error(`${path}: ${answer.status}`), answer.status < 500 ? { status: answer.status } : {});
}

function next() {
  while (running < AT_ONCE && waiting.length > 0) {
    const job = waiting.shift();
    if (job.wanted && !job.wanted()) {
      job.resolve(null);
      continue;
    }
    running++;
    request(job.path)
      .then(job.resolve, job.reject)
      .finally(() => {
        running--;
        next();
      });
  }
}

// Asks in turn. When `wanted` says no by then, it is not asked and the answer is null. `first` goes before all that wait.
export function ask(path, parameters = {}, { wanted = null, first = false } = {}) {
  const query = new URLSearchParams(parameters).toString();
  return new Promise((resolve, reject) => {
    waiting[first ? 'unshift' : 'push']({ path: `api/v1/${path}${query ? `?${query}` : ''}`, wanted, resolve, reject });
    next();
  });
}
