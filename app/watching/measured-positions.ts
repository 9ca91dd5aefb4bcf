import type { Positions } from '../../api/dependencies.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { PositionWaiter } from '../../projections/reading/position-waiter.ts';

/** Waits for views, and measures how long each wait takes (`read_wait_seconds`). */
export function measuredPositions(
  positions: PositionWaiter,
  telemetry: Pick<Telemetry, 'observe'>,
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
