import { readFileSync } from 'node:fs';

/** Seconds of processor time that a process has used in all its threads; NaN but on Linux. */
export function cpuSecondsOf(pid: number): number {
  if (process.platform !== 'linux') return Number.NaN;
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** Memory that a process holds now, in MiB, with the pages of files that it has mapped; NaN but on Linux. */
export function residentMiBOf(pid: number): number {
  return statusMiBOf(pid, 'VmRSS');
}

/**
 * Memory that is a process's alone, in MiB: without the pages of files that it has mapped, which the system takes back
 * when it likes; NaN but on Linux.
 */
export function ownMiBOf(pid: number): number {
  return statusMiBOf(pid, 'RssAnon');
}

/** A figure of `/proc/<pid>/status` that is in kB there; see proc_pid_status(5). */
function statusMiBOf(pid: number, name: string): number {
  if (process.platform !== 'linux') return Number.NaN;
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) / 1024;
}
