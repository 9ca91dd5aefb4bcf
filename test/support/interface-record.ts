import { appendFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { IncomingHttpHeaders } from 'node:http';
import { endpointAt } from './response-check.ts';
import { projectRoot } from './project-root.ts';

/** A request of a test and its response, as far as the coverage of the interface needs them. */
export interface Observation {
  readonly file: string;
  readonly title: string;
  /** `GET /task/{task_id}/latest`: the path that was used, with the names of its parameters. */
  readonly endpoint: string;
  readonly status: number;
  /** Names of response headers, in lower case. */
  readonly headers: readonly string[];
  /** Names in the query and, at any depth, in the body. */
  readonly takes: readonly string[];
  /** Names in the response, at any depth. */
  readonly answers: readonly string[];
  /** The code of an error. */
  readonly error: string | null;
}

/** The folder that observations are written to; without it nothing is recorded. */
export const RECORD_FOLDER = 'SVC_TEST_INTERFACE_RECORD';

const folder = process.env[RECORD_FOLDER];
/** Deeper names belong to what users define, such as results of steps. */
const DEPTH = 6;
/** Items of a list are alike. */
const ITEMS = 20;

let current: { readonly file: string; readonly title: string } | null = null;
const written = new Set<string>();

/** Remembers which test is running. Loaded by mocha's `--require`. */
export const mochaHooks = {
  beforeEach(this: Mocha.Context) {
    const { file = '', title = '' } = this.currentTest ?? {};
    current = { file: relative(projectRoot, file), title };
  },
  afterEach() {
    current = null;
  },
};

/** Records a request and its response under the name of the running test, if recording is on. */
export function recordResponse(
  method: string,
  url: string,
  body: unknown,
  answer: { readonly status: number; readonly headers: IncomingHttpHeaders; readonly text: string },
): void {
  if (folder === undefined || current === null) return;
  const [path = '', query = ''] = url.split('?', 2);
  const endpoint = endpointAt(method, path);
  if (endpoint === null) return;
  const used = endpoint.paths.find((each) => fits(each, path)) ?? endpoint.paths[0];
  const response = parsed(answer.text);
  const observation: Observation = {
    ...current,
    endpoint: `${method} ${used.replaceAll(/:([a-z_]+)/g, '{$1}')}`,
    status: answer.status,
    headers: Object.keys(answer.headers),
    takes: [...new Set([...new URLSearchParams(query).keys(), ...sentNames(body)])].sort(),
    answers: [...new Set(namesIn(response))].sort(),
    error: answer.status < 400 ? null : String((response as { error?: unknown } | null)?.error),
  };
  const line = `${JSON.stringify(observation)}\n`;
  if (written.has(line)) return;
  written.add(line);
  appendFileSync(join(folder, `${process.pid}.ndjson`), line);
}

function fits(pattern: string, path: string): boolean {
  const [wanted, found] = [pattern.split('/'), path.replace(/\/$/, '').split('/')];
  return (
    wanted.length === found.length &&
    wanted.every((part, index) => part.startsWith(':') || part === found[index])
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Names in a request body: an object, or a string of JSON or of a form. */
function sentNames(body: unknown): readonly string[] {
  if (typeof body !== 'string') return Buffer.isBuffer(body) ? [] : namesIn(body);
  const value = parsed(body);
  return value === null ? [...new URLSearchParams(body).keys()] : namesIn(value);
}

function namesIn(value: unknown, depth = 0): readonly string[] {
  if (typeof value !== 'object' || value === null || depth > DEPTH) return [];
  if (Array.isArray(value)) {
    return value.slice(0, ITEMS).flatMap((item) => namesIn(item, depth + 1));
  }
  return Object.entries(value).flatMap(([name, inner]) => [name, ...namesIn(inner, depth + 1)]);
}
