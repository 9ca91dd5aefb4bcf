import { agentsProjection } from '../../projections/views/agents.ts';
import { apiKeysProjection } from '../../projections/views/api-keys.ts';
import { auditProjection } from '../../projections/views/audit.ts';
import { backfillsProjection } from '../../projections/views/backfills.ts';
import { dueProjection } from '../../projections/views/due.ts';
import { publishedProjection } from '../../projections/views/published.ts';
import type { Projection } from '../../projections/read-model.ts';
import { runsProjection } from '../../projections/views/runs.ts';
import { secretsProjection } from '../../projections/views/secrets.ts';
import { statisticsProjection } from '../../projections/views/statistics.ts';
import { tasksProjection } from '../../projections/views/tasks.ts';
import { topicsProjection } from '../../projections/views/topics.ts';
import { usageProjection } from '../../projections/views/usage.ts';
import { waitsProjection } from '../../projections/views/waits.ts';
import { webhooksProjection } from '../../projections/views/webhooks.ts';
import { toolsProjection, workersProjection } from '../../projections/views/workers.ts';

/** Every view of the service. Each takes only its own documents, which the type cannot say. */
export const projections = [
  agentsProjection,
  apiKeysProjection,
  tasksProjection,
  runsProjection,
  dueProjection,
  topicsProjection,
  publishedProjection,
  statisticsProjection,
  backfillsProjection,
  waitsProjection,
  webhooksProjection,
  workersProjection,
  toolsProjection,
  secretsProjection,
  usageProjection,
  auditProjection,
] as unknown as readonly Projection[];
