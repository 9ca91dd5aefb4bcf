/** Maximum length of an operation id. Further paths of an endpoint append `Alias`. */
const MAX_LENGTH = 35;

/**
 * Makes an operation id: `get`, `/mail/outbox/:message` becomes `getMailOutboxByMessage`. An id that is too long is cut,
 * and its full length is appended.
 */
export function operationIdFrom(method: string, path: string): string {
  const words = path
    .split('/')
    .map((segment) => (segment.startsWith(':') ? `by_${segment.slice(1)}` : segment))
    .flatMap((segment) => segment.split(/[^A-Za-z0-9]+/))
    .filter((word) => word !== '')
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1));
  const whole = method + words.join('');
  if (whole.length <= MAX_LENGTH) return whole;
  const suffix = String(whole.length);
  return whole.slice(0, MAX_LENGTH - suffix.length) + suffix;
}

/** The operation id for one of an endpoint's paths. @param index of the path, from 0 */
export function operationIdAt(operationId: string, index: number): string {
  return index === 0 ? operationId : `${operationId}Alias${index === 1 ? '' : index}`;
}
