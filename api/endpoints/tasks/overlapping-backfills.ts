import { overlaps } from '../../../domain/backfills/backfill-commands.ts';
import type { Instant } from '../../../domain/clock.ts';
import type { ReadModel } from '../../../projections/read-model.ts';
import {
  backfillsOf,
  backfillsProjection,
  type BackfillDocument,
} from '../../../projections/views/backfills.ts';

/** How many backfills of a task are examined, the latest first. */
const MAX_EARLIER = 100;

/** The task's latest backfills that overlap a span, the latest first. @throws ReadModelError */
export async function overlappingBackfills(
  readModel: ReadModel,
  taskId: string,
  span: { readonly from: Instant; readonly to: Instant },
): Promise<readonly BackfillDocument[]> {
  const query = { ...backfillsOf(taskId), limit: MAX_EARLIER };
  const found = await readModel.find(backfillsProjection, query);
  return found.map(({ document }) => document).filter((backfill) => overlaps(backfill, span));
}
