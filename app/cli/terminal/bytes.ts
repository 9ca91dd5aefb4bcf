/** A size for people. `14.2 MiB` */
export function bytes(count: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  const place = count < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(count) / 10));
  return `${Number((count / 1024 ** place).toPrecision(3))} ${units[place] ?? ''}`;
}
