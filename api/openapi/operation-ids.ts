/** Longest id of an operation; a further path of an endpoint adds `Alias` to one. */
const LONGEST = 35;

/**
 * The id of an operation that has been given none: `get`, `/mail/outbox/:message` becomes `getMailOutboxByMessage`.
 * Words at its end are left out where it would be too long, and the length of the whole takes their place.
 */
export function operationIdFrom(method: string, path: string): string {
  const words = path
    .split('/')
    .map((segment) => (segment.startsWith(':') ? `by_${segment.slice(1)}` : segment))
    .flatMap((segment) => segment.split(/[^A-Za-z0-9]+/))
    .filter((word) => word !== '')
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1));
  const whole = method + words.join('');
  if (whole.length <= LONGEST) return whole;
  const suffix = String(whole.length);
  return whole.slice(0, LONGEST - suffix.length) + suffix;
}

/** The id of the operation at one of the paths of an endpoint. @param index of the path; 0 is the first */
export function operationIdAt(operationId: string, index: number): string {
  return index === 0 ? operationId : `${operationId}Alias${index === 1 ? '' : index}`;
}
