import type { ApiClient } from '../../test/support/api-client.ts';

/** Reads over some connections. */
export interface ReadStatistics {
  readonly succeeded: number;
  readonly failed: number;
  /** Milliseconds. */
  readonly p95: number;
  readonly slowest: number;
}

/** The paths to read, in turn. */
const PATHS = ['/runs?limit=20', '/tasks?limit=20', '/stats/summary?days=7', '/runs?state=failed'];
const READERS = 2;

/** Reads repeatedly while some work is done. */
export async function readWhile(
  client: ApiClient,
  work: () => Promise<void>,
): Promise<ReadStatistics> {
  const took: number[] = [];
  let failed = 0;
  let isDone = false;
  const reader = async (): Promise<void> => {
    for (let n = 0; !isDone; n += 1) {
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
    isDone = true;
    await readers;
  }
  took.sort((a, b) => a - b);
  const p95 = took[Math.floor(took.length * 0.95)] ?? 0;
  return { succeeded: took.length - failed, failed, p95, slowest: took.at(-1) ?? 0 };
}

/** `3,214 reads, all succeeded; 95 % within 12 ms, the slowest 40 ms` */
export function describeReads({ succeeded, failed, p95, slowest }: ReadStatistics): string {
  const count = `${(succeeded + failed).toLocaleString('en')} reads`;
  const how = failed === 0 ? 'all succeeded' : `${failed} failed`;
  return `${count}, ${how}; 95 % within ${p95.toFixed(1)} ms, the slowest ${slowest.toFixed(0)} ms`;
}
