import { expressionError } from './schedule-error.ts';

/** A compiled topic pattern. */
export interface TopicPattern {
  /** Whether a topic matches. The work is at most pattern segments × topic segments. */
  matches(topic: string): boolean;
}

/** The most characters of a topic pattern. */
const MAX_LENGTH = 200;

/** Whether a string is a valid topic: 1–200 of `[A-Za-z0-9_.:/-]`. */
export function isTopic(text: string): boolean {
  return /^[A-Za-z0-9_.:/-]{1,200}$/.test(text);
}

/**
 * The fault of a topic pattern; null if the pattern is valid. A pattern is split by `.` into segments: `*` (one
 * segment), `#` (any number of segments, including none) or a literal.
 */
export function topicPatternIssue(pattern: string): string | null {
  if (pattern.length === 0) return 'a topic pattern must not be empty';
  if (pattern.length > MAX_LENGTH)
    return `a topic pattern must have at most ${MAX_LENGTH} characters`;
  for (const segment of pattern.split('.')) {
    if (segment === '*' || segment === '#') continue;
    if (/[*#]/.test(segment)) {
      return `in the segment "${segment}", * or # is not the whole segment`;
    }
    if (!/^[A-Za-z0-9_:/-]*$/.test(segment)) {
      return `the segment "${segment}" has a character outside A–Z a–z 0–9 _ . : / -`;
    }
  }
  return null;
}

/**
 * Compiles a topic pattern; null means `#`, every topic.
 * @throws ScheduleError (`schedule_expr`) naming the invalid segment
 */
export function compileTopicPattern(pattern: string | null): TopicPattern {
  const text = pattern ?? '#';
  const fault = topicPatternIssue(text);
  if (fault !== null) throw expressionError(fault);
  const wanted = text.split('.');
  if (!wanted.includes('*') && !wanted.includes('#')) return { matches: (topic) => topic === text };
  if (text === '#') return { matches: () => true };
  return { matches: (topic) => matchSegments(wanted, topic.split('.')) };
}

/** Greedy matching that backtracks only to the latest `#`, as `*` in file names allows. */
function matchSegments(wanted: readonly string[], given: readonly string[]): boolean {
  let w = 0;
  let g = 0;
  let hash = -1;
  let taken = 0;
  while (g < given.length) {
    const segment = wanted[w];
    if (segment === '#') {
      hash = w++;
      taken = g;
    } else if (segment !== undefined && (segment === '*' || segment === given[g])) {
      w++;
      g++;
    } else if (hash >= 0) {
      w = hash + 1;
      g = ++taken;
    } else {
      return false;
    }
  }
  while (wanted[w] === '#') w++;
  return w === wanted.length;
}
