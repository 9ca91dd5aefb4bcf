/** An ISO timestamp without `T` and milliseconds: `2026-11-23 08:00:00Z`. */
export function shortTime(iso: string | null | undefined): string {
  return iso ? iso.replace('T', ' ').replace(/(:\d\d)\.\d+Z$/, '$1Z') : '';
}

/** As {@link shortTime}. @param none in place of null */
export const timeOr = (iso: string | null, none: string): string =>
  iso === null ? none : shortTime(iso);

/** A duration for a person: `0.013 s`, `4 min 5 s`, `2 h 3 min`. @param seconds null for none */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return '';
  if (seconds < 60) return `${Number(seconds.toPrecision(3))} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** The duration between two timestamps; empty if either is missing. */
export function between(from: string | null, to: string | null): string {
  return from === null || to === null ? '' : duration((Date.parse(to) - Date.parse(from)) / 1000);
}

/** A size for a person: `14.2 MiB`. */
export function bytes(count: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = count < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(count) / 10));
  return `${Number((count / 1024 ** power).toPrecision(3))} ${units[power] ?? ''}`;
}
