import { idOf } from '../../../domain/streams.ts';
import type { ReceivedResponse } from '../../support/api-client.ts';
import type { Things } from './things.ts';

const UUID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** Headers that differ between requests. */
const changing = new Set(['date', 'x-request-id', 'keep-alive', 'connection', 'content-length']);
const isChanging = (name: string): boolean =>
  changing.has(name) || name.startsWith('x-ratelimit') || name.endsWith('-position');

/** A response without the parts that always differ, and with names in place of the values of things. */
export function comparable(answer: ReceivedResponse, things?: Things): string {
  const headers = Object.entries(answer.headers)
    .filter(([name]) => !isChanging(name))
    .map(([name, value]) => `${name}: ${String(value)}`)
    .sort();
  const shown = steady([String(answer.status), ...headers, answer.text].join('\n'), things);
  // Each created record has its own id.
  return answer.status === 201 || answer.status === 202 ? shown.replaceAll(UUID, '<id>') : shown;
}

/**
 * A string without ids of requests and instants.
 * @param things whose values are replaced by their names
 */
export function steady(text: string, things?: Things): string {
  const { namespace, ...named } = things ?? {};
  const values = Object.entries(named);
  const longestFirst = values.sort(([, one], [, other]) => other.length - one.length);
  // Its name may be a common word, such as `default`.
  const placed = new RegExp(`(namespace |"id":")${namespace ?? '-'}(?=["\\s])`, 'g');
  let shown = text.replaceAll(placed, '$1<namespace>');
  for (const [name, value] of longestFirst) shown = shown.replaceAll(value, `<${name}>`);
  return shown
    .replaceAll(/(request_id[\\":]+)[^"\\]+/g, '$1…')
    .replaceAll(/(event_id[\\":]+)[^"\\]+/g, '$1…')
    .replaceAll(/\d{13}-(?=\d)/g, '<milliseconds>-')
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, '<instant>');
}

/**
 * The parts of a string that show that it is about somebody else's things.
 * @param sent the request, which may be echoed
 */
export function leaksIn(text: string, marks: Iterable<string>, sent = ''): readonly string[] {
  const lower = text.toLowerCase();
  // The name of a stream derives from an id that was sent.
  const isSent = (mark: string): boolean => sent.includes(mark) || sent.includes(idOf(mark));
  return [...marks].filter((mark) => lower.includes(mark.toLowerCase()) && !isSent(mark));
}
