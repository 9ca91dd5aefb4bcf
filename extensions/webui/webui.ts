import type { Request, Response } from 'express';
import {
  ExtensionError,
  badInput,
  type CoreResponse,
  type ExtensionContext,
  extensionErrorCodes,
} from '../contract.ts';

export { endpoints } from './endpoints.ts';

/** Tasks that `GET api/tasks` lists: the largest page of `GET /tasks`. */
const MAX_TASKS = 200;
const MAX_IDS = 100;

/**
 * The web page's own endpoints. They act with the caller's token, so that the service's rules apply. The page itself is
 * in `static/` and is an ordinary client of the service.
 */
export function setup({ routes, core, callerOf }: ExtensionContext): void {
  /** The records that a request names by id, without records that do not exist or that the caller may not see. */
  const foundOf = async <T>(request: Request, path: string): Promise<readonly T[]> => {
    const answers = await Promise.all(
      idsIn(request.query['ids']).map((id) =>
        core.request('GET', `${path}/${encodeURIComponent(id)}`, { onBehalfOf: request }),
      ),
    );
    const refused = answers.find(({ status }) => status !== 200 && status !== 404);
    if (refused !== undefined) throw errorOf(refused);
    return answers.filter(({ status }) => status === 200).map(({ body }) => body as T);
  };

  routes.get('/api/tasks', async (request, response) => {
    const tasks: object[] = [];
    let cursor: string | undefined;
    // A page of large tasks ends before its limit.
    do {
      const query = { limit: MAX_TASKS - tasks.length, cursor };
      const answer = await core.request('GET', '/tasks', { onBehalfOf: request, query });
      if (answer.status !== 200) throw errorOf(answer);
      const page = answer.body as TaskPage;
      for (const { id, title, status, next_run_at, schedule_text } of page.items) {
        tasks.push({ id, title, status, next_run: next_run_at, schedule_text });
      }
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined && tasks.length < MAX_TASKS);
    response.json({ tasks });
  });

  routes.get('/api/titles', async (request, response) => {
    const found = await foundOf<ListedTask>(request, '/tasks');
    response.json({ tasks: found.map(({ id, title, timezone }) => ({ id, title, timezone })) });
  });

  routes.get('/api/states', async (request, response) => {
    const found = await foundOf<FoundRun>(request, '/runs');
    response.json({ runs: found.map(({ id, state }) => ({ id, state })) });
  });

  routes.post('/api/tasks', async (request, response) => {
    // Without the scope the body was not read; the service refuses the request itself.
    const given: unknown = request.body === undefined ? {} : request.body;
    if (given === null || typeof given !== 'object' || Array.isArray(given)) {
      throw badInput('body', 'must be an object');
    }
    const { title } = given as { readonly title?: unknown };
    const body = { description: title, created_by: callerOf(request)?.agentId, ...given };
    const key = request.get('idempotency-key');
    const headers = key === undefined ? {} : { 'idempotency-key': key };
    const answer = await core.request('POST', '/tasks', { onBehalfOf: request, body, headers });
    if (answer.status !== 201) throw errorOf(answer);
    copyHeaders(answer, response);
    response.status(201).json(answer.body);
  });

  /** Browsers log error responses to their consoles, and a half-typed task is not an error. */
  const tryOut = async (path: string, request: Request, response: Response): Promise<void> => {
    const options = { onBehalfOf: request, body: request.body as unknown };
    const answer = await core.request('POST', path, options);
    if (answer.status === 200) response.json({ valid: true, ...(answer.body as object) });
    else if (answer.status !== 400) throw errorOf(answer);
    else {
      const { message, details } = answer.body as Invalid;
      response.json({ valid: false, message, issues: details.issues ?? [] });
    }
  };
  routes.post('/api/preview', (request, response) =>
    tryOut('/schedules/preview', request, response),
  );
  routes.post('/api/check', (request, response) => tryOut('/tasks/check', request, response));
}

/** The ids in a list separated by commas. @throws ExtensionError `bad_request` for none, or too many */
function idsIn(list: unknown): readonly string[] {
  const ids = typeof list === 'string' ? [...new Set(list.split(','))].filter(Boolean) : [];
  if (ids.length > 0 && ids.length <= MAX_IDS) return ids;
  throw badInput('ids', `must be 1 to ${MAX_IDS} ids separated by commas`);
}

interface ListedTask {
  readonly id: string;
  readonly title: string;
  readonly timezone: string;
  readonly status: string;
  readonly next_run_at: string | null;
  readonly schedule_text: string;
}

interface FoundRun {
  readonly id: string;
  readonly state: string;
}

interface TaskPage {
  readonly items: readonly ListedTask[];
  readonly next_cursor: string | null;
}

interface Invalid {
  readonly message: string;
  readonly details: { readonly issues?: readonly object[] };
}

/** Copies the headers that belong to the task. */
function copyHeaders({ headers }: CoreResponse, response: Response): void {
  for (const name of ['location', 'etag', 'x-event-position', 'idempotent-replayed']) {
    const value = headers[name];
    if (value !== undefined) response.setHeader(name, value);
  }
}

/** The service's own error, passed on. */
function errorOf({ status, body }: CoreResponse): Error {
  const { error, message, details } = (body ?? {}) as {
    readonly error?: unknown;
    readonly message?: unknown;
    readonly details?: Readonly<Record<string, unknown>>;
  };
  const code = extensionErrorCodes.find((each) => each === error);
  const text = typeof message === 'string' ? message : `the service responded with ${status}`;
  return new ExtensionError(code ?? 'unavailable', text, details ?? {});
}
