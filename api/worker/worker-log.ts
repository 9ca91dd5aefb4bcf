import type { LogLevel } from './job-service.ts';

/** Receives what a worker has to say about itself. */
export type WorkerLog = (
  level: LogLevel,
  message: string,
  fields: Readonly<Record<string, unknown>>,
) => void;

/** A line of JSON on standard error for each message, except those of the level `debug`. */
export const logToStderr: WorkerLog = (level, message, fields) => {
  if (level === 'debug') return;
  const line = { time: new Date().toISOString(), level, message, ...fields };
  process.stderr.write(`${JSON.stringify(line)}\n`);
};
