import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { eventually } from '../../support/signals.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { plainTask } from '../plain-task.ts';

describe('the connections of the HTTP interface', () => {
  const api = useRunningApi();

  const open = async (): Promise<{ socket: Socket; received: () => string }> => {
    const { hostname, port } = new URL(api().url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    return { socket, received: () => text };
  };
  const head = (method: string, path: string, headers: readonly string[]): string =>
    [`${method} ${path} HTTP/1.1`, 'Host: localhost', ...headers, '', ''].join('\r\n');
  const json = 'Content-Type: application/json';
  const bearer = (): string => `Authorization: Bearer ${String(api().admin.client.token)}`;

  it('return a response to a client that still sends a large body, and accept the next request', async () => {
    const size = 8 * 1024 * 1024;
    const length = `Content-Length: ${size}`;
    for (const [status, headers] of [
      [401, [json, length]],
      [413, [json, length, bearer()]],
      [415, ['Content-Type: text/plain', 'Content-Length: 1000000', bearer()]],
    ] as const) {
      const { socket, received } = await open();
      socket.write(head('POST', '/tasks', headers));
      const body = status === 415 ? 1_000_000 : size;
      socket.write(Buffer.alloc(body, 0x20));
      await eventually(() => received().startsWith(`HTTP/1.1 ${status}`), { what: `a ${status}` });
      socket.write(head('GET', '/health/live', []));
      await eventually(() => received().includes('HTTP/1.1 200'), { what: 'the next response' });
      socket.destroy();
    }
  });

  it('cut off a body of unknown length that grows too large', async () => {
    const { socket, received } = await open();
    socket.write(head('POST', '/tasks', [json, 'Transfer-Encoding: chunked', bearer()]));
    for (let chunk = 0; chunk < 17; chunk += 1) {
      socket.write(`10000\r\n${' '.repeat(0x10000)}\r\n`);
    }
    await eventually(() => received().startsWith('HTTP/1.1 413'), { what: 'a 413' });
    socket.write(`0\r\n\r\n${head('GET', '/health/live', [])}`);
    await eventually(() => received().includes('HTTP/1.1 200'), { what: 'the next response' });
    socket.destroy();
  });

  it('accept a chunked body, and one that turns out to be empty', async () => {
    const { admin } = api();
    const task = await admin.client.post('/tasks', plainTask(admin.id));
    const path = `${task.header('Location')}/pause`;
    const { socket, received } = await open();
    socket.write(`${head('POST', path, ['Transfer-Encoding: chunked', bearer()])}0\r\n\r\n`);
    await eventually(() => received().startsWith('HTTP/1.1 200'), { what: 'a 200' });
    socket.write(
      `${head('POST', path, [json, 'Transfer-Encoding: chunked', bearer()])}2\r\n{}\r\n0\r\n\r\n`,
    );
    await eventually(() => received().split('HTTP/1.1 200').length === 3, { what: 'another 200' });
    socket.destroy();
  });

  it('do nothing for a client that disconnects during its body', async () => {
    const before = api().store.appended.length;
    const { socket } = await open();
    socket.write(head('POST', '/tasks', [json, 'Content-Length: 1000', bearer()]));
    socket.write('{"title": "half');
    await eventually(async () => (await api().metricsText()).includes('http_requests_total'));
    const counted = await requests('POST', '/tasks');
    socket.destroy();
    await eventually(async () => (await requests('POST', '/tasks')) === counted + 1, {
      what: 'the request to end',
    });
    expect(api().store.appended.length).to.equal(before);
    expect(api().logged.filter((line) => line.includes('request failed'))).to.deep.equal([]);
  });

  it('complete a command whose client disconnects before the response', async () => {
    const { admin } = api();
    const held = api().store.holdNext('task-');
    const { socket } = await open();
    const body = JSON.stringify({ ...plainTask(admin.id), title: 'left alone' });
    socket.write(head('POST', '/tasks', [json, `Content-Length: ${body.length}`, bearer()]) + body);
    await held.arrived;
    socket.destroy();
    held.release();
    await eventually(
      async () =>
        (await admin.client.get('/tasks?search=left alone'.replace(' ', '%20'))).at('total') === 1,
    );
  });

  const requests = async (method: string, endpoint: string): Promise<number> => {
    const line = (await api().metricsText())
      .split('\n')
      .find((each) =>
        each.startsWith(`http_requests_total{method="${method}",endpoint="${endpoint}"}`),
      );
    return Number(line?.split(' ').at(-1) ?? 0);
  };

  it('count every request by its route, never by its path', async () => {
    const { client } = api().admin;
    const id = '00000000-0000-7000-8000-00000000abcd';
    const routes = [
      ['GET', `/tasks/${id}`, '/tasks/{id}'],
      ['HEAD', `/tasks/${id}`, '/tasks/{id}'],
      ['GET', `/runs/task/${id}/stats`, '/runs/task/{task_id}/stats'],
      ['DELETE', '/tasks', '/tasks'],
      ['GET', `/secret/${id}`, 'unknown'],
      ['GET', '/health/live', '/health/live'],
    ] as const;
    for (const [method, path, route] of routes) {
      const before = await requests(method, route);
      await client.send(method, path);
      await eventually(async () => (await requests(method, route)) === before + 1, {
        what: `${method} ${path} to count as ${route}`,
      });
    }
    await client.send('PROPFIND', '/tasks');
    await eventually(async () => (await requests('other', '/tasks')) === 1);
    const text = (await client.get('/ext/observability/metrics')).text;
    expect(text).to.contain('http_responses_total{status="404"}');
    expect(text).to.match(
      /http_request_seconds_count\{method="GET",endpoint="\/tasks\/\{id\}"\} \d/,
    );
    expect(text).to.not.contain('abcd');
  });
});
