import { expect } from 'chai';
import { OpenJobs, type TestWorker } from '../../api/endpoints/workers/open-jobs.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { svc, type Called } from './command-line.ts';

describe('svc workers', () => {
  const api = useRunningApi();
  let open: OpenJobs;
  before(async () => {
    open = await OpenJobs.make(api());
  });
  /** Calls the command line as the agent of a worker, or as the admin. */
  const call = (words: readonly string[], worker?: TestWorker): Promise<Called> => {
    const { client } = worker?.agent ?? api().admin;
    const env = { SVC_URL: api().url, SVC_TOKEN: client.token ?? '' };
    return svc(['workers', ...words], { env });
  };

  it('lists workers with their tools and jobs', async () => {
    const labels = { region: 'eu' };
    const worker = await open.worker(['cli.one', 'cli.two'], { name: 'lister', labels });
    await open.open({ tool: 'cli.one' });
    const job = await worker.job();
    const { out } = await call(['list']);
    expect(out).to.match(/ID +NAME +STATE +TOOLS +LABELS +JOBS +LAST SEEN\n/);
    const row = `\n${worker.id} +lister +active +cli.one cli.two +region=eu +1 of 4 +20..-`;
    expect(out).to.match(new RegExp(row));
    const shown = await call(['show', 'lister'], worker);
    expect(shown.out).to.match(new RegExp(`^id +${worker.id}\nname +lister\nagent `));
    expect(shown.out).to.match(/\nTOOL +DESCRIPTION\n.*\ncli.one +a tool\ncli.two +a tool\n/);
    expect(shown.out).to.match(new RegExp(`\n${job.job_id} +${job.run_id} +20`));
    // Each call of the worker changes when it was last seen.
    const withoutLastSeen = ({ out: text }: Called): string => text.replace(/\nlast seen .*/, '');
    const byId = await call(['show', worker.id], worker);
    expect(withoutLastSeen(byId)).to.equal(withoutLastSeen(shown));
  });

  it('drains a worker by its name, and says how many jobs it still has', async () => {
    const worker = await open.worker(['cli.drained'], { name: 'leaver' });
    await open.open({ tool: 'cli.drained' });
    await worker.job();
    const drained = await call(['drain', 'leaver'], worker);
    expect(drained.out).to.equal('the worker gets no more jobs; it still has 1\n');
    expect((await call(['list'], worker)).out).to.equal('no such worker\n');
    const { out } = await call(['list', '--state', 'drained'], worker);
    expect(out).to.match(new RegExp(`\n${worker.id} +leaver +drained `));
    expect((await call(['show', 'leaver'], worker)).out).to.match(/\nstate +drained\n/);
  });

  it('asks for the id if several agents have a worker with the name', async () => {
    const workers = [];
    for (const name of ['twin', 'twin']) workers.push(await open.worker(['cli.twin'], { name }));
    const { code, err } = await call(['show', 'twin']);
    expect(code).to.equal(2);
    expect(err).to.match(/^svc: several agents have a worker twin; give the id: /);
    for (const { id, agent } of workers) expect(err).to.contain(`${id} of agent ${agent.id}`);
    const unknown = await call(['drain', 'nobody']);
    expect([unknown.code, unknown.err]).to.deep.equal([3, 'svc: there is no worker nobody\n']);
  });
});
