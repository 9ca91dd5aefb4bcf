import { readFileSync } from 'node:fs';

/** Seconds of processor time of all threads of a process; NaN except on Linux. */
export function cpuSecondsOf(pid: number): number {
  if (process.platform !== 'linux') return Number.NaN;
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** Resident memory of a process in MiB, mapped files included; NaN except on Linux. */
export function residentMiBOf(pid: number): number {
  return statusMiBOf(pid, 'VmRSS');
}

/** Anonymous memory of a process in MiB, without mapped files, which the system can reclaim; NaN except on Linux. */
export function anonymousMiBOf(pid: number): number {
  return statusMiBOf(pid, 'RssAnon');
}

/** A value of `/proc/<pid>/status` in MiB; see proc_pid_status(5). */
function statusMiBOf(pid: number, name: string): number {
  if (process.platform !== 'linux') return Number.NaN;
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) / 1024;
}
