import { eventually } from './signals.ts';

/** Resources that keep the process alive, by kind (`Timeout`, `TCPSocketWrap`, …), with their number. */
export type Resources = ReadonlyMap<string, number>;

/**
 * What keeps the process alive. Takes a turn of the event loop first, as mocha starts its own timer for
 * a hook or test only once that has returned its promise; without it that timer would look like a
 * leak. Timers and sockets that were unreferenced do not count.
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

/** What is there now and was not before, in words: `2 Timeout, 1 TCPServerWrap`; empty when nothing. */
export function leaked(before: Resources, now: Resources = count()): string {
  return [...now]
    .map(([kind, count]) => ({ kind, more: count - (before.get(kind) ?? 0) }))
    .filter(({ kind, more }) => more > 0 && !passing.has(kind))
    .map(({ kind, more }) => `${String(more)} ${kind}`)
    .join(', ');
}

/** Requests under way that end by themselves, this check's own turn of the event loop among them. */
const passing: ReadonlySet<string> = new Set(['Immediate', 'TickObject']);

/**
 * Waits (at most 2 s: sockets take some turns to close) until nothing is open beyond what was; else
 * rejects with an error that lists what is.
 */
export async function expectNothingLeftOpen(before: Resources): Promise<void> {
  await eventually(
    () => {
      const more = leaked(before);
      if (more !== '') throw new Error(`still open: ${more}`);
    },
    { limitMs: 2_000, what: 'everything opened by the test to be closed' },
  );
}

/**
 * Called inside a `describe`: each of its tests fails when it leaves a timer, a socket, a server or a
 * child process open. Call it before the hooks that open things, as `afterEach` hooks run in the order
 * of their making: register the closing hooks first, or close in the test itself.
 */
export function leavesNothingOpen(): void {
  let before: Resources = new Map();
  beforeEach(async () => {
    before = await openResources();
  });
  afterEach(() => expectNothingLeftOpen(before));
}
