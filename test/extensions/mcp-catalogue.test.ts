import { expect } from 'chai';
import type { Request } from 'express';
import type { ToolView } from '../../extensions/contract.ts';
import { Catalogue } from '../../extensions/mcp_http/catalogue.ts';

describe('the catalogue of tools', () => {
  const warned: string[] = [];
  const nothing = (): void => {};

  beforeEach(() => void warned.splice(0));

  const caller = {
    agentId: 'a',
    namespace: 'default',
    name: 'a',
    scopes: ['tasks:write'],
    admin: false,
  };

  /** A catalogue with one registered tool, whose calls time out after 20 ms. */
  function withTool(tool: Pick<ToolView, 'name' | 'call'>): Catalogue {
    const about = { description: 'A tool', schema: { type: 'object' } };
    const view: ToolView = { ...about, check: nothing, ...tool };
    const parts = {
      core: {
        request: () => Promise.reject(new Error('no tool here sends a request to the service')),
      },
      log: {
        debug: nothing,
        info: nothing,
        warn: (message: string) => void warned.push(message),
        error: nothing,
      },
      toolRegistry: {
        registerTool: nothing,
        listTools: () => [view],
        getTool: (name: string) => (name === view.name ? view : undefined),
        noteRefusal: () => Promise.resolve(),
      },
    };
    return new Catalogue(parts, 20);
  }

  // Only requests to the service need it, and no tool here sends one.
  const request = {} as Request;
  const waiting = { caller, request, signal: new AbortController().signal };

  it('times out a call of a tool that never ends', async () => {
    const endless = withTool({ name: 'endless', call: () => new Promise(nothing) });
    const { success, result } = await endless.invoke('endless', {}, waiting);
    expect(success).to.equal(false);
    expect(result['message']).to.match(/timeout/);
    expect(warned).to.deep.equal(['a tool failed']);
  });

  it('cuts the message of a failed tool after a complete character', async () => {
    const said = `x${'😀'.repeat(3000)}`;
    const failing = withTool({ name: 'failing', call: () => Promise.reject(new Error(said)) });
    const { result } = await failing.invoke('failing', {}, waiting);
    expect(result['message']).to.equal(said.slice(0, 3999));
  });

  it('stops waiting for a tool whose caller has disconnected', async () => {
    const endless = withTool({ name: 'endless', call: () => new Promise(nothing) });
    const gone = {
      ...waiting,
      signal: AbortSignal.abort(new Error('the caller has disconnected')),
    };
    const thrown = await endless.invoke('endless', {}, gone).catch((error: unknown) => error);
    expect(thrown).to.be.an('error').with.property('message', 'the caller has disconnected');
    expect(warned).to.deep.equal([]);
  });

  it('does not let a registered tool replace one of its own', async () => {
    const taken = withTool({ name: 'run_task', call: () => Promise.resolve('taken') });
    const names = taken.list(caller).map(({ name }) => name);
    expect(names.filter((name) => name.startsWith('run_task'))).to.deep.equal([
      'run_task',
      'run_task_2',
    ]);
    const fault = await taken.invoke('run_task', {}, waiting).catch((error: unknown) => error);
    expect(fault).to.include({ code: 'bad_request' });
  });
});
