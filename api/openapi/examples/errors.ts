import type { ErrorCode } from '../../errors.ts';
import { eventId, taskId } from './values.ts';

const fault = { field: 'priority', issue: 'must be at most 9' };

const told: Readonly<Record<ErrorCode, readonly [message: string, details: object]>> = {
  bad_request: [`${fault.field}: ${fault.issue}`, { ...fault, issues: [fault] }],
  unauthorized: ['a bearer token is needed', { required_scopes: ['tasks:read'] }],
  forbidden: [
    'needs the scope tasks:write',
    { required_scopes: ['tasks:write'], granted_scopes: ['tasks:read'] },
  ],
  not_found: [`there is no task ${taskId}`, { resource: 'task', id: taskId }],
  request_timeout: ['the body did not arrive in time', {}],
  conflict: ['the task is canceled', { resource: 'task', id: taskId }],
  precondition_failed: ['the task is at revision 2, not 1', { expected: 1, actual: 2 }],
  payload_too_large: ['the body is too large', { limit: 1_048_576 }],
  uri_too_long: ['the URL is too long', { limit: 8192 }],
  unsupported_media_type: ['the body must be application/json', {}],
  rate_limit_exceeded: [
    'too many requests',
    { limit: 10_000, window: '60s', reset_at: '2026-11-23T08:01:00.000Z' },
  ],
  headers_too_large: ['there are too many headers', { limit: 200 }],
  internal_error: ['internal error', { error_type: 'TypeError' }],
  unavailable: ['the event log is unavailable', { component: 'stream_store' }],
  gateway_timeout: [
    'the extension has not answered',
    { extension_id: 'reports', limit_seconds: 30 },
  ],
};

/** The body of an error. */
export function errorExample(code: ErrorCode): object {
  const [message, details] = told[code];
  return { error: code, message, details, request_id: eventId };
}
