import type { Response } from 'express';
import {
  ExtensionError,
  badInput,
  type CoreAnswer,
  type ExtensionContext,
  type ExtensionErrorCode,
  extensionErrorCodes,
} from '../contract.ts';
import { previewOf } from './previews.ts';

export { endpoints } from './endpoints.ts';

/** How many tasks `GET api/tasks` shows: a page of the service's own list. */
const SHOWN = 200;

/** Tasks whose titles are asked for at once. */
const MOST_TITLES = 100;

/**
 * The web page's own endpoints; the page itself stands in `static/` and speaks to the service as any client does.
 * The endpoints here act with the caller's token, so that the service's rules are theirs.
 */
export function setup({ routes, core, callerOf }: ExtensionContext): void {
  routes.get('/api/tasks', async (request, response) => {
    const tasks: object[] = [];
    let cursor: string | undefined;
    do {
      const query = { limit: SHOWN - tasks.length, cursor };
      const answer = await core.request('GET', '/tasks', { onBehalfOf: request, query });
      if (answer.status !== 200) throw refusal(answer);
      // A page of large tasks ends before its limit.
      const page = answer.body as ListedPage;
      for (const { id, title, status, next_run_at, schedule_text } of page.items) {
        tasks.push({ id, title, status, next_run: next_run_at, schedule_text });
      }
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined && tasks.length < SHOWN);
    response.json({ tasks });
  });

  routes.get('/api/titles', async (request, response) => {
    const ids = idsIn(request.query['ids']);
    const answers = await Promise.all(
      ids.map((id) =>
        core.request('GET', `/tasks/${encodeURIComponent(id)}`, { onBehalfOf: request }),
      ),
    );
    const refused = answers.find(({ status }) => status !== 200 && status !== 404);
    if (refused !== undefined) throw refusal(refused);
    const tasks = answers
      .filter(({ status }) => status === 200)
      .map(({ body }) => {
        const { id, title } = body as ListedTask;
        return { id, title };
      });
    response.json({ tasks });
  });

  routes.post('/api/tasks', async (request, response) => {
    // It is none where the caller lacks the scope, which the service itself says.
    const given: unknown = request.body === undefined ? {} : request.body;
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

  routes.post('/api/preview', async (request, response) => {
    const asked = { onBehalfOf: request, body: request.body as unknown };
    const answer = await core.request('POST', '/schedules/preview', asked);
    const preview = previewOf(answer);
    if (preview === null) throw refusal(answer);
    response.json(preview);
  });
}

/** Ids with commas between. @throws ExtensionError `bad_request` for none, or too many */
function idsIn(text: unknown): readonly string[] {
  const ids = typeof text === 'string' ? [...new Set(text.split(','))].filter(Boolean) : [];
  if (ids.length > 0 && ids.length <= MOST_TITLES) return ids;
  throw badInput('ids', `must be 1 to ${MOST_TITLES} ids with commas between`);
}

/** What is shown of a task of the service's list. */
interface ListedTask {
  readonly id: string;
  readonly title: string;
  readonly status: string;
  readonly next_run_at: string | null;
  readonly schedule_text: string;
}

interface ListedPage {
  readonly items: readonly ListedTask[];
  readonly next_cursor: string | null;
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
