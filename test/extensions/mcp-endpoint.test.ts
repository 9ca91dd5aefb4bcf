import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { expect } from 'chai';
import { version } from '../../app/version.ts';
import { morning, namesOf, registered, serviceTools, useToolService } from './tool-protocol.ts';

describe('the endpoint of the Model Context Protocol', () => {
  const service = useToolService();
  const clients: Client[] = [];

  async function connect(token: string | null): Promise<Client> {
    const client = new Client({ name: 'test', version: '1.0.0' });
    const headers = token === null ? {} : { authorization: `Bearer ${token}` };
    const url = new URL(`${service().admin.client.url}/ext/mcp_http/mcp`);
    const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers } });
    clients.push(client);
    await client.connect(transport);
    return client;
  }

  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()));
  });

  it("lets the SDK's own client list and call tools, and refuses invalid calls", async () => {
    const client = await connect(service().admin.client.token);
    expect(client.getServerVersion()).to.include({ name: 'mcp_http', version });
    expect(client.getServerCapabilities()).to.deep.equal({ tools: { listChanged: false } });
    expect(client.getInstructions()).to.include('preview_schedule');
    const { tools } = await client.listTools();
    expect(namesOf(tools)).to.include.members([...serviceTools, ...registered]);
    const marked = tools.filter(({ annotations }) => annotations?.readOnlyHint === true);
    expect(namesOf(marked)).to.include('list_tasks').and.not.include('run_task');
    const created = await client.callTool({ name: 'create_task', arguments: morning });
    expect(created.isError, JSON.stringify(created)).to.equal(false);
    const { task_id } = created.structuredContent as { readonly task_id: string };
    const got = await client.callTool({ name: 'get_task', arguments: { task_id } });
    expect(got.structuredContent).to.include({ id: task_id, title: morning.title });
    const [content] = got.content as readonly { readonly text: string }[];
    expect(JSON.parse(content?.text ?? '')).to.deep.equal(got.structuredContent);
    const greeting = { name: 'hello_greet', arguments: { name: 'Ada' } };
    const greeted = await client.callTool(greeting);
    expect(greeted.structuredContent).to.deep.equal({ message: 'Hello, Ada!' });
    const echoed = await client.callTool({ name: 'echo', arguments: { a: [1] } });
    expect(echoed.structuredContent).to.deep.equal({ a: [1] });
    const refused = await client.callTool({ name: 'get_task', arguments: {} });
    expect(refused.isError).to.equal(true);
    expect(refused.structuredContent).to.include({ error: 'bad_request' });
    const failed = await client.callTool({ name: 'fail', arguments: { message: 'no' } });
    expect([failed.isError, failed.structuredContent]).to.deep.equal([
      true,
      { error: 'tool_failed', message: 'no' },
    ]);
    const unknown = await client.callTool({ name: 'nothing' }).catch((error: unknown) => error);
    expect(unknown).to.be.an('error').with.property('code', -32_602);
  });

  it('limits a response, which contains a list twice, to 4 MiB, and continues with the next page', async () => {
    const { client } = service().admin;
    const payload = { pipeline: [{ uses: 'echo', with: { text: 'x'.repeat(60_000) } }] };
    const made: string[] = [];
    for (let number = 0; number < 40; number += 1) {
      const answer = await client.post('/tasks', {
        ...morning,
        description: 'Large',
        created_by: service().admin.id,
        payload,
      });
      made.push(answer.textAt('id'));
    }
    const headers = { accept: 'application/json, text/event-stream' };
    const listed: string[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const params = {
        name: 'list_tasks',
        arguments: { limit: 200, ...(cursor === '' ? {} : { cursor }) },
      };
      const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
      const { text } = await client.post('/ext/mcp_http/mcp', message, { headers });
      expect(Buffer.byteLength(text)).to.be.at.most(4 * 1024 * 1024);
      const { result } = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? '') as {
        readonly result: {
          readonly structuredContent: {
            readonly items: readonly { readonly id: string }[];
            readonly next_cursor: string | null;
          };
        };
      };
      const { items, next_cursor } = result.structuredContent;
      listed.push(...items.map(({ id }) => id));
      cursor = next_cursor;
    }
    expect(listed).to.include.members(made);
    expect(new Set(listed)).to.have.lengthOf(listed.length);
  });

  it("lists and allows only the tools within the caller's scopes", async () => {
    const client = await connect(service().reader.client.token);
    const { tools } = await client.listTools();
    expect(namesOf(tools)).to.deep.equal(['list_runs', 'get_run', 'get_run_artifact']);
    const refused = await client
      .callTool({ name: 'run_task', arguments: { task_id: 'x' } })
      .catch((error: unknown) => error);
    expect(refused).to.be.an('error').with.property('code', 403);
  });

  it('requires a token, JSON and the method POST', async () => {
    const refused = await connect(null).catch((error: unknown) => error);
    expect(refused).to.be.an('error');
    const admin = service().admin.client;
    const text = await admin.send('POST', '/ext/mcp_http/mcp', {
      raw: 'hello',
      headers: { 'content-type': 'text/plain' },
    });
    expect(text.status).to.equal(415);
    const ended = await admin.delete('/ext/mcp_http/mcp');
    expect([ended.status, ended.header('allow')]).to.deep.equal([405, 'POST']);
  });

  // The client checks each response against its declaration in /openapi.json.
  it('responds to each message as declared', async () => {
    const { client } = service().admin;
    const accept = 'application/json, text/event-stream';
    const post = (body: object, headers: Record<string, string> = { accept }) =>
      client.post('/ext/mcp_http/mcp', body, { headers });
    const listed = await post({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
    expect(listed.text).to.match(/^event: message\ndata: \{"result":\{"tools":/);
    const taken = await post({ jsonrpc: '2.0', method: 'notifications/initialized' });
    expect([taken.status, taken.text]).to.deep.equal([202, '']);
    const answers = [
      await post({ hello: 'there' }),
      await post({ jsonrpc: '2.0', id: 2, method: 'ping' }, { accept: 'application/json' }),
      await client.get('/ext/mcp_http/mcp', { headers: { accept: 'text/event-stream' } }),
      await client.delete('/ext/mcp_http/mcp'),
    ];
    expect(answers.map(({ status }) => status)).to.deep.equal([400, 406, 405, 405]);
    for (const answer of answers) expect(answer.at('jsonrpc'), answer.text).to.equal('2.0');
    expect(answers[2]?.header('allow')).to.equal('POST');
  });
});
