import { readFileSync } from 'node:fs';

/** Seconds of processor time that a process has used in all its threads; NaN but on Linux. */
export function cpuSecondsOf(pid: number): number {
  if (process.platform !== 'linux') return Number.NaN;
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** Memory that a process holds now, in MiB; NaN but on Linux. */
export function residentMiBOf(pid: number): number {
  if (process.platform !== 'linux') return Number.NaN;
  const found = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(found?.[1]) / 1024;
}
