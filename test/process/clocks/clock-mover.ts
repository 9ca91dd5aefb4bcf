import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../../support/project-root.ts';
import type { ServiceSettings } from '../../support/service-process.ts';

/** A way to set the clock of a single process. */
export interface ClockMover {
  /** Environment in which the process is started. */
  readonly settings: ServiceSettings;
  /** Sets the process's offset from the machine's clock, in milliseconds. */
  set(offset: number): void;
}

/** By a module that the process loads first. @param directory for the file with the offset */
export function moverOfDates(directory: string): ClockMover {
  const file = join(directory, 'clock');
  const set = (offset: number): void => writeFileSync(file, String(offset));
  set(0);
  const preload = join(projectRoot, 'test/process/clocks/moved-clock.mjs');
  return { settings: { TEST_CLOCK_FILE: file, NODE_OPTIONS: `--import=${preload}` }, set };
}

/** The path of Debian's package libfaketime. */
const library = ['x86_64', 'aarch64']
  .map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path));

/**
 * By libfaketime, which sets all of the process's clocks but the monotonic ones. Undefined if it is
 * not installed.
 */
export function moverOfSystemTime(directory: string): ClockMover | undefined {
  if (library === undefined) return undefined;
  const file = join(directory, 'faketime');
  const set = (offset: number): void => {
    writeFileSync(file, `${offset < 0 ? '-' : '+'}${Math.abs(offset / 1000)}`);
  };
  set(0);
  const settings = {
    LD_PRELOAD: library,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: '1',
    DONT_FAKE_MONOTONIC: '1',
  };
  return { settings, set };
}
