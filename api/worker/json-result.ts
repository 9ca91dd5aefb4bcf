import { PermanentError } from './tool-errors.ts';

/** The largest result in bytes: the service's limit of a request, minus some room for the other fields. */
export const MAX_RESULT_BYTES = 1_000_000;

const encoder = new TextEncoder();

/** The size in bytes of a value as JSON. */
export function bytesOf(value: unknown): number {
  return encoder.encode(JSON.stringify(value)).length;
}

/**
 * The result of a tool as a plain JSON copy, which later changes of the object do not affect. If a tool returns
 * nothing, the result is null.
 * @throws PermanentError for anything that JSON would change or leave out
 */
export function jsonResult(tool: string, value: unknown): unknown {
  let text: string;
  try {
    text = JSON.stringify(value ?? null, refuseOthers);
  } catch (error) {
    const why = error instanceof Error ? error.message.split('\n', 1)[0] : String(error);
    throw new PermanentError(`${tool}: the result must be JSON: ${why}`, { cause: undefined });
  }
  const { length } = encoder.encode(text);
  if (length <= MAX_RESULT_BYTES) return JSON.parse(text) as unknown;
  const most = `at most ${MAX_RESULT_BYTES} bytes of JSON`;
  throw new PermanentError(
    `${tool}: the result must have ${most}, got ${length}; store it elsewhere and return its address`,
  );
}

function refuseOthers(key: string, value: unknown): unknown {
  const place = key === '' ? '' : ` at "${key}"`;
  if (typeof value === 'function' || typeof value === 'symbol' || typeof value === 'bigint') {
    throw new TypeError(`got a ${typeof value}${place}`);
  }
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new TypeError(`got ${value}${place}`);
  }
  if (value instanceof Map || value instanceof Set) {
    throw new TypeError(`got a ${value.constructor.name}${place}`);
  }
  return value;
}
