import { readFileSync } from 'node:fs';

/** package.json's version. */
export const version = (
  JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    readonly version: string;
  }
).version;
