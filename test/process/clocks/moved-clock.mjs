/*
 * Loaded first by a process of the service, in each of its threads. Adds to `Date` the milliseconds
 * in the file that `TEST_CLOCK_FILE` names. Timers are unaffected, as on a machine whose clock is
 * set.
 */
import { readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';

const file = process.env.TEST_CLOCK_FILE;
const RealDate = globalThis.Date;
const realNow = RealDate.now.bind(RealDate);
let offset = 0;
let readAt = Number.NEGATIVE_INFINITY;

function now() {
  if (performance.now() - readAt > 5) {
    readAt = performance.now();
    offset = Number(readFileSync(file, 'utf8'));
  }
  return realNow() + offset;
}

globalThis.Date = class Date extends RealDate {
  constructor(...given) {
    if (given.length === 0) super(now());
    else super(...given);
  }

  static now() {
    return now();
  }
};
