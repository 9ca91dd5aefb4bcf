import { ScheduleError } from './schedule-error.ts';

/** A compiled topic pattern. */
export interface TopicPattern {
  /** Whether a topic matches. Work is at most segments × segments, whatever the pattern. */
  matches(topic: string): boolean;
}

/** Most segments of a pattern that are `#`, and most characters of patterns and topics. */
const MAX_LENGTH = 200;

/** Whether a text may be a topic: 1–200 of `[A-Za-z0-9_.:/-]`. */
export function isTopic(text: string): boolean {
  return /^[A-Za-z0-9_.:/-]{1,200}$/.test(text);
}

/**
 * What is wrong with a topic pattern; null when nothing is. Patterns are split by `.`; a segment is
 * `*` (one segment), `#` (any number of segments, also none) or literal text.
 */
export function topicPatternFault(pattern: string): string | null {
  if (pattern.length === 0) return 'a topic pattern is not empty';
  if (pattern.length > MAX_LENGTH) return `a topic pattern has at most ${MAX_LENGTH} characters`;
  for (const segment of pattern.split('.')) {
    if (segment === '*' || segment === '#') continue;
    if (/[*#]/.test(segment)) {
      return `the segment "${segment}": * and # stand for whole segments, split by dots`;
    }
    if (!/^[A-Za-z0-9_:/-]*$/.test(segment)) {
      return `the segment "${segment}" has a character outside A–Z a–z 0–9 _ . : / -`;
    }
  }
  return null;
}

/**
 * Compiles a topic pattern; null stands for `#`, every topic.
 * @throws ScheduleError (`schedule_expr`) saying which segment is wrong.
 */
export function compileTopicPattern(pattern: string | null): TopicPattern {
  const text = pattern ?? '#';
  const fault = topicPatternFault(text);
  if (fault !== null) throw new ScheduleError('schedule_expr', fault);
  const wanted = text.split('.');
  if (!wanted.includes('*') && !wanted.includes('#')) return { matches: (topic) => topic === text };
  if (text === '#') return { matches: () => true };
  return { matches: (topic) => matchSegments(wanted, topic.split('.')) };
}

/**
 * Greedy matching with one step back: after a `#`, only the latest one ever needs to take more
 * (as with `*` in file names), so there is no exponential search.
 */
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
