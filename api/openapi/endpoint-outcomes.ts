import type { Endpoint } from '../endpoint.ts';
import type { Examples } from './examples.ts';
import { errorStatuses, type ErrorCode } from '../errors.ts';

/** An endpoint as clients see it. */
export type DescribedEndpoint = Omit<Endpoint, 'handle'> & {
  /** Default: the service's own examples for the operation id. */
  readonly examples?: Examples;
};

/** Whether the OpenAPI description lists an endpoint. Endpoints that only return errors are not listed. */
export const isPublished = ({ responses }: DescribedEndpoint): boolean =>
  Object.keys(responses).some((status) => Number(status) < 400);

/** Whether it is a command. Its response then has the position of its event. */
export const isCommand = ({ method }: DescribedEndpoint): boolean => method !== 'get';

/** Errors that any request may get. */
const always: readonly ErrorCode[] = [
  'bad_request',
  'uri_too_long',
  'rate_limit_exceeded',
  'headers_too_large',
  'internal_error',
  'unavailable',
];

const ofBodies: readonly ErrorCode[] = [
  'request_timeout',
  'payload_too_large',
  'unsupported_media_type',
];

/** The errors that an endpoint may return, by status. */
export function refusalsOf(endpoint: DescribedEndpoint): readonly ErrorCode[] {
  const { method, paths, scopes, ifMatch, refusals = [] } = endpoint;
  const codes = new Set<ErrorCode>([...always, ...refusals]);
  if (scopes !== null) codes.add('unauthorized').add('forbidden');
  const namesNamespace = endpoint.query?.properties?.['namespace'] !== undefined;
  if (namesNamespace || paths[0].split('/').some(isIdentifier)) codes.add('not_found');
  if (isCommand(endpoint)) codes.add('conflict');
  if (method === 'post' || method === 'put') for (const code of ofBodies) codes.add(code);
  if (ifMatch === true) codes.add('precondition_failed');
  return [...codes].sort((one, other) => errorStatuses[one] - errorStatuses[other]);
}

/** Whether a path segment is an id parameter, as in {@link Endpoint.paths}. */
export const isIdentifier = (segment: string): boolean => /^:(?!extension_id$).*id$/.test(segment);
