/** How to create a good key. */
export const KEY_REMEDY = 'create one with openssl rand -base64 32';

/** A random key of 32 bytes has about 30 different groups, even if it consists of decimal digits. */
const MIN_GROUPS = 16;

const MIN_DISTINCT = 6;

/** Words from examples, defaults and keyboard rows that people use as keys. */
const commonWords = [
  ...['changeit', 'changethis', 'changeme', 'change', 'replaceme', 'replace', 'placeholder'],
  ...['password', 'passphrase', 'passwort', 'secret', 'private', 'signing', 'token', 'tokens'],
  ...['default', 'example', 'sample', 'insecure', 'unsafe', 'dummy', 'development', 'production'],
  ...['openssl', 'rand', 'base64', 'hex', 'random', 'string', 'characters', 'bytes', 'byte'],
  ...['service', 'scheduler', 'scheduling', 'admin', 'super', 'test', 'jwt', 'key', 'your', 'must'],
  ...['qwertyuiop', 'qwertzuiop', 'asdfghjkl', 'zxcvbnm', 'yxcvbnm', 'qwerty', 'hello', 'world'],
  ...[
    'the',
    'very',
    'long',
    'this',
    'that',
    'and',
    'for',
    'with',
    'least',
    'please',
    'here',
    'such',
    'more',
    'set',
  ],
].sort((one, other) => other.length - one.length);

/**
 * Why a key is obviously weak, as the rest of a sentence about it; null if it is not. It finds repetitions, runs and
 * common words. It cannot prove that a key is random.
 */
export function keyWeakness(key: string): string | null {
  const bytes = Buffer.from(key, 'utf8');
  const distinct = new Set(bytes).size;
  if (distinct < MIN_DISTINCT) return `has only ${distinct} different bytes`;
  if (groups(bytes) < MIN_GROUPS) return 'repeats a pattern or counts up';
  const rest = withoutWords(key.toLowerCase());
  if (groups(Buffer.from(rest, 'utf8')) < MIN_GROUPS) return 'consists of common words';
  return null;
}

/** How many different groups of three bytes there are, without runs such as `abc`, `321` or `aaa`. */
function groups(bytes: Buffer): number {
  const seen = new Set<number>();
  for (let at = 2; at < bytes.length; at += 1) {
    const [first, second, third] = [bytes[at - 2] ?? 0, bytes[at - 1] ?? 0, bytes[at] ?? 0];
    const step = second - first;
    if (Math.abs(step) <= 1 && third - second === step) continue;
    seen.add((first << 16) | (second << 8) | third);
  }
  return seen.size;
}

function withoutWords(text: string): string {
  let rest = text;
  for (const word of commonWords) rest = rest.replaceAll(word, ' ');
  return rest.replaceAll(/[\s._-]+/g, '');
}
