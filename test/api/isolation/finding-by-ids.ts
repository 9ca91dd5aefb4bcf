import { expect } from 'chai';
import { comparable, leaksIn, steady } from './observing.ts';
import { ofMcp, plans, type Attempt } from './planned-attempts.ts';
import type { Pair } from './resident.ts';
import { phantoms, type Things } from './things.ts';
import { toolPlans } from './tool-attempts.ts';

/** Tests that requests about somebody else's things get the same response as those about things that never existed. */
export function itFindsNothingByIds(pair: () => Pair): void {
  for (const { operation, attempts, canName, isLive, isOfService } of plans) {
    // Endless streams have their own tests.
    if (isOfService || !canName || (isLive && !operation.includes('{id}'))) continue;
    it(`gets the same from ${operation} as for things that never existed`, async () => {
      const { me } = pair();
      await compare(pair(), (things) => attempts(things, me.owner.id));
    });
  }

  for (const { tool, calls } of toolPlans) {
    it(`gets the same from the tool ${tool} as for things that never existed`, async () => {
      const { me } = pair();
      await compare(pair(), (things) =>
        calls(things, me.owner.id).flatMap((parameters) => [
          { method: 'POST', path: '/ext/mcp_http/invoke', body: { tool, parameters } },
          {
            method: 'POST',
            path: '/ext/mcp_http/mcp',
            headers: ofMcp,
            body: {
              jsonrpc: '2.0',
              id: 1,
              method: 'tools/call',
              params: { name: tool, arguments: parameters },
            },
          },
        ]),
      );
    });
  }

  for (const path of ['/streams/', '/audit?stream=', '/events/export?stream=']) {
    it(`gets the same from ${path} for any stream as for one that never existed`, async () => {
      const { me, other } = pair();
      for (const stream of other.streams) {
        const never = stream.replaceAll(/[0-9a-f]{12}/g, (id) => [...id].reverse().join(''));
        const send = async (name: string) => {
          const answer = await me.owner.client.get(`${path}${encodeURIComponent(name)}`);
          return comparable(answer)
            .replaceAll(name, '<stream>')
            .replaceAll(encodeURIComponent(name), '<stream>');
        };
        expect(await send(stream), stream).to.equal(await send(never));
      }
    });
  }

  it('can no more use that namespace than one that never existed', async () => {
    const { me, other } = pair();
    const never = `never-${me.things.mark}`;
    for (const { operation, attempts, takesNamespace, list } of plans) {
      if (!takesNamespace) continue;
      const [first] = attempts(me.things, me.owner.id);
      const [verb = '', plain = ''] = operation.split(' ');
      const { method, path, ...options } = first ?? { method: verb, path: list ?? plain };
      const send = async (namespace: string): Promise<string> => {
        const named = `${path}${path.includes('?') ? '&' : '?'}namespace=${namespace}`;
        const answer = await me.owner.client.send(method, named, options);
        expect(answer.status, `${operation} ${answer.text}`).to.be.oneOf([403, 404]);
        return `${answer.status} ${steady(answer.text.replaceAll(namespace, '<namespace>'))}`;
      };
      expect(await send(other.namespace), operation).to.equal(await send(never));
    }
  });

  it('gets no response of another agent for its Idempotency-Key', async () => {
    const { me, other } = pair();
    const { topic, idempotencyKey } = other.things;
    const body = { topic, payload: { own: true }, source_agent_id: me.owner.id };
    const headers = { 'idempotency-key': idempotencyKey };
    const answer = await me.owner.client.post('/events', body, { headers });
    expect(answer.status, answer.text).to.equal(202);
    expect(answer.headers).not.to.have.property('idempotent-replayed');
    expect(leaksIn(answer.text, other.marks, topic)).to.deep.equal([]);
  });
}

async function compare(
  { me, other }: Pair,
  attemptsOn: (things: Things) => readonly Attempt[],
): Promise<void> {
  const never = phantoms(other.things);
  const phantomAttempts = attemptsOn(never);
  for (const [index, { method, path, ...options }] of attemptsOn(other.things).entries()) {
    const { client } = me.owner;
    const answer = await client.send(method, path, options);
    const sent = `${decodeURIComponent(path)} ${JSON.stringify(options.body)}`;
    const about = `${method} ${path} ${JSON.stringify(options.body)}: ${answer.text.slice(0, 2000)}`;
    expect(leaksIn(answer.text, other.marks, sent), about).to.deep.equal([]);
    const phantom = phantomAttempts[index];
    if (phantom === undefined) throw new Error(`${path} has no phantom`);
    const nothing = await client.send(method, phantom.path, {
      ...options,
      body: phantom.body,
    });
    expect(comparable(answer, other.things), about).to.equal(comparable(nothing, never));
  }
}
