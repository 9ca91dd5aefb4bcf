import { eventually } from './signals.ts';

/** Resources that keep the process alive, by kind (`Timeout`, `TCPSocketWrap`, …), with their number. */
export type Resources = ReadonlyMap<string, number>;

/**
 * The resources that keep the process alive. Takes a turn of the event loop first, because mocha
 * starts its own timer only after a hook or test has returned its promise. Unreferenced timers and
 * sockets do not count.
 */
export async function openResources(): Promise<Resources> {
  await new Promise<void>((resolve) => setImmediate(resolve));
  return count();
}

function count(): Resources {
  const counts = new Map<string, number>();
  for (const kind of process.getActiveResourcesInfo()) {
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return counts;
}

/** The new resources, in words: `2 Timeout, 1 TCPServerWrap`; empty for none. */
export function leaked(before: Resources, now: Resources = count()): string {
  return [...now]
    .map(([kind, count]) => ({ kind, more: count - (before.get(kind) ?? 0) }))
    .filter(({ kind, more }) => more > 0 && !passing.has(kind))
    .map(({ kind, more }) => `${String(more)} ${kind}`)
    .join(', ');
}

/** Requests that end by themselves, including this check's own turn of the event loop. */
const passing: ReadonlySet<string> = new Set(['Immediate', 'TickObject']);

/**
 * Waits until no new resources are open, at most 10 s, because sockets take some turns to close.
 * Otherwise rejects with an error that lists them.
 */
export async function expectNothingLeftOpen(before: Resources): Promise<void> {
  await eventually(
    () => {
      const more = leaked(before);
      if (more !== '') throw new Error(`still open: ${more}`);
    },
    { limitMs: 10_000, what: 'everything opened by the test to be closed' },
  );
}

/**
 * Called inside a `describe`: each of its tests fails if it leaves a timer, a socket, a server or a
 * child process open. Call it before the hooks that open things. `afterEach` hooks run in the order
 * of their registration, so register closing hooks first, or close in the test itself.
 */
export function leavesNothingOpen(): void {
  let before: Resources = new Map();
  beforeEach(async () => {
    before = await openResources();
  });
  afterEach(() => expectNothingLeftOpen(before));
}
