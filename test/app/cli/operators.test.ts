import { expect } from 'chai';
import { QuickClock } from '../../support/quick-clock.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { svc, type Called, type Calling } from './command-line.ts';

describe('the command line for operators', () => {
  const api = useRunningApi();
  const call = (words: readonly string[], calling: Calling = {}): Promise<Called> => {
    const env = { SVC_URL: api().url, SVC_TOKEN: api().admin.client.token ?? '' };
    return svc(words, { env, clock: new QuickClock(), ...calling });
  };

  it('holds and releases the service', async () => {
    expect((await call(['operations'])).out).to.equal('not on hold\n');
    expect((await call(['hold', 'new', 'mail', 'server'])).out).to.equal(
      'the service is on hold\n',
    );
    expect((await call(['operations'])).out).to.match(/^on hold since .* new mail server\n$/);
    expect((await call(['hold', 'again'])).code).to.equal(5);
    expect((await call(['release', '--missed', 'some'])).code).to.equal(2);
    const released = await call(['release', '--missed', 'skip', '--json']);
    expect(released.json['details']).to.include({ held: false, missed: 'skip' });
    expect((await call(['operations'])).out).to.match(
      /^not on hold; last released .*, by .*: what was due meanwhile was skipped \(skip\)\n$/,
    );
    expect((await call(['release'])).code).to.equal(5);
    for (const [words, says] of [
      [['--missed', 'latest'], 'ran once for each task (latest)'],
      [['--missed', 'all'], 'ran (all)'],
      [[], "followed each task's policy"],
    ] as const) {
      await call(['hold', 'once', 'more']);
      await call(['release', ...words]);
      expect((await call(['operations'])).out).to.include(`: what was due meanwhile ${says}\n`);
    }
  });

  it('rebuilds a view with a progress bar, switches, and rolls back', async () => {
    expect((await call(['projections', 'ls'])).out).to.match(/agents +\d+ +following/);
    const made = await call(['projections', 'rebuild', 'agents', '--manual'], { terminal: true });
    expect(made.code, made.err).to.equal(0);
    expect(made.err).to.match(/\[[█░]{24}\] +100 % {2}\d+ events {2}ready\n$/);
    expect(made.out).to.match(/agents: version 1 is live, following/);
    expect(made.out).to.match(/version 2: .*\n.*1 documents, 1 before; 0 differ of all keys/);
    expect((await call(['projections', 'switch', 'agents'])).out).to.equal(
      'reads go to version 2\n',
    );
    expect((await call(['projections', 'status', 'agents'])).out).to.include(
      ': svc projections rollback agents --if-version 2\n',
    );
    const once = ['projections', 'rollback', 'agents', '--if-version', '2'];
    const back = await call([...once, '--json']);
    expect(back.json['details']).to.include({ version: 1, previous: 2, done: true });
    const again = await call(once);
    expect(again.code).to.equal(5);
    expect(again.err).to.include('version 1 of agents is live, not 2');
    const forth = await call(['projections', 'rollback', 'agents', '--json']);
    expect(forth.json['details']).to.include({ version: 2, previous: 1, done: true });
    expect((await call(['projections', 'rollback', 'nothing'])).code).to.equal(3);
    expect((await call(['projections', 'status', 'nothing'])).err).to.match(/there are agents, /);
  });

  it('waits until a view is live and prints each tenth without a terminal', async () => {
    const made = await call(['projections', 'rebuild', 'tasks', '--json']);
    expect(made.json).to.include({ name: 'tasks', version: 2, rebuild: null });
    expect(made.err).to.match(/version 2 is live\n$/);
    const detached = await call(['projections', 'rebuild', 'tasks', '--rate', '5', '--detach']);
    expect(detached.out).to.equal('building version 3\n');
    expect((await call(['projections', 'rebuild', 'tasks', '--rate', '-1'])).code).to.equal(2);
  });

  it('lists parked keys', async () => {
    const parked = await call(['projections', 'parked', 'runs']);
    expect(parked.out).to.equal('no parked keys\n');
    expect((await call(['projections', 'retry', 'runs', 'x'])).code).to.equal(3);
  });
});
