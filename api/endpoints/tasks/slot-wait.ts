import type { JsonObject } from '../../../domain/json.ts';
import type { Coordination } from '../../../scheduler/coordination.ts';

/** The usage of slots in a worker's heartbeat, as `scheduler/runs/slots.ts` writes it. */
interface ReportedSlots {
  readonly slots: number;
  readonly taken: number;
  readonly full_since: string | null;
  readonly limits_reached?: readonly {
    readonly scope: 'agent' | 'namespace';
    readonly id: string;
    readonly taken: number;
    readonly limit: number;
  }[];
}

/**
 * The slot for which a run waits that is ready to start: one of its agent or namespace, or any slot. Based on
 * heartbeats, so the answer is a few seconds old.
 * @returns a clause such as `a slot of its agent: 8 of 8 in use`; null while a worker has, or may have, a slot for it
 * @throws CoordinationError
 */
export async function slotWait(
  coordination: Pick<Coordination, 'alive'>,
  { agent, namespace }: { readonly agent: string; readonly namespace: string },
): Promise<string | null> {
  const alive = await coordination.alive();
  const workers = alive.filter(({ about }) => isWorker(about)).map(({ about }) => slotsIn(about));
  const sums = new Map<string, { taken: number; limit: number }>();
  for (const use of workers) {
    if (use === null) return null;
    const reached = use.limits_reached?.find(
      ({ scope, id }) => id === (scope === 'agent' ? agent : namespace),
    );
    const full = use.full_since === null ? null : { taken: use.taken, limit: use.slots };
    const inTheWay = reached ?? full;
    if (inTheWay === null) return null;
    const whose = reached === undefined ? 'a slot' : `a slot of its ${reached.scope}`;
    const sum = sums.get(whose) ?? { taken: 0, limit: 0 };
    sums.set(whose, { taken: sum.taken + inTheWay.taken, limit: sum.limit + inTheWay.limit });
  }
  const words = [...sums].map(([what, { taken, limit }]) => `${what}: ${taken} of ${limit} in use`);
  return words.length === 0 ? null : words.join('; ');
}

const isWorker = ({ roles }: JsonObject): boolean =>
  Array.isArray(roles) && roles.includes('worker');

/** null for an older release, which does not report its slots. */
function slotsIn(about: JsonObject): ReportedSlots | null {
  const use = about['slots'];
  return typeof use === 'object' && use !== null && 'full_since' in use
    ? (use as unknown as ReportedSlots)
    : null;
}
