import { existsSync, linkSync, renameSync } from 'node:fs';

/** What file systems without hard links say of one. */
const WITHOUT_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']);

/** Gives a file a name that is free; it may keep its own beside. @throws the system's error, `EEXIST` where it is taken */
export function putWhereNothingIs(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    if (!WITHOUT_LINKS.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
    // Whoever takes the name between the two loses it: no more can be had there.
    if (existsSync(to)) throw Object.assign(new Error(`${to} exists`), { code: 'EEXIST' });
    renameSync(from, to);
  }
}
