// Requests to the agent's API, a few at a time. In a report the answers are in the file.
import { answerOf, report } from './report.js';

const MAX_RUNNING = 2; // leaves the agent's threads to scrapes
const TIMEOUT_MS = 10000;

const queue = [];
let running = 0;

// Throws an error, with `status` if the agent refused the request, without it if the agent did not answer.
async function request(path) {
  let response;
  try {
    response = await fetch(path, { signal: AbortSignal.timeout(TIMEOUT_MS), cache: 'no-store' });
    if (response.ok) return await response.json();
  } catch (error) {
    throw new Error(`${path}: ${error.message}`);
  }
  // A proxy answers 5xx if the agent behind it is down.
  throw Object.assign(new Error(`${path}: ${response.status}`), response.status < 500 ? { status: response.status } : {});
}

function runNext() {
  while (running < MAX_RUNNING && queue.length > 0) {
    const { path, wanted, resolve, reject } = queue.shift();
    if (!wanted()) {
      resolve(null);
      continue;
    }
    running++;
    request(path)
      .then(resolve, reject)
      .finally(() => {
        running--;
        runNext();
      });
  }
}

// Resolves to the response's JSON, or to null if `wanted` returns false when the request's turn comes. `urgent` ones overtake.
export function get(path, parameters = {}, { wanted = () => true, urgent = false } = {}) {
  if (report !== null) return new Promise((resolve) => { resolve(answerOf(path, parameters)); });
  const query = new URLSearchParams(parameters).toString();
  return new Promise((resolve, reject) => {
    queue[urgent ? 'unshift' : 'push']({ path: `api/v1/${path}${query ? `?${query}` : ''}`, wanted, resolve, reject });
    runNext();
  });
}
