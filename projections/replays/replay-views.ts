import { decorated } from '../../domain/decorated.ts';
import type { JsonObject } from '../../domain/json.ts';
import { agentsProjection } from '../views/agents.ts';
import type { Projection, ReadModel } from '../read-model.ts';
import { runsProjection } from '../views/runs.ts';
import { statisticsProjection } from '../views/statistics.ts';
import { tasksProjection } from '../views/tasks.ts';

/** The views that can be made as of a moment. Each takes documents of its own kind alone, which the type can't say. */
export const replayable = [
  tasksProjection,
  runsProjection,
  statisticsProjection,
  agentsProjection,
] as unknown as readonly Projection[];

/**
 * A view under a name of its own, beside the one that follows the log: the same fold into other documents. Reads and
 * writers know it as any other projection, which is all that a view as of a moment needs.
 */
export function replayedAs<D extends JsonObject>(
  projection: Projection<D>,
  name: string,
): Projection<D> {
  return { ...projection, name: `${projection.name}_replay_${name}` };
}

/** A read model whose reads go to the views of a name; for reading alone. */
export function readModelOfReplay(readModel: ReadModel, name: string): ReadModel {
  return decorated(readModel, {
    get: (projection, key) => readModel.get(replayedAs(projection, name), key),
    find: (projection, query) => readModel.find(replayedAs(projection, name), query),
    count: (projection, filters) => readModel.count(replayedAs(projection, name), filters),
    list: (projection, query) => readModel.list(replayedAs(projection, name), query),
  });
}
