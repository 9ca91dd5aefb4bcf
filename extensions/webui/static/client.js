// Speaks to the service. The tokens stay in this module's memory: they are gone with the page.

import { writeJson } from './json-input.js';

/** A refusal of the service, with its faults by field. */
export class Refusal extends Error {
  constructor(status, { message, details, error } = {}) {
    super(message ?? `the service answered ${status}`);
    this.status = status;
    this.code = error;
    this.details = details ?? {};
    this.issues = details?.issues ?? [];
  }
}

const root = new URL('../../../', import.meta.url);
/** Longest pause that is waited for by itself after too many requests. Seconds. */
const LONGEST_PAUSE = 60;
let session = null;
let renewing = null;
let onEnd = () => {};
let onTrouble = () => {};

/** Who is logged in: `{agentId, scopes}`, or null. */
export const who = () => session && { agentId: session.agentId, scopes: session.scopes };

/** Whether the agent may, so that what it may not is not offered. */
export const may = (scope) =>
  session !== null && (session.scopes.includes('admin') || session.scopes.includes(scope));

/** Whether the agent may change a task, and what is of it: without `admin` only those that are its own. */
export const mayChange = ({ created_by }) =>
  may('tasks:write') && (may('admin') || created_by === session.agentId);

/** @param {(why: string) => void} listener called when the session has ended; `''`: as it was asked for */
export const whenSignedOut = (listener) => void (onEnd = listener);

/** @param {(text: string) => void} listener told what is the matter with the service; `''` when it answers again */
export const whenTroubled = (listener) => void (onTrouble = listener);

export async function signIn(given, secret) {
  // As the service writes it in the tasks that are the agent's own.
  const agentId = given.toLowerCase();
  const body = { agent_id: agentId, ...(secret === '' ? {} : { agent_secret: secret }) };
  take(await answerOf(await send('POST', 'agents/auth/token', { body })), agentId);
}

export async function signOut() {
  const { refresh } = session;
  end('');
  await send('POST', 'agents/auth/revoke', { body: { token: refresh } });
}

function take({ access_token, refresh_token, scope }, agentId) {
  const scopes = scope.split(' ').filter((each) => each !== '');
  session = { agentId, scopes, token: access_token, refresh: refresh_token };
}

function end(why) {
  session = null;
  onEnd(why);
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

/** Orders of which nobody knows whether they were carried out, as nothing was answered: each with its key. */
const unanswered = new Map();
/** How long one that is given anew is taken for the same. Milliseconds. */
const SAME_FOR = 300_000;

/**
 * Gives an order, once: whoever gives it again, as there was no answer, means the same one.
 * @param {{reason?: string, body?: object, query?: object}} options the reason goes into the log
 */
export async function order(path, { reason = '', headers = {}, ...options } = {}) {
  const { agentId } = session ?? {};
  const said = JSON.stringify([agentId, path, options.body, options.query]);
  const before = unanswered.get(said);
  const isSame = before !== undefined && performance.now() - before.at < SAME_FOR;
  const key = isSame ? before.key : (crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`);
  try {
    const answer = await call('POST', path, {
      ...options,
      headers: { 'Idempotency-Key': key, ...reasonHeader(reason), ...headers },
    });
    unanswered.delete(said);
    return answer;
  } catch (error) {
    if (isAnswered(error)) unanswered.delete(said);
    else unanswered.set(said, { key, at: performance.now() });
    throw error;
  }
}

/** Whether an order was refused, and is neither lost on its way nor still being carried out. */
const isAnswered = (error) =>
  error instanceof Refusal &&
  error.status >= 400 &&
  error.status < 500 &&
  error.details.field !== 'Idempotency-Key';

/** Headers are bytes: the reason goes as UTF-8. */
export const reasonHeader = (reason) =>
  reason === '' ? {} : { 'X-Reason': String.fromCharCode(...new TextEncoder().encode(reason)) };

/** The answer as it begins; a token that has expired is renewed. */
export async function open(method, path, options = {}) {
  const used = session?.token;
  const response = await patiently(method, path, options);
  if (response.status !== 401 || session === null) return response;
  // Others may have met the same expiry at the same time: a refresh token is good for one renewal.
  if (session.token === used) await (renewing ??= renew().finally(() => (renewing = null)));
  return session === null ? response : patiently(method, path, options);
}

async function renew() {
  const { refresh, agentId } = session;
  const response = await send('POST', 'agents/auth/refresh', { body: { refresh_token: refresh } });
  // Whoever has logged out meanwhile, or is another by now, is not brought back.
  if (session?.refresh !== refresh) return;
  if (response.ok) take(await response.json(), agentId);
  // A service that is just restarting has not ended the session.
  else if (response.status < 500 && response.status !== 429) {
    end('Your session has ended: log in again.');
  }
}

/** Nothing was done by a request that was one too many: it goes out again when it may. */
async function patiently(method, path, options) {
  for (;;) {
    const response = await send(method, path, options);
    const seconds = Number(response.headers.get('retry-after'));
    if (response.status !== 429 || !(seconds > 0 && seconds <= LONGEST_PAUSE)) return response;
    onTrouble(`Too many requests: this goes on in ${seconds} s.`);
    await pause(seconds * 1000, options.signal);
    onTrouble('');
  }
}

/** Resolves after so many milliseconds, or at once when aborted. */
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
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') url.searchParams.set(key, value);
  }
  const all = { ...headers };
  if (session !== null) all.Authorization = `Bearer ${session.token}`;
  if (body !== undefined) all['Content-Type'] = 'application/json';
  try {
    const response = await fetch(url, {
      ...{ method, headers: all, signal },
      body: body && writeJson(body),
    });
    if (response.status !== 429) onTrouble('');
    return response;
  } catch (error) {
    if (signal?.aborted) throw error;
    onTrouble('The service does not answer. What you see is as it was before.');
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
