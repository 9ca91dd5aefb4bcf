import { Ajv, type ValidateFunction } from 'ajv';
import type { TSchema } from '@sinclair/typebox';
import type { IncomingHttpHeaders } from 'node:http';
import { ErrorBody, mediaTypesOf } from '../../api/schemas/response-schemas.ts';
import { endpoints } from '../../api/app.ts';
import { responseHeaders } from '../../api/endpoint.ts';
import { refusalsOf, type DescribedEndpoint } from '../../api/openapi/endpoint-outcomes.ts';
import { errorStatuses, type ErrorCode } from '../../api/errors.ts';
import { endpointsOf, hostEndpoints } from '../../api/endpoints/extension-endpoints.ts';
import { unlistedEndpoints } from '../../api/openapi/unlisted-endpoints.ts';
import { isUuid } from '../../domain/ids.ts';
import { endpoints as eventsDemo } from '../../extensions/events_demo/events-demo.ts';
import { endpoints as mcpHttp } from '../../extensions/mcp_http/mcp-http.ts';
import { endpoints as webui } from '../../extensions/webui/webui.ts';

/** A response as received. */
export interface SentResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const ajv = new Ajv({
  allErrors: true,
  strict: false,
  formats: {
    uuid: isUuid,
    'date-time': (text: string) => TIME.test(text) && !Number.isNaN(Date.parse(text)),
    uri: true,
    date: /^\d{4}-\d\d-\d\d$/,
    'http-url': true,
  },
});

const core: readonly DescribedEndpoint[] = [...unlistedEndpoints, ...endpoints];

/** The endpoints of the built-in extensions. */
export const builtInEndpoints: readonly DescribedEndpoint[] = [
  { id: 'webui', endpoints: webui },
  { id: 'events_demo', endpoints: eventsDemo },
  { id: 'mcp_http', endpoints: mcpHttp },
].flatMap((extension) => endpointsOf({ ...extension, isLimited: false }, core));

const described = [...core, ...hostEndpoints, ...builtInEndpoints];
const routes = described.flatMap((endpoint) =>
  endpoint.paths.map((path) => ({ endpoint, pattern: patternOf(path) })),
);
const compiled = new Map<TSchema, ValidateFunction>();

/**
 * Checks a response of the service against its endpoint's declaration: status, type, every field of
 * the body, headers. Unknown paths must have the common error body; paths of the tests' own
 * extensions are not checked.
 * @throws Error naming the difference
 */
export function checkResponse(method: string, url: string, answer: SentResponse): void {
  if (method === 'OPTIONS') return;
  const [path = ''] = url.split('?', 1);
  const endpoint = endpointAt(method, path);
  const fault =
    endpoint === null ? faultOfUnknown(path, answer) : faultOf(endpoint, method, answer);
  if (fault === null) return;
  const shown = `${answer.status} ${answer.text.slice(0, 500)}`;
  throw new Error(
    `the response to ${method} ${url} differs from its declaration: ${fault}\n${shown}`,
  );
}

/** The endpoint of a request; null if there is none. */
export function endpointAt(method: string, path: string): DescribedEndpoint | null {
  const wanted = method === 'HEAD' ? 'get' : method.toLowerCase();
  const found = routes.find(
    ({ endpoint, pattern }) => endpoint.method === wanted && pattern.test(path),
  );
  return found?.endpoint ?? null;
}

function faultOfUnknown(path: string, answer: SentResponse): string | null {
  const json = mediaTypeIn(answer.headers) === 'application/json';
  if (!json || answer.status < 400 || path.startsWith('/ext/')) return null;
  return bodyFault(ErrorBody, answer.text);
}

function faultOf(endpoint: DescribedEndpoint, method: string, answer: SentResponse): string | null {
  const { responses: answers, responseHeaders: declared = [] } = endpoint;
  const schema = answers[answer.status];
  const surplus = responseHeaders.find(
    (name) => name.toLowerCase() in answer.headers && !declared.includes(name),
  );
  if (surplus !== undefined) return `the header ${surplus} is not declared`;
  if (schema === undefined) return faultOfRefusal(endpoint, method, answer);
  const type = mediaTypeIn(answer.headers);
  if (!mediaTypesOf(schema).includes(type)) return `its type is ${type}`;
  const said = method !== 'HEAD' && type === 'application/json';
  return said ? bodyFault(schema, answer.text) : null;
}

function faultOfRefusal(
  endpoint: DescribedEndpoint,
  method: string,
  answer: SentResponse,
): string | null {
  const code = refusalsOf(endpoint).find((each) => errorStatuses[each] === answer.status);
  if (code === undefined) return `the status ${answer.status} is not declared`;
  if (method === 'HEAD') return null;
  return bodyFault(ErrorBody, answer.text) ?? codeFault(code, answer.text);
}

function codeFault(code: ErrorCode, text: string): string | null {
  const { error } = JSON.parse(text) as { readonly error: string };
  return error === code ? null : `the error is ${error} and not ${code}`;
}

function bodyFault(schema: TSchema, text: string): string | null {
  const check = compiled.get(schema) ?? ajv.compile(schema);
  compiled.set(schema, check);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return 'its body is not JSON';
  }
  if (check(body)) return null;
  return ajv.errorsText(check.errors, { dataVar: 'body' });
}

function mediaTypeIn(headers: IncomingHttpHeaders): string {
  return (headers['content-type'] ?? 'none').split(';', 1)[0] ?? 'none';
}

/** Like the router: a parameter is one segment of the path, and a trailing slash is allowed. */
function patternOf(path: string): RegExp {
  const parts = path.split('/').map((part) =>
    // Parameter names stand alone between slashes; other segments are literal.
    part.startsWith(':') ? '[^/]+' : part.replaceAll('.', String.raw`\.`),
  );
  return new RegExp(`^${parts.join('/')}/?$`);
}
