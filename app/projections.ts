import { agentsProjection } from '../projections/agents.ts';
import { auditProjection } from '../projections/audit.ts';
import { backfillsProjection } from '../projections/backfills.ts';
import { dueProjection } from '../projections/due.ts';
import { publishedProjection } from '../projections/published.ts';
import type { Projection } from '../projections/read-model.ts';
import { runsProjection } from '../projections/runs.ts';
import { statisticsProjection } from '../projections/statistics.ts';
import { tasksProjection } from '../projections/tasks.ts';
import { topicsProjection } from '../projections/topics.ts';
import { webhooksProjection } from '../projections/webhooks.ts';

/** Every view of the service. Each takes documents of its own kind alone, which the type can't say. */
export const projections = [
  agentsProjection,
  tasksProjection,
  runsProjection,
  dueProjection,
  topicsProjection,
  publishedProjection,
  statisticsProjection,
  backfillsProjection,
  webhooksProjection,
  auditProjection,
] as unknown as readonly Projection[];
