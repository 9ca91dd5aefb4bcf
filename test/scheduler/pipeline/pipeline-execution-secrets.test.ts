import { expect } from 'chai';
import { ToolError } from '../../../scheduler/tools/tool.ts';
import { execute, recorder } from './pipeline-execution-harness.ts';

describe('a secret in a pipeline', () => {
  const secrets = { TOKEN: 'hush-hush' };
  const fail = (args: unknown): never => {
    throw new ToolError(`bad ${String(args)}`, { retryable: false });
  };

  it('reaches the tool, and is masked in results, errors and logs', async () => {
    const tool = recorder((args, call) => {
      call.log('info', `got ${JSON.stringify(args)}`, { args });
      return { [`said ${String(args)}`]: args };
    });
    const { ends, output } = await execute({
      secrets,
      pipeline: [
        { uses: 'tool', with: '${secrets.TOKEN}' },
        { uses: 'echo', with: '${steps.step_0}' },
        { uses: 'throws', with: '${secrets.TOKEN}', on_error: 'continue' },
        { uses: 'tool', with: '${steps.step_2.error}' },
      ],
      tools: { tool: tool.run, throws: fail },
    });
    expect(tool.calls.map(({ args }) => args)).to.deep.equal(['hush-hush', 'bad ***']);
    expect(JSON.stringify([ends, output])).not.to.include('hush');
    expect(ends[0]?.result).to.deep.equal({ 'said ***': '***' });
    expect(ends[2]?.error).to.equal('bad ***');
  });

  it('fails its step at once if it has expired, without a retry', async () => {
    const tool = recorder();
    const { result, ends } = await execute({
      secrets,
      secretLimits: { expiresAt: Date.parse('2026-03-01T09:00:00Z') },
      pipeline: [
        { uses: 'tool', with: 'before' },
        { uses: 'tool', with: '${secrets.TOKEN}', max_retries: 3 },
        { uses: 'tool', with: 'after' },
      ],
      tools: { tool: tool.run },
    });
    expect(tool.calls.map(({ args }) => args)).to.deep.equal(['before']);
    expect(result).to.include({ kind: 'failed', retryable: false });
    expect(ends[1]?.error).to.match(
      /^the secret TOKEN expired at 2026-03-01T09:00:00.000Z: set it/,
    );
  });

  it('is masked in the error of the run', async () => {
    const { result } = await execute({
      secrets,
      pipeline: [{ uses: 'throws', with: '${secrets.TOKEN}' }],
      tools: { throws: fail },
    });
    expect(result).to.include({ kind: 'failed', error: 'bad ***' });
  });

  it('is masked when the step that used it ran in another process', async () => {
    const first = await execute({
      secrets,
      pipeline: [{ uses: 'reveal', with: '${secrets.TOKEN}' }],
    });
    const { ends } = await execute({
      secrets,
      finished: first.ends,
      pipeline: [{ uses: 'reveal', with: '${secrets.TOKEN}' }, { uses: 'leak' }],
      tools: { leak: () => 'the server says hush-hush' },
    });
    expect(ends.map(({ result }) => result)).to.deep.equal(['the server says ***']);
  });

  it('is masked for tools whose arguments end up in events', async () => {
    const tool = recorder();
    await execute({
      secrets,
      pipeline: [{ uses: 'tool', with: { key: '${secrets.TOKEN}' } }],
      tools: {
        tool: {
          description: '',
          schema: { 'x-secret': true },
          withoutSecrets: true,
          run: tool.run,
        },
      },
    });
    expect(tool.calls[0]?.args).to.deep.equal({ key: '***' });
  });
});
