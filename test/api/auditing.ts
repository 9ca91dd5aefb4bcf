import { expect } from 'chai';
import type { RunningApi, SignedIn } from '../support/running-api.ts';

/** An item of `GET /audit`. */
export interface Item {
  readonly position: string;
  readonly at: string;
  readonly actor: string;
  readonly actor_name: string | null;
  readonly task_title: string | null;
  readonly subject: string | null;
  readonly source: string;
  readonly action: string;
  readonly type: string;
  readonly stream: string;
  readonly revision: number;
  readonly reason: string | null;
  readonly correlation_id: string;
  readonly outcome: string;
  readonly refusal: { readonly status: number; readonly path: string | null; count: number } | null;
}

/** Audit items, read once the audit includes everything that has been done so far. */
export async function auditOf(
  api: RunningApi,
  auditor: SignedIn,
  query: string,
): Promise<readonly Item[]> {
  await api.refusals.flush();
  const after = await api.store.head();
  const answer = await auditor.client.get(`/audit?after=${after}&${query}`);
  expect(answer.status, answer.text).to.equal(200);
  return answer.at('items') as readonly Item[];
}
