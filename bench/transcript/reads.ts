import type { ApiClient } from '../../test/support/api-client.ts';

/** Reads that were made one after the other over some connections. */
export interface ReadsMade {
  readonly answered: number;
  readonly failed: number;
  /** Milliseconds. */
  readonly p95: number;
  readonly slowest: number;
}

/** What is read, in turn: a list, one deep in it, a search, statistics. */
const PATHS = ['/runs?limit=20', '/tasks?limit=20', '/stats/summary?days=7', '/runs?state=failed'];
const READERS = 2;

/** Reads all the time while something is done. */
export async function readWhile(client: ApiClient, work: () => Promise<void>): Promise<ReadsMade> {
  const took: number[] = [];
  let failed = 0;
  let isOver = false;
  const reader = async (): Promise<void> => {
    for (let n = 0; !isOver; n += 1) {
      const begun = performance.now();
      const { status } = await client.get(PATHS[n % PATHS.length] ?? '');
      took.push(performance.now() - begun);
      if (status !== 200) failed += 1;
    }
  };
  const readers = Promise.all(Array.from({ length: READERS }, reader));
  try {
    await work();
  } finally {
    isOver = true;
    await readers;
  }
  took.sort((a, b) => a - b);
  const p95 = took[Math.floor(took.length * 0.95)] ?? 0;
  return { answered: took.length - failed, failed, p95, slowest: took.at(-1) ?? 0 };
}

/** `3,214 reads, all answered; 95 % within 12 ms, the slowest 40 ms` */
export function inWords({ answered, failed, p95, slowest }: ReadsMade): string {
  const count = `${(answered + failed).toLocaleString('en')} reads`;
  const how = failed === 0 ? 'all answered' : `${failed} not answered`;
  return `${count}, ${how}; 95 % within ${p95.toFixed(1)} ms, the slowest ${slowest.toFixed(0)} ms`;
}
