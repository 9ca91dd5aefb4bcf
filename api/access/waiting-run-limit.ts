import type { SharedLimit } from '../../domain/vocabulary.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { HttpError } from '../errors.ts';
import { requireEventRoom, type QuotaParts } from './count-quotas.ts';
import { countPayload, requireRunRate } from './quota-gate.ts';

/** The seconds after which a rejected client may try again. */
const RETRY_AFTER = '10';

type Parts = QuotaParts & Pick<ApiDependencies, 'jobs' | 'settings'>;

interface Owner {
  readonly agent: string;
  readonly namespace: string;
}

/**
 * Checks that an agent may have more runs, by its limits and the quotas of its namespace.
 * @param owner the agent that would own the runs
 * @param params of the runs, which count as payload
 * @throws HttpError 429; RefusalError `STATE_CONFLICT`
 */
export async function requireMoreRuns(parts: Parts, owner: Owner, params: unknown): Promise<void> {
  requireRoom(parts, owner);
  await requireEventRoom(parts, owner.namespace);
  await requireRunRate(parts, owner.namespace);
  await countPayload(parts, owner.namespace, params);
}

/**
 * Checks that an agent may have more runs. Runs count from their request to their end. In a process without workers,
 * the check starts shortly after the first request.
 * @param owner the agent that would own the runs
 * @throws HttpError 429 if the agent or its namespace has reached its limit of unfinished runs
 */
function requireRoom(
  { jobs, settings, telemetry }: Pick<Parts, 'jobs' | 'settings' | 'telemetry'>,
  owner: Owner,
): void {
  const { waitingRunsPerAgent, waitingRunsPerNamespace } = settings.sharing;
  if (waitingRunsPerAgent === 0 && waitingRunsPerNamespace === 0) return;
  const unfinished = jobs.unfinishedRuns(owner);
  if (unfinished === null) return;
  const refuse = (limit: SharedLimit, whose: string, most: number, setting: string): HttpError => {
    telemetry.count('limit_refusals_total', { limit });
    const message = `${whose} has ${most} unfinished runs, the most it may have: wait, or cancel some`;
    const headers = { 'Retry-After': RETRY_AFTER };
    return new HttpError('rate_limit_exceeded', message, { limit: most, setting }, headers);
  };
  if (waitingRunsPerAgent > 0 && unfinished.agent >= waitingRunsPerAgent) {
    const setting = 'SVC_WAITING_RUNS_PER_AGENT';
    throw refuse('waiting_runs_agent', 'this agent', waitingRunsPerAgent, setting);
  }
  if (waitingRunsPerNamespace > 0 && unfinished.namespace >= waitingRunsPerNamespace) {
    const setting = 'SVC_WAITING_RUNS_PER_NAMESPACE';
    throw refuse('waiting_runs_namespace', 'this namespace', waitingRunsPerNamespace, setting);
  }
}
