import type { Response } from 'express';
import {
  ExtensionError,
  badInput,
  type CoreAnswer,
  type ExtensionContext,
  type ExtensionErrorCode,
  extensionErrorCodes,
} from '../contract.ts';

/** How many tasks `GET api/tasks` shows: a page of the service's own list. */
const SHOWN = 200;

/**
 * The web page's own endpoints; the page itself stands in `static/` and speaks to the service as any client does.
 * Both endpoints here act with the caller's token, so that the service's rules are theirs.
 */
export function setup({ routes, core, callerOf }: ExtensionContext): void {
  routes.get('/api/tasks', async (request, response) => {
    const asked = { onBehalfOf: request, query: { limit: SHOWN } };
    const answer = await core.request('GET', '/tasks', asked);
    if (answer.status !== 200) throw refusal(answer);
    const { items } = answer.body as { readonly items: readonly ListedTask[] };
    const tasks = items.map(({ id, title, status, next_run_at }) => {
      return { id, title, status, next_run: next_run_at };
    });
    response.json({ tasks });
  });

  routes.post('/api/tasks', async (request, response) => {
    const given: unknown = request.body;
    if (given === null || typeof given !== 'object' || Array.isArray(given)) {
      throw badInput('body', 'must be an object');
    }
    const { title } = given as { readonly title?: unknown };
    const caller = callerOf(request);
    const body = { description: title, created_by: caller?.agentId, ...given };
    const key = request.get('idempotency-key');
    const headers = key === undefined ? {} : { 'idempotency-key': key };
    const answer = await core.request('POST', '/tasks', { onBehalfOf: request, body, headers });
    if (answer.status !== 201) throw refusal(answer);
    copyHeaders(answer, response);
    response.status(201).json(answer.body);
  });
}

/** What is shown of a task of the service's list. */
interface ListedTask {
  readonly id: string;
  readonly title: string;
  readonly status: string;
  readonly next_run_at: string | null;
}

/** Headers of the service's answer that belong to the task. */
function copyHeaders({ headers }: CoreAnswer, response: Response): void {
  for (const name of ['location', 'etag', 'x-event-position', 'idempotent-replayed']) {
    const value = headers[name];
    if (value !== undefined) response.setHeader(name, value);
  }
}

/** The service's own refusal, handed on as it is. */
function refusal({ status, body }: CoreAnswer): Error {
  const { error, message, details } = (body ?? {}) as {
    readonly error?: unknown;
    readonly message?: unknown;
    readonly details?: Readonly<Record<string, unknown>>;
  };
  const code: ExtensionErrorCode | undefined = extensionErrorCodes.find((each) => each === error);
  const text = typeof message === 'string' ? message : `the service answered ${status}`;
  return new ExtensionError(code ?? 'unavailable', text, details ?? {});
}
