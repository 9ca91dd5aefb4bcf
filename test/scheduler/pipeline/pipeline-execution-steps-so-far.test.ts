import { expect } from 'chai';
import { execute, recorder } from './pipeline-execution-harness.ts';

describe('the results so far', () => {
  const first = { id: 'a', uses: 'echo', with: { x: 1 } };
  const last = { id: 'c', uses: 'echo', with: { y: 2 } };
  const soFar = { a: { x: 1 } };
  const cases: readonly (readonly [what: string, step: object, result: unknown])[] = [
    ['as an argument', { uses: 'echo', with: { all: '${steps}' } }, { all: soFar }],
    ['as the arguments', { uses: 'echo', with: '${steps}' }, soFar],
    [
      'within others',
      { uses: 'echo', with: '${[{all: steps}, steps.a]}' },
      [{ all: soFar }, { x: 1 }],
    ],
    ['by a condition', { uses: 'echo', with: '${params || steps}' }, soFar],
    ['by the root', { uses: 'echo', with: '${$.{all: steps}}' }, { all: soFar }],
    ['by a variable', { uses: 'echo', with: '${let $all = steps in [$all]}' }, [soFar]],
    ['as all that there is', { uses: 'echo', with: '${* | [2]}' }, soFar],
    ['as an input', { uses: 'transform', with: { input: '${steps}', expression: '@' } }, soFar],
    ['as items', { uses: 'echo', for_each: '${[steps]}', with: '${item}' }, [soFar]],
    ['as items of a list', { uses: 'echo', for_each: ['${steps}'], with: '${item}' }, [soFar]],
  ];
  for (const [what, step, result] of cases) {
    it(`do not change for a step that reads them ${what}`, async () => {
      const went = await execute({ pipeline: [first, { id: 'b', ...step }, last] });
      expect(went.result.kind).to.equal('succeeded');
      expect(JSON.parse(JSON.stringify(went.output['steps']))).to.deep.equal({
        a: { x: 1 },
        b: result,
        c: { y: 2 },
      });
    });
  }

  it('do not change for a running tool while other steps end', async () => {
    const tool = recorder((args) => args);
    const slow = { id: 'b', uses: 'slow', with: '${steps}' };
    const pipeline = [first, { parallel: [slow, last] }, { uses: 'echo', with: '${steps.c}' }];
    const { output } = await execute({ pipeline, tools: { slow: tool.run } });
    expect(output['steps']).to.deep.include({ b: soFar, step_2: { y: 2 } });
  });

  it('are copied into a log line, and cut if they are too large', async () => {
    const pipeline = [
      first,
      { parallel: [{ uses: 'log', with: { message: 'm', data: '${steps}' } }, last] },
      { id: 'long', uses: 'echo', with: 'x'.repeat(10_000) },
      { uses: 'log', with: { message: 'm', data: '${steps}' } },
    ];
    const { ends } = await execute({ pipeline });
    const data = ends.flatMap(({ log }) => log.map((line) => line.data));
    expect(data[0]).to.deep.equal(soFar);
    expect(JSON.stringify(data[1])).to.have.length.lessThan(2001).and.include('"truncated":true');
  });
});

describe('the data of a log line', () => {
  it('are copied when the line is logged', async () => {
    const list = [1];
    const tool = recorder((_args, call) => {
      call.log('info', 'm', { list });
      for (let more = 0; more < 5000; more += 1) list.push(more);
    });
    const { ends } = await execute({ pipeline: [{ uses: 'tool' }], tools: { tool: tool.run } });
    expect(ends[0]?.log[0]?.data).to.deep.equal({ list: [1] });
  });

  it('fail the step if they are circular, also with secrets to mask', async () => {
    const circle: Record<string, unknown> = {};
    circle['self'] = circle;
    const tool = recorder((_args, call) => call.log('info', 'm', circle));
    const { result } = await execute({
      pipeline: [{ uses: 'tool', with: '${secrets.KEY}' }],
      secrets: { KEY: 'hush' },
      tools: { tool: tool.run },
    });
    expect(result).to.have.property('error').that.includes('contains itself');
  });
});
