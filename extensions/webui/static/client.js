// The client of the service. The session is in a cookie, which no script can read.

import { writeJson } from './json.js';
import { findNamespaces, inNamespace } from './namespaces.js';
import { getState, setState } from './store.js';

/** An error response of the service, with its issues by field and its original body. */
export class RefusalError extends Error {
  constructor(status, body = {}) {
    const { message, details, error } = body;
    super(message ?? `the service responded with ${status}`);
    this.body = body;
    this.status = status;
    this.code = error;
    this.details = details ?? {};
    this.issues = details?.issues ?? [];
  }
}

const root = new URL('../../../', import.meta.url);
/** The longest pause after which a rate-limited request is sent again. Seconds. */
const MAX_PAUSE = 60;
let session = null;

/** The id of the agent that is logged in. */
export const agentId = () => session?.agentId;

/** The name of the agent that is logged in. */
export const ownName = () => session?.name;

/** The namespace of the agent that is logged in. */
export const ownNamespace = () => session?.namespace;

/** Whether the agent has a scope. The page does not offer actions that the agent may not take. */
export const may = (scope) =>
  session !== null && (session.scopes.includes('admin') || session.scopes.includes(scope));

/** Whether the agent may change a task and its runs: without `admin` only its own tasks. */
export const mayChange = ({ created_by }) =>
  may('tasks:write') && (may('admin') || created_by === session.agentId);

/** Continues the session of the cookie, if there is one. @throws {RefusalError} */
export async function resume() {
  await begin(await bodyOf(await patiently('GET', 'auth/session', {})));
}

export async function signIn(id, secret) {
  const body = { agent_id: id, ...(secret === '' ? {} : { agent_secret: secret }) };
  await begin(await bodyOf(await send('POST', 'auth/session', { body })));
}

export async function signOut() {
  await bodyOf(await send('DELETE', 'auth/session'));
  end('');
}

/** The address that starts logging in at the identity provider and then returns to the present view. */
export function personalSignIn() {
  const url = new URL('auth/oidc/login', root);
  const view = location.hash.replace(/^#\/?/, '');
  if (/^[a-z][!#-;=?-~]{0,499}$/.test(view)) url.searchParams.set('view', view);
  return url.href;
}

async function begin({ agent, openid_connect: hasPersonal }) {
  session = agent && {
    agentId: agent.id,
    name: agent.name,
    scopes: agent.scopes,
    namespace: agent.namespace,
  };
  setState({ agent: session, hasPersonal, isKnown: true });
  if (may('admin')) await findNamespaces((path, query) => call('GET', path, { query }));
}

/** @param why shown to the person, who has to log in again */
function end(why) {
  session = null;
  const ended = {
    agent: null,
    dialog: null,
    panel: null,
    hold: null,
    namespaces: [],
    namespace: '',
  };
  setState({ ...ended, signedOut: why });
}

/**
 * @param {string} path without a slash before it
 * @param {{body?: object, query?: object, headers?: object, signal?: AbortSignal}} options
 * @returns the parsed answer
 * @throws {RefusalError}
 */
export async function call(method, path, options = {}) {
  return bodyOf(await open(method, path, options));
}

/** The same, with the headers. */
export async function callFully(method, path, options = {}) {
  const response = await open(method, path, options);
  return { body: await bodyOf(response), headers: response.headers };
}

/** The idempotency keys of commands whose response was lost: they may have been carried out. */
const unanswered = new Map();
/** How long a repeated command counts as the same one. Milliseconds. */
const SAME_FOR = 300_000;

/**
 * Sends a command. If the response is lost, sending it again carries it out only once.
 * @param {{method?: string, reason?: string, body?: object, query?: object}} options the reason goes into the log
 */
export async function command(path, { method = 'POST', reason = '', ...options } = {}) {
  const identity = JSON.stringify([agentId(), method, path, options.body, options.query]);
  const before = unanswered.get(identity);
  const isSame = before !== undefined && performance.now() - before.at < SAME_FOR;
  const key = isSame ? before.key : (crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`);
  try {
    const headers = { 'Idempotency-Key': key, ...reasonHeader(reason) };
    const response = await call(method, path, { ...options, headers });
    unanswered.delete(identity);
    return response;
  } catch (error) {
    if (isRefused(error)) unanswered.delete(identity);
    else unanswered.set(identity, { key, at: performance.now() });
    throw error;
  }
}

/** Whether a command was refused, and is neither lost nor still being carried out. */
const isRefused = (error) =>
  error instanceof RefusalError &&
  error.status >= 400 &&
  error.status < 500 &&
  error.details.field !== 'Idempotency-Key';

/** Whether the service did not respond, or could not. The same request may succeed later. */
export const isOutage = (error) =>
  error instanceof RefusalError && (error.status === 0 || error.status >= 500);

/** Headers are bytes: the reason goes as UTF-8. */
export const reasonHeader = (reason) =>
  reason === '' ? {} : { 'X-Reason': String.fromCharCode(...new TextEncoder().encode(reason)) };

/** The response before its body is read. */
export async function open(method, path, options = {}) {
  const used = session;
  const response = await patiently(method, path, options);
  // Another session may have started since the request.
  if (response.status === 401 && session !== null && session === used) {
    end('Your session has ended. Log in again.');
  }
  return response;
}

/** Sends a rate-limited request again, as the service has not carried it out. */
async function patiently(method, path, options) {
  for (;;) {
    const response = await send(method, path, options);
    const seconds = Number(response.headers.get('retry-after'));
    if (response.status !== 429 || !(seconds > 0 && seconds <= MAX_PAUSE)) return response;
    setTrouble(`Too many requests. Continuing in ${seconds} s.`);
    await pause(seconds * 1000, options.signal);
    setTrouble('');
  }
}

/** Resolves after a number of milliseconds, or at once when aborted. */
export const pause = (milliseconds, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });

async function send(method, path, { body, query = {}, headers = {}, signal } = {}) {
  const url = new URL(path, root);
  for (const [key, value] of Object.entries(inNamespace(method, path, query))) {
    if (value !== undefined && value !== null && value !== '') url.searchParams.set(key, value);
  }
  // A browser that has Basic credentials for this site would send them; this header selects the session.
  const all = { ...headers, 'X-Session': 'cookie' };
  if (body !== undefined) all['Content-Type'] = 'application/json';
  try {
    const response = await fetch(url, {
      method,
      headers: all,
      signal,
      body: body && writeJson(body),
    });
    if (response.status !== 429) setTrouble('');
    return response;
  } catch (error) {
    if (signal?.aborted) throw error;
    setTrouble('The service does not respond. This page shows older data.');
    throw new RefusalError(0, { message: 'The service does not respond.' });
  }
}

function setTrouble(trouble) {
  if (getState().trouble !== trouble) setState({ trouble });
}

async function bodyOf(response) {
  const text = await response.text();
  let body = null;
  try {
    body = text === '' ? null : JSON.parse(text);
  } catch {
    // A proxy in between may answer in another format.
  }
  if (!response.ok) throw new RefusalError(response.status, body ?? {});
  return body;
}
