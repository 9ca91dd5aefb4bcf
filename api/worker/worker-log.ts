import type { LogLevel } from './job-service.ts';

/** Receives a worker's log messages. */
export type WorkerLog = (
  level: LogLevel,
  message: string,
  fields: Readonly<Record<string, unknown>>,
) => void;

/** Writes a line of JSON to standard error for each message, except at level `debug`. */
export const logToStderr: WorkerLog = (level, message, fields) => {
  if (level === 'debug') return;
  const line = { time: new Date().toISOString(), level, message, ...fields };
  process.stderr.write(`${JSON.stringify(line)}\n`);
};
