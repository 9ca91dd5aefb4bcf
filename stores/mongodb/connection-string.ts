const DEFAULT_DATABASE = 'svc';

/**
 * Options that set write concern, read concern or read preference, in lower case; the adapters decide these. Not
 * `retryWrites`: some compatible servers require `retryWrites=false`.
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

/** The database named by a connection string. `new URL` rejects a replica set's list of hosts. */
export function databaseOf(url: string): string {
  const path = /^mongodb(?:\+srv)?:\/\/[^/?]*\/([^?]+)/.exec(url)?.[1];
  return path === undefined ? DEFAULT_DATABASE : decodeURIComponent(path);
}

/**
 * A connection string without {@link CONCERNS}. The driver would merge them into the options it is given, and rejects
 * `maxStalenessSeconds` together with the primary preference.
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
