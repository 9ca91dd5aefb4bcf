/** Input of the watchdog's thread. */
export interface WatchdogData {
  /** Two 32-bit numbers, at {@link BEATS} and {@link DEBUGGED}. */
  readonly beats: SharedArrayBuffer;
  /** Real paths of the extensions' folders. */
  readonly extensions: readonly WatchedFolder[];
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent';
}

export interface WatchedFolder {
  readonly id: string;
  readonly folder: string;
}

/** Its report, once the event loop continues. */
export interface Blocked {
  readonly extension: string;
  readonly seconds: number;
  /** `spin (own.mjs:3)`: a function, and its file in the extension's folder. */
  readonly where: string;
}

/** Incremented by the event loop. */
export const BEATS = 0;
/** 1 while a debugger listens. */
export const DEBUGGED = 1;

/** Interval of the event loop's heartbeat. Milliseconds. */
export const BEAT = 200;
