// A worker that asks for the end of the agent. The agent holds that request until it ends, and answers it with its last status: to a
// hidden page, too. Of the page itself such a request would be one that never ends: for those who wait until a page loads nothing, such
// as a browser that takes a picture, and in the page's queue.
const TIMEOUT_MS = 60000; // of an agent, or of a proxy before it, that does not answer
const AGAIN_MS = 5000;

// Whether to ask again: an agent of another version does not tell.
async function ask() {
  const began = Date.now();
  try {
    const response = await fetch('../api/v1/end', { signal: AbortSignal.timeout(TIMEOUT_MS), cache: 'no-store' });
    if (response.status === 404) return false;
    if (response.status === 200) postMessage(await response.json());
    if (response.status === 204 && Date.now() - began > AGAIN_MS) return true;
  } catch {
    // The status tells the page whether the agent answers.
  }
  await new Promise((resolve) => { setTimeout(resolve, AGAIN_MS); });
  return true;
}

while (await ask());
