import type { Row } from './refusal-table.ts';

/** Invalid values of paging parameters. */
export const pages: NonNullable<Row['queries']> = [
  ['limit=0', 'limit'],
  ['limit=201', 'limit'],
  ['limit=ten', 'limit'],
  ['limit=1.5', 'limit'],
  ['limit=', 'limit'],
  ['limit=5&limit=6', 'limit'],
  ['offset=-1', 'offset'],
  ['offset=Infinity', 'offset'],
  ['offset=1e300', 'offset'],
  ['after=nowhere', 'after'],
  ['after=', 'after'],
];

/** Invalid cursors. */
export const cursors: NonNullable<Row['queries']> = [
  ['cursor=nonsense', 'cursor'],
  ['cursor=NQ', 'cursor'],
  ['cursor=e30', 'cursor'],
  [`cursor=${Buffer.from('["x descending",["a"],"b"]').toString('base64url')}`, 'cursor'],
];

/** A string of a given length. */
export const long = (length: number): string => 'x'.repeat(length);
