/** What the watchdog's thread is given. */
export interface WatchdogData {
  /** Two numbers of 32 bits, at {@link BEATS} and {@link DEBUGGED}. */
  readonly beats: SharedArrayBuffer;
  /** Where the code of extensions lies: real paths. */
  readonly extensions: readonly WatchedFolder[];
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';
}

export interface WatchedFolder {
  readonly id: string;
  readonly folder: string;
}

/** What it says, once the event loop goes on. */
export interface Blocked {
  readonly extension: string;
  readonly seconds: number;
  /** `spin (own.mjs:3)`: a function, and its file in the extension's folder. */
  readonly where: string;
}

/** Counted up by the event loop whenever it comes round. */
export const BEATS = 0;
/** 1 while a debugger listens. */
export const DEBUGGED = 1;

/** A beat of the event loop; milliseconds. */
export const BEAT = 200;
