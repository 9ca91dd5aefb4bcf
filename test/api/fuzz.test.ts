import { expect } from 'chai';
import fc from 'fast-check';
import type { JsonObject } from '../../domain/json.ts';
import { useRunningApi } from '../support/running-api.ts';
import { plainTask } from './plain-task.ts';
import { randomRequests } from './random-requests.ts';

const long = process.env['SVC_TEST_LONG'] === '1';
const REQUESTS = long ? 20_000 : 1_000;
/** Milliseconds; looked at where nothing else is measured at the same time. */
const LONGEST = 1_000;

describe('random requests, made from the published description', () => {
  const api = useRunningApi();

  it(`are answered as declared, ${String(REQUESTS)} of them, and never by a fault of the service`, async function () {
    this.timeout(long ? 1_800_000 : 120_000);
    const { client } = api().admin;
    const document = (await client.get('/openapi.json')).json as JsonObject;
    const known = await idsOfEachKind();
    const statuses = new Map<number, number>();
    const slow: string[] = [];
    let longest = 0;
    const property = fc.asyncProperty(
      randomRequests(document, () => known),
      async (request) => {
        const { method, path, raw, headers } = request;
        const body = raw === undefined ? {} : { raw };
        // The client holds each answer to what the endpoint declares.
        const timed = async () => {
          const begun = performance.now();
          const answer = await client.send(method, path, { headers, ...body });
          return { answer, took: performance.now() - begun };
        };
        const { answer, took } = await timed();
        if (long && took > LONGEST) {
          // The machine may be busy with something else: what is slow by itself is slow again.
          slow.push(`${method} ${path}: ${String(Math.round(took))} ms`);
          expect((await timed()).took, 'milliseconds').to.be.lessThan(LONGEST);
        }
        longest = Math.max(longest, took);
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
        expect(answer.status, answer.text.slice(0, 1000)).to.be.lessThan(500);
        const signingIn = path.startsWith('/agents/auth/');
        expect(answer.status === 401 && !signingIn, 'the token counts no longer').to.equal(false);
        const made = answer.status === 201 ? answer.at('id') : undefined;
        if (typeof made === 'string' && known.length < 200) known.push(made);
      },
    );
    await fc.assert(property, { numRuns: REQUESTS, endOnFailure: true });
    if (long) console.log({ longest, slow, statuses });
    const succeeded = [...statuses].filter(([status]) => status < 300);
    const good = succeeded.reduce((sum, [, count]) => sum + count, 0);
    // Else they would all have been refused at the door.
    expect(good / REQUESTS).to.be.greaterThan(0.2);
    expect([...statuses.keys()]).to.include.members([200, 201, 202, 400, 404, 409]);
  });

  /** The caller's own id is not among them: it would take its own secret or scopes away. */
  async function idsOfEachKind(): Promise<string[]> {
    const { client } = api().admin;
    const other = await client.post('/agents', { name: 'other', scopes: ['tasks:read'] });
    const owner = other.textAt('id');
    const task = (await client.post('/tasks', plainTask(owner))).textAt('id');
    const run = (await client.post(`/tasks/${task}/run_now`)).textAt('details.run_id');
    return [owner, task, task, run];
  }
});
