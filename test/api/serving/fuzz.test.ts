import { expect } from 'chai';
import fc from 'fast-check';
import { toIso } from '../../../domain/clock.ts';
import type { JsonObject } from '../../../domain/json.ts';
import type { ReceivedResponse } from '../../support/api-client.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { plainTask } from '../plain-task.ts';
import { randomRequests, type KnownIds } from './random-requests.ts';
import { longVersions } from '../../support/left-out.ts';

const long = longVersions();
const REQUESTS = long ? 20_000 : 1_000;
/** Milliseconds; checked only when nothing else is measured at the same time. */
const MAX_RESPONSE_MS = 1_000;

describe('random requests, made from the published description', () => {
  const api = useRunningApi();

  it(`get ${String(REQUESTS)} responses as declared, and never an internal error`, async function () {
    this.timeout(long ? 1_800_000 : 120_000);
    const { client } = api().admin;
    const document = (await client.get('/openapi.json')).json as JsonObject;
    const known = await idsOfEachKind();
    const statuses = new Map<number, number>();
    const slow: string[] = [];
    let longest = 0;
    const property = fc.asyncProperty(randomRequests(document, known), async (request) => {
      const { method, path, raw, headers } = request;
      const body = raw === undefined ? {} : { raw };
      // The client checks each response against the endpoint's declaration.
      const timed = async () => {
        const begun = performance.now();
        const answer = await client.send(method, path, { headers, ...body });
        return { answer, took: performance.now() - begun };
      };
      const { answer, took } = await timed();
      if (long && took > MAX_RESPONSE_MS) {
        // The machine may be busy: a slow request must be slow again.
        slow.push(`${method} ${path}: ${String(Math.round(took))} ms`);
        expect((await timed()).took, 'milliseconds').to.be.lessThan(MAX_RESPONSE_MS);
      }
      longest = Math.max(longest, took);
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      expect(answer.status, answer.text.slice(0, 1000)).to.be.lessThan(500);
      const signingIn = /^\/(agents\/auth|oauth|auth)\//.test(path);
      expect(answer.status === 401 && !signingIn, 'the token is no longer accepted').to.equal(
        false,
      );
      learn(known, answer);
    });
    await fc.assert(property, { numRuns: REQUESTS, endOnFailure: true });
    if (long) console.log({ longest, slow, statuses });
    const succeeded = [...statuses].filter(([status]) => status < 300);
    const good = succeeded.reduce((sum, [, count]) => sum + count, 0);
    // Guards against a test in which almost every request is refused early.
    expect(good / REQUESTS).to.be.greaterThan(0.2);
    expect([...statuses.keys()]).to.include.members([200, 400, 404, 409]);
  });

  /** Excludes the caller's own id, because a request could take its secret or scopes away. */
  async function idsOfEachKind(): Promise<KnownIds> {
    const { client } = api().admin;
    const agent = await client.post('/agents', { name: 'other', scopes: ['tasks:read'] });
    const owner = agent.textAt('id');
    const task = await client.post('/tasks', plainTask(owner));
    const path = `/tasks/${task.textAt('id')}`;
    const run = await client.post(`${path}/run_now`);
    const now = api().clock.now();
    const span = { from: toIso(now - 86_400_000), to: toIso(now) };
    const backfill = await client.post(`${path}/backfill`, span);
    const known: KnownIds = { agent: [owner], task: [], run: [], backfill: [] };
    for (const answer of [task, run, backfill]) learn(known, answer);
    return known;
  }
});

/** Ids kept of each kind: with few of them, requests meet the same ones repeatedly. */
const MAX_IDS = 50;

/** Remembers the ids that a response created. */
function learn(known: KnownIds, answer: ReceivedResponse): void {
  const [, resource = '', id] = (answer.headers.location ?? '').split('/');
  const made: readonly (readonly [keyof KnownIds, unknown])[] = [
    ['agent', resource === 'agents' ? id : undefined],
    ['task', resource === 'tasks' ? id : undefined],
    ['backfill', resource === 'backfills' ? id : undefined],
    ['run', answer.at('details.run_id')],
  ];
  for (const [kind, each] of made) {
    if (typeof each === 'string' && known[kind].length < MAX_IDS) known[kind].push(each);
  }
}
