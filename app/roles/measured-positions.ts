import type { Positions } from '../../api/dependencies.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { PositionWaiter } from '../../projections/reading/position-waiter.ts';

/** How requests wait until a view has passed a position; how long that took is measured. */
export function measuredPositions(
  positions: Pick<PositionWaiter, 'known' | 'passed'>,
  telemetry: Telemetry,
): Positions {
  return {
    wait(projection, position, limit) {
      const waited = (seconds: number): void =>
        telemetry.observe('read_wait_seconds', seconds, { projection: projection.name });
      if (position <= positions.known(projection)) {
        waited(0);
        return true;
      }
      const begun = performance.now();
      return positions.passed(projection, position, limit).then(({ passed }) => {
        waited((performance.now() - begun) / 1000);
        return passed;
      });
    },
  };
}
