import type { Endpoint } from '../endpoint.ts';
import type { Examples } from './examples.ts';
import { errorStatuses, type ErrorCode } from '../errors.ts';

/** An endpoint as far as clients know it. */
export type DescribedEndpoint = Omit<Endpoint, 'handle'> & {
  /** Left out: those of the service's own, by the operation's id. */
  readonly examples?: Examples;
};

/** Whether it is an operation: what only answers with errors is none, but is answered as it is declared. */
export const isPublished = ({ answers }: DescribedEndpoint): boolean =>
  Object.keys(answers).some((status) => Number(status) < 400);

/** Whether it may change something, and is thus answered with the position of its event. */
export const isCommand = ({ method }: DescribedEndpoint): boolean => method !== 'get';

/** What any request may meet, whatever it asks for. */
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

/** The errors that an endpoint may answer, by rising status. */
export function refusalsOf(endpoint: DescribedEndpoint): readonly ErrorCode[] {
  const { method, paths, scopes, ifMatch, refusals = [] } = endpoint;
  const codes = new Set<ErrorCode>([...always, ...refusals]);
  if (scopes !== null) codes.add('unauthorized').add('forbidden');
  if (paths[0].split('/').some(isIdentifier)) codes.add('not_found');
  if (isCommand(endpoint)) codes.add('conflict');
  if (method === 'post' || method === 'put') for (const code of ofBodies) codes.add(code);
  if (ifMatch === true) codes.add('precondition_failed');
  return [...codes].sort((one, other) => errorStatuses[one] - errorStatuses[other]);
}

/** Whether a part of a path stands for an id, as {@link Endpoint.paths} writes them. */
export const isIdentifier = (segment: string): boolean => /^:(?!extension_id$).*id$/.test(segment);
