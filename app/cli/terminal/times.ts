/** A timestamp of the service as a table shows it: without what is always the same. `2026-11-23 08:00:00Z`. */
export function shortTime(iso: string | null | undefined): string {
  return iso ? iso.replace('T', ' ').replace(/(:\d\d)\.\d+Z$/, '$1Z') : '';
}

/** A length of time in seconds, as short as it can be said. `0.013 s`, `4 min 5 s`, `2 h 3 min`. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return '';
  if (seconds < 60) return `${Number(seconds.toPrecision(3))} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** How long something took that began and ended; empty while it has not. */
export function between(from: string | null, to: string | null): string {
  return from === null || to === null ? '' : duration((Date.parse(to) - Date.parse(from)) / 1000);
}
