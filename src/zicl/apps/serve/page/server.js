// The server: requests, tokens, streams.

class Problem extends Error {
  constructor({ title, detail, expected, hint, type, status, field, index, where }, retryAfter = null) {
    super(title || "Something went wrong");
    Object.assign(this, {
      title: title || "Something went wrong",
      detail,
      expected,
      hint,
      type: type || "",
      status,
      field: field || "",
      index,
      where,
      retryAfter,
    });
  }
}

async function toProblem(response) {
  const retry = Number.parseFloat(response.headers.get("Retry-After"));
  let problem = {};
  try {
    problem = await response.json();
  } catch {
    /* an answer without a problem document still has a status */
  }
  if (typeof problem !== "object" || problem === null || !problem.title) {
    problem = {
      title: `The server answered ${response.status}`,
      detail: response.statusText,
      hint: "Try again; if it stays so, look at what the server prints.",
    };
  }
  return new Problem({ status: response.status, ...problem }, Number.isFinite(retry) ? retry : null);
}

const LOST = {
  title: "The server does not answer",
  detail: "The connection was refused or lost.",
  hint: "Is zicl serve still running? Start it again and retry.",
};
const TOKEN = "zicl-token";
let asking = null;
function askForToken(tried) {
  asking ??= new Promise((done, fail) => {
    const box = $("token-box");
    $("token").value = "";
    showProblem(
      "token-problem",
      tried ? new Problem({ title: "That token was refused", hint: "Check it for missing characters." }) : null,
    );
    box.returnValue = "";
    box.addEventListener(
      "close",
      () => {
        asking = null;
        if (box.returnValue === "ok" && $("token").value) {
          sessionStorage.setItem(TOKEN, $("token").value.trim());
          done();
        } else
          fail(
            new Problem({
              title: "No token was given",
              detail: "This server answers only those who have its token.",
              hint: "Run again and enter it.",
            }),
          );
      },
      { once: true },
    );
    box.showModal();
  });
  return asking;
}

async function call(path, { body, signal } = {}) {
  for (;;) {
    const token = sessionStorage.getItem(TOKEN);
    const headers = {
      Accept: `${body?.stream ? "application/x-ndjson" : "application/json"}, application/problem+json`,
    };
    if (token) headers.Authorization = `Bearer ${token}`;
    if (body) headers["Content-Type"] = "application/json";
    let response;
    try {
      response = await fetch(path, {
        method: body ? "POST" : "GET",
        headers,
        body: body && JSON.stringify(body),
        signal,
        cache: "no-store",
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Problem(LOST);
    }
    if (response.status === 401) {
      // Another request may have got a new token in the meantime.
      if (sessionStorage.getItem(TOKEN) === token) {
        sessionStorage.removeItem(TOKEN);
        await askForToken(Boolean(token));
      }
      continue;
    }
    if (!response.ok) throw await toProblem(response);
    return response;
  }
}

// Try again while the queue is full or the models are being loaded: the server says when.
async function patiently(ask, signal, report) {
  for (let tries = 0; ; tries++) {
    try {
      return await ask();
    } catch (error) {
      const starting = error.type?.endsWith(":starting");
      if (
        !(error instanceof Problem) ||
        error.status !== 503 ||
        error.retryAfter === null ||
        (tries >= 8 && !starting)
      )
        throw error;
      const seconds = Math.min(30, Math.max(1, error.retryAfter));
      report?.(`${error.title}; trying again in ${count(Math.round(seconds), "second", "seconds")} …`);
      await wait(1000 * seconds, signal);
    }
  }
}

async function* linesOf(response, signal) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read().catch((error) => {
      throw signal?.aborted ? error : new Problem(LOST);
    });
    if (done) break;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    for (const part of parts) if (part.trim()) yield JSON.parse(part);
  }
  if (rest.trim()) yield JSON.parse(rest);
}
