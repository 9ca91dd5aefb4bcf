import { decorate } from '../../domain/decorate.ts';
import type { JsonObject } from '../../domain/json.ts';
import { agentsProjection } from '../views/agents.ts';
import type { Projection, ReadModel } from '../read-model.ts';
import { runsProjection } from '../views/runs.ts';
import { statisticsProjection } from '../views/statistics.ts';
import { tasksProjection } from '../views/tasks.ts';

/**
 * The views that can be built as of a position. Each view takes only its own documents, but the type cannot express
 * that.
 */
export const replayable = [
  tasksProjection,
  runsProjection,
  statisticsProjection,
  agentsProjection,
] as unknown as readonly Projection[];

/** A view under the name of a replay, beside the live view: the same fold into other documents. */
export function replayedAs<D extends JsonObject>(
  projection: Projection<D>,
  name: string,
): Projection<D> {
  return { ...projection, name: `${projection.name}_replay_${name}` };
}

/** A read model that reads the views of a replay. Read-only. */
export function readModelOfReplay(readModel: ReadModel, name: string): ReadModel {
  return decorate(readModel, {
    get: (projection, key) => readModel.get(replayedAs(projection, name), key),
    find: (projection, query) => readModel.find(replayedAs(projection, name), query),
    count: (projection, filters) => readModel.count(replayedAs(projection, name), filters),
    values: (projection, query) => readModel.values(replayedAs(projection, name), query),
    list: (projection, query) => readModel.list(replayedAs(projection, name), query),
  });
}
