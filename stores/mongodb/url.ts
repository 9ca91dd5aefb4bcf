/** What the adapters read of a connection string themselves. */

const DEFAULT_DATABASE = 'svc';

/**
 * Options of a connection string that say how safely is written, and where and what is read: that is the adapters' to
 * say. In lower case, as drivers take them in any. Not `retryWrites`: compatible servers that number no writes, and say
 * that they are a replica set, refuse each one without `retryWrites=false`.
 */
const CONCERNS = new Set([
  'w',
  'wtimeout',
  'wtimeoutms',
  'journal',
  'j',
  'fsync',
  'readconcernlevel',
  'readpreference',
  'readpreferencetags',
  'maxstalenessseconds',
]);

/** The database that a connection string names. Not `new URL`: a replica set's hosts are a list. */
export function databaseOf(url: string): string {
  const path = /^mongodb(?:\+srv)?:\/\/[^/?]*\/([^?]+)/.exec(url)?.[1];
  return path === undefined ? DEFAULT_DATABASE : decodeURIComponent(path);
}

/**
 * A connection string without what it says of write concern, read concern and read preference. The driver puts each of
 * those into what it is given as an option, in place of what that says (`journal=false`, `wtimeoutMS`), and refuses the
 * preference of the primary together with `maxStalenessSeconds`.
 */
export function withoutConcerns(url: string): string {
  const start = url.indexOf('?');
  if (start === -1) return url;
  const kept = url
    .slice(start + 1)
    .split('&')
    .filter((option) => !CONCERNS.has((option.split('=', 1)[0] ?? '').toLowerCase()));
  return url.slice(0, start) + (kept.length > 0 ? `?${kept.join('&')}` : '');
}
