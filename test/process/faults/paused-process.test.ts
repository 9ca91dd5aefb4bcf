import { expect } from 'chai';
import { buildService, endsItsProcesses } from '../../support/service-process.ts';
import {
  makeTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';
import { faultsOfCauses, faultsOfSchedules, faultsOfRuns, faultsOfStreams } from '../log-checks.ts';
import { pauseTheLeader, type AfterPause } from './paused-process.ts';
import { faultsOfSharing } from '../sharing-checks.ts';

describe('three processes that schedule and work, whose leader is paused beyond its leases', function () {
  this.timeout(600_000);
  let directory: TemporaryDirectory;
  let found: AfterPause;

  before(async () => {
    buildService();
    directory = await makeTemporaryDirectory();
    found = await pauseTheLeader(directory.path);
  });
  endsItsProcesses();
  after(() => directory.remove());

  it('lose and duplicate no fire', () => {
    const { ledger, tasks } = found;
    expect([
      ...faultsOfStreams(ledger),
      ...faultsOfSchedules(ledger, tasks),
      ...faultsOfCauses(ledger),
    ]).to.deep.equal([]);
    expect(ledger.all('FiresSkipped')).to.deep.equal([]);
  });

  it('fire without the paused process until it continues', () => {
    const { ledger, paused, from, to } = found;
    const deciders = (since: number, until: number): Set<string> =>
      new Set(
        ledger
          .all('Fired')
          .filter(({ data }) => {
            const at = Date.parse(data.nominal);
            return at > since && at < until;
          })
          .map(({ metadata }) => metadata.source),
      );
    expect([...deciders(0, from)]).to.include(paused);
    expect([...deciders(from, to)]).to.not.include(paused);
    expect(deciders(from, to).size).to.be.greaterThan(0);
  });

  it('end each run once, and reject later results from the paused process', () => {
    const { ledger, tasks, paused } = found;
    expect([...faultsOfRuns(ledger, tasks), ...faultsOfSharing(ledger, tasks)]).to.deep.equal([]);
    const taken = ledger.all('RunInterrupted').filter(({ data }) => data.worker === paused);
    expect(taken.length).to.be.greaterThan(0);
    for (const { stream, revision } of taken) {
      const later = (ledger.streams.get(stream) ?? []).filter((event) => event.revision > revision);
      // A worker that stalls beyond its lease of a second loses the run too.
      expect(later.at(-1)?.type).to.equal('RunSucceeded');
      expect(later.map(({ type }) => type)).to.include('RunStarted');
      expect(later.map(({ metadata }) => metadata.source)).to.not.include(paused);
    }
  });

  it('call the step again with the same idempotency key', () => {
    const { ledger, counts, called, paused } = found;
    const taken = ledger
      .all('RunInterrupted')
      .filter(({ data, stream }) => data.worker === paused && called.has(stream));
    expect(taken.length).to.be.greaterThan(0);
    for (const { stream } of taken) {
      const starts = (ledger.streams.get(stream) ?? []).filter(({ type }) => type === 'RunStarted');
      const keys = [...counts].filter(([key]) => key.startsWith(stream.slice('run-'.length)));
      expect(keys).to.have.lengthOf(1);
      expect(keys[0]?.[1]).to.be.within(2, starts.length);
    }
  });
});
