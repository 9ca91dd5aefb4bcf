import type { EndpointDescription, ExtensionCaller } from '../../contract.ts';
import type { Extension } from '../extension.ts';
import type { LedRequest } from './led-request.ts';

const NONE: readonly EndpointDescription[] = [];

/**
 * The endpoints of a built-in extension at the path of a request. All that these serve is described, so that by it can be
 * told what is there before a body is read; of any other extension nothing is known.
 */
function endpointsAt(extension: Extension, rest: string): readonly EndpointDescription[] {
  if (extension.source !== 'builtin') return NONE;
  const parts = partsOf(rest);
  return extension.endpoints.filter(({ path }) => fits(partsOf(path), parts));
}

/** What the description says of a request; null where it says nothing. */
function endpointOf({ extension, rest, request }: LedRequest): EndpointDescription | null {
  const method = request.method === 'HEAD' ? 'get' : request.method.toLowerCase();
  return endpointsAt(extension, rest).find((each) => each.method === method) ?? null;
}

/**
 * Whether the body of a request is read before it is led to its extension. It is not where nothing is there, nor for who
 * lacks the scopes: what is wrong with a body is told only after these, and both are told by whoever takes the request.
 */
export function mayTakeBody(led: LedRequest): boolean {
  if (led.extension.source !== 'builtin') return true;
  const endpoint = endpointOf(led);
  return endpoint !== null && reaches(led.caller, endpoint.scopes ?? []);
}

function reaches(caller: ExtensionCaller | null, scopes: readonly string[]): boolean {
  if (scopes.length === 0 || caller === null) return true;
  return caller.admin || scopes.some((scope) => caller.scopes.includes(scope));
}

/**
 * The schema of a request's query, where the description says what that may hold; null where it says nothing, or the
 * query does not matter: links to a page may carry any. As with bodies, whoever lacks the scopes is told so first.
 */
export function queryOf(led: LedRequest): { readonly schema: object | undefined } | null {
  const endpoint = endpointOf(led);
  if (endpoint === null || !reaches(led.caller, endpoint.scopes ?? [])) return null;
  return isPage(endpoint) ? null : { schema: endpoint.query };
}

function isPage({ answers }: EndpointDescription): boolean {
  return Object.values(answers).some(
    (schema: { readonly contentMediaType?: unknown }) => schema.contentMediaType === 'text/html',
  );
}

/** Methods by which there is something at the path of a request, as `Allow` names them; empty where none is known. */
export function allowedAt({ extension, rest }: LedRequest): string {
  const methods = endpointsAt(extension, rest)
    .filter(({ answers }) => Object.keys(answers).some((status) => Number(status) < 400))
    .map(({ method }) => method.toUpperCase());
  return methods.length === 0 ? '' : allowed(methods);
}

/** With those that come with them. */
export function allowed(methods: readonly string[]): string {
  const more = methods.includes('GET') ? ['HEAD', 'OPTIONS'] : ['OPTIONS'];
  return [...methods, ...more].join(', ');
}

/** As Express takes paths: a slash more at the end, and upper case, make no difference. */
const partsOf = (path: string): readonly string[] =>
  path.toLowerCase().replace(/\/$/, '').split('/');

function fits(pattern: readonly string[], parts: readonly string[]): boolean {
  if (pattern.length !== parts.length) return false;
  return pattern.every((each, at) =>
    each.startsWith(':') ? parts[at] !== '' : each === parts[at],
  );
}
