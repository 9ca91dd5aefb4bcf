import { setFlagsFromString } from 'node:v8';

/**
 * After a while in which little was allocated V8 gives memory back by a full collection, and then by one or two more
 * directly after it, which find nothing: with 10,000 tasks each of them is a tenth of a second of processor. One is
 * enough.
 */
export function collectOnceWhenIdle(): void {
  setFlagsFromString(optionFor(process.versions.v8));
}

/**
 * The option is no part of V8's interface: that of Node 20 has it under another name than the later ones, by
 * `node --v8-options`. One that should drop it says so by a line on standard error.
 */
export function optionFor(v8Version: string): string {
  const isOfNode20 = Number.parseInt(v8Version, 10) < 12;
  return isOfNode20 ? '--memory-reducer-single-gc' : '--memory-reducer-gc-count=1';
}
