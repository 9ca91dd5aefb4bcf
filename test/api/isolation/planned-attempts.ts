import { endpoints } from '../../../api/app.ts';
import { hostEndpoints } from '../../../api/endpoints/extension-endpoints.ts';
import type { DescribedEndpoint } from '../../../api/openapi/endpoint-outcomes.ts';
import { unlistedEndpoints } from '../../../api/openapi/unlisted-endpoints.ts';
import { builtInEndpoints } from '../../support/response-check.ts';
import {
  bodies,
  fixedParameters,
  furtherBodies,
  neededQueries,
  neutralParameters,
  ofTheService,
  pathParameters,
  queryParameters,
} from './attempts.ts';
import type { Things } from './things.ts';

/** A request that a neighbour makes about things that are not its own. */
export interface Attempt {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What a neighbour tries with one path of an endpoint. */
export interface Plan {
  /** Such as `GET /tasks/{id}`. */
  readonly operation: string;
  /** Whether it is an endless stream. */
  readonly isLive: boolean;
  /** Whether it can be narrowed to a namespace. */
  readonly takesNamespace: boolean;
  /** Whether it is about the service as a whole. */
  readonly isOfService: boolean;
  /** Whether there are any {@link attempts}. */
  readonly canName: boolean;
  /** Requests that name things. @param me id of the neighbour */
  readonly attempts: (things: Things, me: string) => readonly Attempt[];
  /** The path of a list or a figure that names nothing; null if the path or the query must name something. */
  readonly list: string | null;
}

/** Headers that the Model Context Protocol requires of clients. */
export const ofMcp = { accept: 'application/json, text/event-stream' } as const;

const all: readonly DescribedEndpoint[] = [
  ...unlistedEndpoints,
  ...endpoints,
  ...hostEndpoints,
  ...builtInEndpoints,
];

/** Every endpoint that a service with the built-in extensions has. */
export const plans: readonly Plan[] = all.flatMap((endpoint) =>
  endpoint.paths.map((path) => planOf(endpoint, path)),
);

/** The rows that the tables lack or do not need. */
export function gaps(): readonly string[] {
  const found: string[] = [];
  const known = new Set(plans.map(({ operation }) => operation));
  for (const endpoint of all) {
    for (const path of endpoint.paths) {
      const operation = operationOf(endpoint, path);
      for (const name of namesIn(path)) {
        if (valueOf(operation, name) === undefined && fixedIn(path, name) === undefined) {
          found.push(`${operation}: what does ${name} of the path stand for?`);
        }
      }
      for (const name of queryOf(endpoint)) {
        if (queriedOf(operation, name) === undefined && !neutralParameters.has(name)) {
          found.push(`${operation}: what can ${name} of the query name?`);
        }
      }
      const isNamed = operation in bodies || ofTheService.has(operation);
      const isNeedless = unnamed.has(operation);
      if (endpoint.body !== undefined && !isNamed && !isNeedless) {
        found.push(`${operation}: which body names the things of a neighbour?`);
      }
    }
  }
  const rows = [...Object.keys(bodies), ...Object.keys(neededQueries), ...ofTheService, ...unnamed];
  for (const row of [...rows, ...furtherBodies.map(([operation]) => operation)]) {
    if (!known.has(row)) found.push(`${row}: there is no such endpoint`);
  }
  return found;
}

/** Endpoints whose bodies name nothing. */
const unnamed: ReadonlySet<string> = new Set(['POST /oauth/token', 'POST /ext/mcp_http/handshake']);

function planOf(endpoint: DescribedEndpoint, path: string): Plan {
  const operation = operationOf(endpoint, path);
  const method = endpoint.method.toUpperCase();
  const names = namesIn(path);
  const namesThings = names.some((name) => valueOf(operation, name) !== undefined);
  const needed = neededQueries[operation];
  const pathFor = (things: Things, query = needed ?? ''): string => {
    const filled = path.replaceAll(/:(\w+)/g, (_, name: string) => {
      const value = valueOf(operation, name)?.(things) ?? fixedIn(path, name) ?? name;
      return encodeURIComponent(value);
    });
    return query === '' ? filled : `${filled}?${query}`;
  };
  const attempts = (things: Things, me: string): readonly Attempt[] => {
    const made: Attempt[] = [];
    const body = bodies[operation]?.(things, me);
    const headers = operation === 'POST /ext/mcp_http/mcp' ? { headers: ofMcp } : {};
    const given = { ...headers, ...(body === undefined ? {} : { body }) };
    if (namesThings || body !== undefined) made.push({ method, path: pathFor(things), ...given });
    for (const [row, further] of furtherBodies) {
      if (row === operation)
        made.push({ method, path: pathFor(things), ...headers, body: further(things, me) });
    }
    for (const name of queryOf(endpoint)) {
      const value = queriedOf(operation, name)?.(things);
      const query = name === 'as_of' && namesThings ? `as_of=${new Date().toISOString()}` : null;
      const filter = value === undefined ? query : `${name}=${encodeURIComponent(value)}`;
      if (filter === null) continue;
      const whole = needed === undefined ? filter : `${needed}&${filter}`;
      made.push({ method, path: pathFor(things, whole), ...given });
    }
    return made;
  };
  const isFixed = names.every((name) => fixedIn(path, name) !== undefined);
  const reads = method === 'GET' && isFixed && !namesThings && needed === undefined;
  const needsQuery = queryOf(endpoint).includes('ids');
  const fixed = path.replaceAll(/:(\w+)/g, (_, name: string) => fixedIn(path, name) ?? name);
  const isLive =
    method === 'GET' &&
    Object.values(endpoint.responses).some(
      ({ contentMediaType }) => contentMediaType === 'text/event-stream',
    );
  const isOfService = ofTheService.has(operation);
  const takesNamespace = queryOf(endpoint).includes('namespace');
  const list = reads && !needsQuery ? fixed : null;
  const canName =
    namesThings ||
    operation in bodies ||
    queryOf(endpoint).some((name) => queriedOf(operation, name) !== undefined);
  return { operation, isLive, takesNamespace, isOfService, canName, attempts, list };
}

/** What a query parameter of an endpoint means; undefined for one that names nothing. */
function queriedOf(operation: string, name: string) {
  return queryParameters[`${operation} ${name}`] ?? queryParameters[name];
}

function operationOf({ method }: DescribedEndpoint, path: string): string {
  return `${method.toUpperCase()} ${path.replaceAll(/:(\w+)/g, '{$1}')}`;
}

function namesIn(path: string): readonly string[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);
}

function fixedIn(path: string, name: string): string | undefined {
  const [, value] =
    Object.entries(fixedParameters).find(
      ([place]) => path.includes(place) && place.endsWith(`:${name}`),
    ) ?? [];
  return value;
}

function valueOf(operation: string, name: string) {
  return pathParameters[`${operation} ${name}`] ?? pathParameters[name];
}

function queryOf({ query }: DescribedEndpoint): readonly string[] {
  return Object.keys((query?.['properties'] ?? {}) as object);
}
