/** Replaces a secret. */
const HIDDEN = '[hidden]';

/** Maximum depth of logged fields. Deeper values and cycles are shown as an ellipsis. */
const MAX_DEPTH = 6;

/** Names of secret fields, at any depth and in any spelling. */
const secretName =
  /secret|passw|passphrase|token|authori[sz]ation|cookie|credential|jwt|api[-_]?key|private[-_]?key/i;

/** Secrets inside strings: a bearer token, a signed token, the user part of an address. */
const secretTexts: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [/\bbearer\s+[\w.~+/=-]+/gi, `Bearer ${HIDDEN}`],
  [/\beyJ[\w-]{4,}\.[\w-]+\.[\w-]*/g, HIDDEN],
  [/(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/?#@]*(?:@[^\s/?#@]*)*@/gi, `$1${HIDDEN}@`],
];

/**
 * A value that may be logged: plain JSON, errors with their causes, and no secrets, neither under a secret name nor inside
 * a string.
 */
export function redacted(value: unknown): unknown {
  try {
    return clean(value, 0);
  } catch {
    // Reading the value may run an extension's code, which may throw.
    return '[unreadable]';
  }
}

/** A string without the secrets that can be recognised by their form. */
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
      // Not representable in JSON: bigint, symbol, function.
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

/** An error with its own fields (such as `code`), message, stack and cause. */
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
