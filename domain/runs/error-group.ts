import { sha256 } from '../ids.ts';
import { wellFormed } from '../pipeline/well-formed.ts';

/** The most characters of a group's text, and the most characters that are read of a message. */
const MAX_LENGTH = 200;
const MAX_READ = 2000;

/** Parts that differ between messages of one cause, each with its placeholder. Earlier patterns win. */
const changing: readonly (readonly [pattern: RegExp, mark: string])[] = [
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '<id>'],
  [/\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?/gi, '<time>'],
  [/\b(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?\b/g, '<address>'],
  [/\b[0-9A-HJKMNP-TV-Z]{26}\b/g, '<id>'],
  [/\b(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{8,}\b/gi, '<id>'],
];

const unit = '(?:ms|s|sec|seconds?|min|minutes?|h|hours?|days?|bytes?|[KMG]i?B|%)';
const number = new RegExp(
  `(?<![A-Za-z_\\d])\\d+(?:[.,]\\d+)*(?:(?=(\\s?${unit})(?!\\w))|(?!\\w))`,
  'g',
);
/** An HTTP status code, which distinguishes causes. */
const status = /^[45]\d\d$/;

/** Messages of failed runs that differ only in ids, times, addresses and amounts. */
export interface ErrorGroup {
  /** Derived from the text; 16 hexadecimal digits. */
  readonly id: string;
  /** The first line of the messages, with `<id>`, `<time>`, `<address>` and `<n>`; at most 200 characters. */
  readonly text: string;
}

/** The group of a message. Numbers from 400 to 599 without a unit stay, because they may be HTTP status codes. */
export function errorGroupOf(message: string): ErrorGroup {
  const line = message.slice(0, MAX_READ).trim().split('\n', 1)[0] ?? '';
  const marked = changing.reduce((text, [pattern, mark]) => text.replace(pattern, mark), line);
  const numbered = marked.replace(number, (found, itsUnit?: string) =>
    itsUnit === undefined && status.test(found) ? found : '<n>',
  );
  const text = wellFormed(numbered.replace(/\s+/g, ' ').slice(0, MAX_LENGTH));
  return { id: sha256(text).slice(0, 16), text };
}
