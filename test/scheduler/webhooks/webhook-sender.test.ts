import { expect } from 'chai';
import { WebhookSender, type WebhookRequest } from '../../../scheduler/webhooks/webhook-sender.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { Receiver, secretOfTest } from './webhook-harness.ts';

describe('the sender of webhooks', () => {
  let receiver: Receiver;
  let url: string;
  let sender: WebhookSender;
  const clock = new VirtualClock('2026-03-02T08:00:00.500Z');
  const signal = new AbortController().signal;

  beforeEach(async () => {
    receiver = new Receiver();
    url = await receiver.listen();
    sender = new WebhookSender({ clock, allowPrivate: true, userAgent: 'test' });
  });

  afterEach(async () => {
    await sender.close();
    await receiver.close();
  });

  const post = (more: Partial<WebhookRequest> = {}): WebhookRequest => ({
    id: 'd',
    url,
    body: '{"a":"ü"}',
    secrets: [secretOfTest('a', 1)],
    ...more,
  });

  it('sends the message id and the time, and signs with each secret', async () => {
    const reply = await sender.send(
      post({ secrets: [secretOfTest('a', 2), secretOfTest('a', 1)] }),
      signal,
    );
    expect(reply).to.include({ status: 204, answer: '', error: null, refused: false });
    const [received] = receiver.all;
    expect(received?.body).to.equal('{"a":"ü"}');
    expect(received?.headers).to.include({
      'webhook-id': 'd',
      'webhook-timestamp': String(Date.parse('2026-03-02T08:00:00Z') / 1000),
      'user-agent': 'test',
    });
    expect(received?.headers['webhook-signature']).to.match(/^v1,\S{44} v1,\S{44}$/);
    expect(received?.headers).to.not.have.property('authorization');
  });

  it('parses Retry-After as seconds and as a date', async () => {
    receiver.answer = (response) => response.writeHead(503, { 'retry-after': '7' }).end();
    expect((await sender.send(post(), signal)).retryAfter).to.equal(7000);
    const date = 'Mon, 02 Mar 2026 08:01:00 GMT';
    receiver.answer = (response) => response.writeHead(503, { 'retry-after': date }).end();
    expect((await sender.send(post(), signal)).retryAfter).to.equal(59_500);
  });

  it('rejects names that resolve to a private address', async () => {
    const careful = new WebhookSender({
      clock,
      allowPrivate: false,
      userAgent: 'test',
      lookUpAll: (_name, _options, callback) =>
        callback(null, [{ address: '10.0.0.1', family: 4 }]),
    });
    const reply = await careful.send(post({ url: 'http://inside.example/' }), signal);
    await careful.close();
    expect(reply).to.include({ status: null, refused: true });
    expect(reply.error).to.contain('10.0.0.1');
  });

  it('reports the error if there is no response', async () => {
    await receiver.close();
    const reply = await sender.send(post(), signal);
    expect(reply).to.include({ status: null, answer: null, refused: false });
    expect(reply.error).to.match(/ECONNREFUSED/);
    receiver = new Receiver();
    await receiver.listen();
  });

  it('keeps whole characters of a response and of an error', async () => {
    receiver.answer = (response) => response.writeHead(500).end(`${'a'.repeat(998)}😀z`);
    const { answer } = await sender.send(post(), signal);
    expect(answer).to.equal('a'.repeat(998));
    const failing = new WebhookSender({
      clock,
      allowPrivate: false,
      userAgent: 'test',
      lookUpAll: (_name, _options, callback) => callback(new Error(`${'a'.repeat(999)}😀z`), []),
    });
    const { error } = await failing.send(post({ url: 'http://away.example/' }), signal);
    await failing.close();
    expect(error).to.equal('a'.repeat(999));
  });

  it('counts a 2xx as success even if its body is incomplete', async () => {
    receiver.answer = (response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('x', () => response.destroy());
    };
    const reply = await sender.send(post(), signal);
    expect(reply).to.include({ status: 200, answer: 'x', error: null });
  });

  it('reports a connection that closes before the status', async () => {
    receiver.answer = (response) => response.destroy();
    const reply = await sender.send(post(), signal);
    expect(reply).to.include({ status: null, refused: false });
    expect(reply.error).to.be.a('string');
  });

  it('rejects when it is aborted', async () => {
    receiver.answer = () => {};
    const stop = new AbortController();
    const sending = sender.send(post(), stop.signal).catch((error: unknown) => error);
    await receiver.received.wait();
    stop.abort();
    expect(await sending).to.be.instanceOf(Error);
  });
});
