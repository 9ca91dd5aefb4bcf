import type { SlotShortageState } from '../../observability/health-rules.ts';
import type { ReadModel } from '../../projections/read-model.ts';
import { agentsProjection } from '../../projections/views/agents.ts';
import { tasksProjection } from '../../projections/views/tasks.ts';
import type { LiveMember } from '../../scheduler/coordination.ts';
import { slotShortage, slotUseIn } from '../../scheduler/runs/slots.ts';

/**
 * How long no worker of any process has had a free slot while runs were waiting, and the tasks whose runs hold the most
 * slots, with titles and owners' names. From heartbeats, so some seconds old.
 *
 * @param workers the live ones
 * @returns null while a worker has a free slot
 */
export async function shortageOf(
  workers: readonly LiveMember[],
  readModel: ReadModel,
): Promise<SlotShortageState | null> {
  const shortage = slotShortage(workers.map(({ about }) => slotUseIn(about)));
  if (shortage === null) return null;
  const holders = await Promise.all(
    shortage.holders.map(async (holder) => {
      const task = await readModel.get(tasksProjection, holder.task_id);
      const agent = await readModel.get(agentsProjection, holder.created_by);
      return {
        ...holder,
        task_title: task?.document.title ?? null,
        agent_name: agent?.document.name ?? null,
      };
    }),
  );
  return { ...shortage, holders };
}
