import type { EndpointDescription, ExtensionCaller } from '../../contract.ts';
import type { Extension } from '../extension.ts';
import type { RequestContext } from './request-context.ts';

/**
 * The endpoints of a built-in extension at the path of a request. Built-in extensions describe all their endpoints;
 * other extensions need not.
 */
function endpointsAt(extension: Extension, subpath: string): readonly EndpointDescription[] {
  if (extension.source !== 'builtin') return [];
  const parts = segmentsOf(subpath);
  return extension.endpoints.filter(({ path }) => matches(segmentsOf(path), parts));
}

/** The described endpoint of a request, or null. */
function endpointOf({ extension, subpath, request }: RequestContext): EndpointDescription | null {
  const method = request.method === 'HEAD' ? 'get' : request.method.toLowerCase();
  return endpointsAt(extension, subpath).find((each) => each.method === method) ?? null;
}

/**
 * Whether the body of a request is read before its extension is called. An unknown path or a missing scope is
 * reported before an invalid body.
 */
export function shouldReadBody(context: RequestContext): boolean {
  if (context.extension.source !== 'builtin') return true;
  const endpoint = endpointOf(context);
  return endpoint !== null && hasScope(context.caller, endpoint.scopes ?? []);
}

function hasScope(caller: ExtensionCaller | null, scopes: readonly string[]): boolean {
  if (scopes.length === 0 || caller === null) return true;
  return caller.admin || scopes.some((scope) => caller.scopes.includes(scope));
}

/**
 * The query schema of a request. null if nothing is described, a scope is missing (which is reported first), or the
 * endpoint is a page, whose links may have any query.
 */
export function querySchemaOf(
  context: RequestContext,
): { readonly schema: object | undefined } | null {
  const endpoint = endpointOf(context);
  if (endpoint === null || !hasScope(context.caller, endpoint.scopes ?? [])) return null;
  return isPage(endpoint) ? null : { schema: endpoint.query };
}

function isPage({ answers }: EndpointDescription): boolean {
  return Object.values(answers).some(
    (schema: { readonly contentMediaType?: unknown }) => schema.contentMediaType === 'text/html',
  );
}

/** The `Allow` header of the request's path; empty if no endpoint is known. */
export function allowHeaderOf({ extension, subpath }: RequestContext): string {
  const methods = endpointsAt(extension, subpath)
    .filter(({ answers }) => Object.keys(answers).some((status) => Number(status) < 400))
    .map(({ method }) => method.toUpperCase());
  return methods.length === 0 ? '' : allowHeader(methods);
}

/** The `Allow` header for some methods. */
export function allowHeader(methods: readonly string[]): string {
  const more = methods.includes('GET') ? ['HEAD', 'OPTIONS'] : ['OPTIONS'];
  return [...methods, ...more].join(', ');
}

/** As in Express, case and a trailing slash make no difference. */
const segmentsOf = (path: string): readonly string[] =>
  path.toLowerCase().replace(/\/$/, '').split('/');

function matches(pattern: readonly string[], parts: readonly string[]): boolean {
  if (pattern.length !== parts.length) return false;
  return pattern.every((each, at) =>
    each.startsWith(':') ? parts[at] !== '' : each === parts[at],
  );
}
