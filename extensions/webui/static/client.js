// Speaks to the service. The tokens stay in this module's memory: they are gone with the page.

/** A refusal of the service, with its faults by field. */
export class Refusal extends Error {
  constructor(status, { message, details, error } = {}) {
    super(message ?? `the service answered ${status}`);
    this.status = status;
    this.code = error;
    this.issues = details?.issues ?? [];
  }
}

const root = new URL('../../../', import.meta.url);
let session = null;
let renewing = null;
let onEnd = () => {};

/** Who is logged in: `{agentId, scopes}`, or null. */
export const who = () => session && { agentId: session.agentId, scopes: session.scopes };

/** Whether the agent may, so that what it may not is not offered. */
export const may = (scope) =>
  session !== null && (session.scopes.includes('admin') || session.scopes.includes(scope));

/** @param listener called when the session has ended */
export const whenSignedOut = (listener) => void (onEnd = listener);

export async function signIn(agentId, secret) {
  const body = { agent_id: agentId, ...(secret === '' ? {} : { agent_secret: secret }) };
  take(await answerOf(await send('POST', 'agents/auth/token', { body })), agentId);
}

export async function signOut() {
  const { refresh } = session;
  end();
  await send('POST', 'agents/auth/revoke', { body: { token: refresh } });
}

function take({ access_token, refresh_token, scope }, agentId) {
  const scopes = scope.split(' ').filter((each) => each !== '');
  session = { agentId, scopes, token: access_token, refresh: refresh_token };
}

function end() {
  session = null;
  onEnd();
}

/**
 * @param {string} path without a slash before it
 * @param {{body?: object, query?: object, headers?: object, signal?: AbortSignal}} options
 * @returns the parsed answer
 * @throws {Refusal}
 */
export async function call(method, path, options = {}) {
  return answerOf(await open(method, path, options));
}

/** The same, with the headers. */
export async function callFully(method, path, options = {}) {
  const response = await open(method, path, options);
  return { body: await answerOf(response), headers: response.headers };
}

/** The answer as it begins; a token that has expired is renewed. */
export async function open(method, path, options = {}) {
  const used = session?.token;
  const response = await send(method, path, options);
  if (response.status !== 401 || session === null) return response;
  // Others may have met the same expiry at the same time: a refresh token is good for one renewal.
  if (session.token === used) await (renewing ??= renew().finally(() => (renewing = null)));
  return session === null ? response : send(method, path, options);
}

async function renew() {
  const { refresh, agentId } = session;
  const response = await send('POST', 'agents/auth/refresh', { body: { refresh_token: refresh } });
  if (response.ok) take(await response.json(), agentId);
  else end();
}

async function send(method, path, { body, query = {}, headers = {}, signal } = {}) {
  const url = new URL(path, root);
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') url.searchParams.set(key, value);
  }
  const all = { ...headers };
  if (session !== null) all.Authorization = `Bearer ${session.token}`;
  if (body !== undefined) all['Content-Type'] = 'application/json';
  try {
    return await fetch(url, { method, headers: all, body: body && JSON.stringify(body), signal });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refusal(0, { message: 'The service does not answer.' });
  }
}

async function answerOf(response) {
  const text = await response.text();
  let body = null;
  try {
    body = text === '' ? null : JSON.parse(text);
  } catch {
    // What stands in between, a proxy say, may answer in its own words.
  }
  if (!response.ok) throw new Refusal(response.status, body ?? {});
  return body;
}
