import { expect } from 'chai';
import { once } from 'node:events';
import { mkdirSync, readdirSync, renameSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { openNotices, type Notices } from '../../../stores/sqlite/event-log/following/notices.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { Signal, eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('notices between processes', () => {
  const directory = useTemporaryDirectory();
  const opened: Notices[] = [];
  const open = async (folder = directory()): Promise<Notices> => {
    const notices = await openNotices(folder);
    opened.push(notices);
    return notices;
  };
  leavesNothingOpen();
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((notices) => notices.close()));
  });

  /** The notices that a member receives, once the others know it. */
  const heard = (notices: Notices): Signal<string> => {
    const signal = new Signal<string>('a notice');
    notices.subscribe(signal.send);
    return signal;
  };
  /** Publishes until the message is received, because joining takes a while. */
  const reaches = async (from: Notices, to: Notices): Promise<void> => {
    const signal = heard(to);
    await eventually(() => {
      from.publish('hello');
      return signal.values.includes('hello');
    });
  };

  it('reach every other member, in both directions', async () => {
    const [one, two, three] = [await open(), await open(), await open()];
    for (const from of [one, two, three]) {
      for (const to of [one, two, three]) if (from !== to) await reaches(from, to);
    }
  });

  it('do not return to their sender', async () => {
    const [one, two] = [await open(), await open()];
    const own = heard(one);
    await reaches(one, two);
    await reaches(two, one);
    one.publish('mine');
    two.publish('theirs');
    await own.wait((message) => message === 'theirs');
    expect(own.values).not.to.include('mine');
  });

  it('arrive once each if they are repeated in one turn of the event loop', async () => {
    const [one, two] = [await open(), await open()];
    await reaches(one, two);
    const signal = heard(two);
    for (let i = 0; i < 100; i += 1) one.publish(i % 2 === 0 ? 'even' : 'odd');
    await signal.wait((message) => message === 'odd');
    one.publish('end');
    await signal.wait((message) => message === 'end');
    expect(signal.values.filter((message) => message !== 'hello')).to.deep.equal([
      'even',
      'odd',
      'end',
    ]);
  });

  it('do not reach a listener that has unsubscribed', async () => {
    const [one, two] = [await open(), await open()];
    await reaches(one, two);
    const gone = new Signal<string>();
    two.subscribe(gone.send)();
    const signal = heard(two);
    one.publish('later');
    await signal.wait((message) => message === 'later');
    expect(gone.values).to.deep.equal([]);
  });

  it('continue after a member has left and its socket is gone', async () => {
    const [one, two, three] = [await open(), await open(), await open()];
    await reaches(one, three);
    await two.close();
    await reaches(one, three);
    expect(readdirSync(join(directory(), 'peers'))).to.have.lengthOf(2);
  });

  it('remove the socket of a killed process', async () => {
    const folder = join(directory(), 'peers');
    mkdirSync(folder, { recursive: true });
    const stale = join(folder, 'dead.sock');
    // Closing deletes the socket's file, so it is renamed before. A file without a listener remains.
    const server = createServer();
    const living = join(folder, 'living.sock');
    await new Promise<void>((resolve) => server.listen(living, resolve));
    renameSync(living, stale);
    await new Promise<void>((resolve) => server.close(() => resolve()));
    expect(readdirSync(folder)).to.deep.equal(['dead.sock']);
    await open();
    expect(readdirSync(folder)).not.to.include('dead.sock');
  });

  it('work even if the path is too long for a socket', async () => {
    const long = join(directory(), 'x'.repeat(120));
    const [one, two] = [await open(long), await open(long)];
    await reaches(one, two);
  });

  it('are not mixed up between directories', async () => {
    const other = join(directory(), 'other');
    const [one, two, stranger] = [await open(), await open(), await open(other)];
    const signal = heard(stranger);
    await reaches(one, two);
    expect(signal.values).to.deep.equal([]);
  });

  it('may be closed twice', async () => {
    const one = await open();
    await one.close();
    await one.close();
    one.publish('nothing');
  });

  it('end with a member, even if another does not read them', async () => {
    const notices = await open();
    const [name = ''] = readdirSync(join(directory(), 'peers'));
    // Connected but not reading, like a stopped process.
    const stopped = connect(join(directory(), 'peers', name));
    try {
      stopped.pause();
      stopped.write('stopped\n');
      await once(stopped, 'connect');
      const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
      for (let i = 0; i < 20_000; i += 1) {
        notices.publish(`${'x'.repeat(200)} ${i}`);
        if (i % 10 === 0) await turn();
      }
      await notices.close();
    } finally {
      stopped.destroy();
    }
  });
});
