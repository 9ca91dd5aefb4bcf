import type { ApiClient } from '../support/api-client.ts';
import { found } from '../support/signals.ts';
import type { CreatedTask } from './killing/kill-tasks.ts';
import type { Ledger } from './ledger.ts';

const states: Readonly<Record<string, string>> = {
  RunSucceeded: 'succeeded',
  RunFailed: 'failed',
  RunCanceled: 'canceled',
  RunSkipped: 'skipped',
};

/** The HTTP interface and the log agree on the runs and their number. */
export async function faultsOfResponses(
  client: ApiClient,
  ledger: Ledger,
  tasks: readonly CreatedTask[],
): Promise<string[]> {
  const wanted = new Map(ledger.runs().map(({ id, end }) => [id, states[end?.type ?? ''] ?? 'on']));
  const faults: string[] = [];
  for (const query of ['', 'state=skipped&']) {
    for (const item of await allRuns(client, query, ledger.head)) {
      const id = item['id'] as string;
      const state = wanted.get(id);
      if (item['state'] !== state)
        faults.push(`run ${id} is ${state}, but shown as ${String(item['state'])}`);
      wanted.delete(id);
    }
  }
  faults.push(...[...wanted].map(([id, state]) => `run ${id} (${state}) is not listed`));
  for (const task of tasks) {
    const { json, text } = await found(async () => {
      const answer = await client.get(`/task/${task.id}/stats?after=${ledger.head}`);
      return answer.status === 200 ? answer : undefined;
    });
    const succeeded = ledger
      .runs()
      .filter(
        ({ request, end }) => request.data.task_id === task.id && end?.type === 'RunSucceeded',
      );
    if (json['successful_runs'] !== succeeded.length || json['total_runs'] !== succeeded.length) {
      faults.push(`${task.name} has ${succeeded.length} runs, the statistics say ${text}`);
    }
  }
  return faults;
}

async function allRuns(
  client: ApiClient,
  query: string,
  after: string,
): Promise<Readonly<Record<string, unknown>>[]> {
  const items: Readonly<Record<string, unknown>>[] = [];
  for (let cursor = ''; ;) {
    const { status, json, text } = await client.get(
      `/runs?${query}limit=200&after=${after}${cursor}`,
    );
    if (status !== 200) throw new Error(`the runs are not listed: ${status} ${text}`);
    items.push(...(json['items'] as Readonly<Record<string, unknown>>[]));
    const next = json['next_cursor'] as string | null;
    if (next === null) return items;
    cursor = `&cursor=${encodeURIComponent(next)}`;
  }
}
