/** What stands where a secret was. */
const HIDDEN = '[hidden]';

/** How deep fields are shown; deeper ones, and circles, end in an ellipsis. */
const MAX_DEPTH = 6;

/** Names of fields whose values are secrets, wherever they stand and however they are spelt. */
const secretName =
  /secret|passw|passphrase|token|authori[sz]ation|cookie|credential|jwt|api[-_]?key|private[-_]?key/i;

/** Secrets inside text: a bearer's token, a signed token, the user's part of an address. */
const secretTexts: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [/\bbearer\s+[\w.~+/=-]+/gi, `Bearer ${HIDDEN}`],
  [/\beyJ[\w-]{4,}\.[\w-]+\.[\w-]*/g, HIDDEN],
  [/(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/?#@]*(?:@[^\s/?#@]*)*@/gi, `$1${HIDDEN}@`],
];

/**
 * A value as it may be logged: plain JSON, errors with their causes, and no secret, neither under a telling
 * name nor inside a text.
 */
export function redacted(value: unknown): unknown {
  try {
    return clean(value, 0);
  } catch {
    // Looking at it runs code of whoever made it: an extension, say, that throws what throws.
    return '[can not be shown]';
  }
}

/** A text without the secrets that can be told by their form. */
export function redactedText(text: string): string {
  let result = text;
  for (const [pattern, replacement] of secretTexts) result = result.replace(pattern, replacement);
  return result;
}

function clean(value: unknown, depth: number): unknown {
  switch (typeof value) {
    case 'string':
      return redactedText(value);
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'boolean':
    case 'undefined':
      return value;
    case 'object':
      return value === null ? null : cleanObject(value, depth);
    default:
      // What JSON has no place for: bigint, symbol, function.
      return String(value);
  }
}

function cleanObject(value: object, depth: number): unknown {
  if (depth >= MAX_DEPTH) return '…';
  if (value instanceof Error) return cleanError(value, depth);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (ArrayBuffer.isView(value)) return `${String(value.byteLength)} bytes`;
  if (Array.isArray(value)) return value.map((each) => clean(each, depth + 1));
  if (value instanceof Set) return [...value].map((each) => clean(each, depth + 1));
  const entries: Iterable<readonly [unknown, unknown]> =
    value instanceof Map ? value : Object.entries(value);
  return Object.fromEntries(
    [...entries].map(([name, each]) => {
      const text = String(name);
      const hide = secretName.test(text) && each !== null && each !== undefined;
      return [text, hide ? HIDDEN : clean(each, depth + 1)];
    }),
  );
}

/** An error's own fields (`code`, and what it carries) beside what it says, where, and why. */
function cleanError(error: Error, depth: number): unknown {
  const { name, message, stack, cause, ...own } = error;
  return {
    name,
    message: redactedText(message),
    ...(cleanObject(own, depth) as Record<string, unknown>),
    ...(stack === undefined ? {} : { stack: redactedText(stack) }),
    ...(cause === undefined ? {} : { cause: clean(cause, depth + 1) }),
  };
}
